//! Whether the user may do what a plan needs, asked before anything is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures::{StreamExt, TryStreamExt};

use super::problem::ApiProblem;
use super::requests::Requests;

/// Reviews in flight at a time.
const PARALLEL: usize = 32;

/// A right that is needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// For example `create`.
    pub verb: String,
    /// API group; empty for the core.
    pub group: String,
    /// Resource in the plural.
    pub resource: String,
    /// Subresource, for example `eviction`; of a longer path its first part.
    pub subresource: Option<String>,
    /// Namespaces in which it is needed; `None` for the whole cluster, or for what has no namespace.
    pub namespaces: Option<BTreeSet<String>>,
}

impl Right {
    /// A right in the whole cluster.
    pub fn new(verb: &str, group: &str, resource: &str) -> Self {
        let (verb, group, resource) = (verb.to_owned(), group.to_owned(), resource.to_owned());
        Self { verb, group, resource, subresource: None, namespaces: None }
    }

    /// The same right on a subresource.
    #[must_use]
    pub fn on(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// The same right, needed in these namespaces only.
    #[must_use]
    pub fn within<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    fn full_resource(&self) -> String {
        match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource),
            None => self.resource.clone(),
        }
    }

    /// The RBAC rule that grants it, as one line of YAML.
    pub fn rule(&self) -> String {
        format!(
            "{{apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [\"{}\"]}}",
            self.group,
            self.full_resource(),
            self.verb
        )
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.full_resource())?;
        if !self.group.is_empty() {
            write!(f, " ({})", self.group)?;
        }
        Ok(())
    }
}

/// A right that the user does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The right.
    pub right: Right,
    /// Namespaces in which it is missing; `None` for the whole cluster.
    pub namespaces: Option<BTreeSet<String>>,
    /// The RBAC rule that grants it, as one line of YAML: for a ClusterRole, or for a Role in each of the namespaces.
    pub rule: String,
}

/// One review.
type Question<'a> = (&'a Right, Option<&'a str>);

/// Asks for each right, first in the whole cluster, then, where that is denied, in each namespace where it is needed.
/// Returns what is missing, in the order of `rights`.
pub async fn missing_rights(requests: &Requests, rights: &[Right]) -> Result<Vec<Missing>, ApiProblem> {
    let cluster = answers(requests, rights.iter().map(|right| (right, None)).collect()).await?;
    let namespaced = answers(requests, second_questions(rights, &cluster)).await?;
    Ok(missing(rights, &cluster, &namespaced))
}

async fn answers<'a>(
    requests: &Requests,
    questions: Vec<Question<'a>>,
) -> Result<BTreeMap<Question<'a>, bool>, ApiProblem> {
    futures::stream::iter(questions)
        .map(|question| async move { Ok((question, requests.access_review(question.0, question.1).await?)) })
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

fn second_questions<'a>(rights: &'a [Right], cluster: &BTreeMap<Question<'a>, bool>) -> Vec<Question<'a>> {
    rights
        .iter()
        .filter(|right| cluster.get(&(*right, None)) != Some(&true))
        .flat_map(|right| right.namespaces.iter().flatten().map(move |ns| (right, Some(ns.as_str()))))
        .collect()
}

fn missing<'a>(
    rights: &'a [Right],
    cluster: &BTreeMap<Question<'a>, bool>,
    namespaced: &BTreeMap<Question<'a>, bool>,
) -> Vec<Missing> {
    let mut found = Vec::new();
    for right in rights.iter().filter(|right| cluster.get(&(*right, None)) != Some(&true)) {
        let denied: Option<BTreeSet<String>> = right.namespaces.as_ref().map(|all| {
            all.iter().filter(|ns| namespaced.get(&(right, Some(ns.as_str()))) != Some(&true)).cloned().collect()
        });
        if denied.as_ref().is_some_and(BTreeSet::is_empty) {
            continue;
        }
        found.push(Missing { right: right.clone(), namespaces: denied, rule: right.rule() });
    }
    found
}

#[cfg(test)]
mod tests;
