//! Object metadata, trimmed while it is parsed.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, OwnerReference, Time};
use kube::core::ObjectMeta;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::ANNOTATIONS;
use super::lenient::or_default;

/// Metadata without `managedFields`.
pub(super) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Meta::<IgnoredAny>::deserialize(deserializer)?.trimmed()
}

/// Metadata in which `managedFields` has at most one entry: the manager that owns `spec.unschedulable`. Of several
/// owners the one whose entry is the oldest: who came later only repeated what was there.
pub(super) fn node_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Meta::<Option<Vec<Entry>>>::deserialize(deserializer)?.trimmed()
}

#[derive(serde::Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "M: Deserialize<'de> + Default"))]
struct Meta<M> {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<Annotations>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    managed_fields: M,
}

impl<M: Managers> Meta<M> {
    fn trimmed<E: Error>(self) -> Result<ObjectMeta, E> {
        for (field, value) in [("name", &self.name), ("uid", &self.uid)] {
            if value.as_ref().is_none_or(String::is_empty) {
                return Err(E::custom(format_args!("metadata.{field} is missing")));
            }
        }
        Ok(ObjectMeta {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            creation_timestamp: self.creation_timestamp,
            deletion_timestamp: self.deletion_timestamp,
            deletion_grace_period_seconds: self.deletion_grace_period_seconds,
            labels: self.labels,
            annotations: self.annotations.map(|a| a.0).filter(|a| !a.is_empty()),
            owner_references: self.owner_references,
            finalizers: self.finalizers,
            managed_fields: self.managed_fields.kept(),
            ..ObjectMeta::default()
        })
    }
}

/// What is kept of `managedFields`.
trait Managers {
    fn kept(self) -> Option<Vec<ManagedFieldsEntry>>;
}

impl Managers for IgnoredAny {
    fn kept(self) -> Option<Vec<ManagedFieldsEntry>> {
        None
    }
}

impl Managers for Option<Vec<Entry>> {
    fn kept(self) -> Option<Vec<ManagedFieldsEntry>> {
        let owner = self?
            .into_iter()
            .filter(|m| m.fields_v1.spec.unschedulable.is_some())
            .min_by(|a, b| a.time.as_ref().map(|t| t.0).cmp(&b.time.as_ref().map(|t| t.0)))?;
        Some(vec![ManagedFieldsEntry { manager: owner.manager, time: owner.time, ..ManagedFieldsEntry::default() }])
    }
}

#[derive(serde::Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    manager: Option<String>,
    time: Option<Time>,
    #[serde(deserialize_with = "or_default")]
    fields_v1: Fields,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Fields {
    #[serde(rename = "f:spec", deserialize_with = "or_default")]
    spec: SpecFields,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct SpecFields {
    #[serde(rename = "f:unschedulable")]
    unschedulable: Option<IgnoredAny>,
}

/// The annotations in [`ANNOTATIONS`]; the others are skipped without being stored.
struct Annotations(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kept;

        impl<'de> Visitor<'de> for Kept {
            type Value = Annotations;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut kept = BTreeMap::new();
                while let Some(key) = map.next_key::<AnnotationKey>()? {
                    match key.0 {
                        Some(key) => {
                            kept.insert(key.to_owned(), map.next_value::<Option<String>>()?.unwrap_or_default());
                        }
                        None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Annotations(kept))
            }
        }

        deserializer.deserialize_map(Kept)
    }
}

/// One of [`ANNOTATIONS`], or another one.
struct AnnotationKey(Option<&'static str>);

impl<'de> Deserialize<'de> for AnnotationKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Known;

        impl Visitor<'_> for Known {
            type Value = AnnotationKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an annotation")
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<AnnotationKey, E> {
                Ok(AnnotationKey(ANNOTATIONS.into_iter().find(|known| *known == key)))
            }
        }

        deserializer.deserialize_str(Known)
    }
}
