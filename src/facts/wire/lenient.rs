//! Deserialisers for values that servers write in more than one way, and the condition that all kinds share.

use std::fmt;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::facts::IntOrPercent;

/// `null` counts as absent: Go writes it for empty lists and maps.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// An entry of `status.conditions`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::facts) struct Condition {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(in crate::facts) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(in crate::facts) message: String,
    pub(in crate::facts) last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// True for status `True`.
    pub(in crate::facts) fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// True for status `False` with this reason.
    pub(in crate::facts) fn is_false_because(&self, reason: &str) -> bool {
        self.status == "False" && self.reason == reason
    }
}

/// The condition of that type.
pub(in crate::facts) fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.kind == kind)
}

/// `IntOrString` of a disruption budget: a count, or a percentage such as `50%`. The API accepts no other text
/// (Kubernetes `pkg/apis/policy/validation`); one that is none of the two is kept as unknown.
pub(super) fn int_or_percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IntOrPercent>, D::Error> {
    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = Option<IntOrPercent>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a count or a percentage")
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok(Some(IntOrPercent::Int(value)))
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok(i64::try_from(value).ok().map(IntOrPercent::Int))
        }

        fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
            Ok(match value.strip_suffix('%') {
                Some(percent) => percent.parse().ok().map(IntOrPercent::Percent),
                None => value.parse().ok().map(IntOrPercent::Int),
            })
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_any(self)
        }
    }

    deserializer.deserialize_any(Either)
}
