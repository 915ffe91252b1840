//! Answers to the PUT of a VM restart (`subresources.kubevirt.io`, KubeVirt `pkg/virt-api/rest/lifecycle.go`).

use super::raw::{is_success, one_line};
use super::{EvictionAnswer, RawAnswer, RestartAnswer};

/// Classifies the answer to a PUT of a restart: a success has status 202 and no body. Whatever is not known here falls
/// into the class of its code.
pub fn classify_restart(answer: &RawAnswer) -> RestartAnswer {
    let code = answer.judged_code();
    let text = answer.words_or_code();
    match code {
        _ if is_success(code) => RestartAnswer::Accepted,
        401 => RestartAnswer::Unauthorized,
        403 => RestartAnswer::Forbidden { text },
        404 if answer.names_an_object() => RestartAnswer::NoSuchVm,
        409 => RestartAnswer::NotPossible { text },
        500 if text.contains("already underway") => RestartAnswer::Underway,
        // 404 without a VM: the aggregated API itself is not there. 408: a timeout of the server or a proxy.
        404 | 408 => RestartAnswer::Unavailable { text, after: answer.after() },
        429 => RestartAnswer::Throttled { after: answer.after() },
        400..=499 => RestartAnswer::Invalid { text },
        _ => RestartAnswer::Unavailable { text, after: answer.after() },
    }
}

impl RestartAnswer {
    /// The answer in one clause, for people; what the server said is quoted, without the wrapper that KubeVirt puts around
    /// each conflict.
    pub fn describe(&self) -> String {
        one_line(&match self {
            Self::Accepted => "restart accepted".to_owned(),
            Self::Underway => "a restart or start of it is already under way".to_owned(),
            Self::NotPossible { text } => format!("KubeVirt refuses the restart: {}", unwrapped(text)),
            Self::NoSuchVm => "there is no such VM".to_owned(),
            Self::Forbidden { text } => format!("not permitted: {text}"),
            Self::Unauthorized => "the API server does not accept the credentials".to_owned(),
            Self::Invalid { text } => format!("the restart is not accepted: {text}"),
            Self::Throttled { after } => EvictionAnswer::Throttled { after: *after }.describe(),
            Self::Unavailable { text, .. } => format!("KubeVirt's API cannot be reached: {text}"),
        })
    }
}

/// The reason inside `Operation cannot be fulfilled on KIND "NAME": REASON`.
fn unwrapped(text: &str) -> &str {
    text.strip_prefix("Operation cannot be fulfilled on ")
        .and_then(|t| t.split_once("\": "))
        .map_or(text, |(_, why)| why)
}

#[cfg(test)]
mod tests;
