//! Answers to the POST of an eviction.
//!
//! The order of the tests matters and is that of the variants of [`EvictionAnswer`]. The texts are those of the Kubernetes
//! API server (`registry/core/pod/storage/eviction.go`, `admission/plugin/webhook/errors`) and of KubeVirt's
//! `pod-eviction-admitter.go`.

use std::time::Duration;

use super::raw::is_success;
use super::{EvictionAnswer, RawAnswer, RawStatus};
use crate::outcome::Cause;

/// Classifies the answer to a POST of an eviction: a pure function of code, `Retry-After` and `Status`. Whatever a
/// server says that is not known here falls into the class of its code; nothing but 2xx is ever a success.
pub fn classify_eviction(answer: &RawAnswer) -> EvictionAnswer {
    let code = answer.judged_code();
    let words = answer.words();
    let webhook = Webhook::of(words);
    match code {
        _ if is_success(code) => EvictionAnswer::Accepted,
        404 if is_about_the_pod(answer) => EvictionAnswer::Gone,
        404 if webhook.is_none() => EvictionAnswer::ServerTrouble { text: answer.words_or_code() },
        429 => from_429(answer, webhook),
        409 => from_409(answer, webhook),
        403 => from_403(answer, webhook),
        _ => from_other(answer, code, webhook),
    }
}

/// A 404 proves that the pod is gone only in the API server's own words about it (or about its namespace): a proxy's page,
/// a path that is not served, or a webhook that refuses with 404 leave the pod where it is.
fn is_about_the_pod(answer: &RawAnswer) -> bool {
    let about = |status: &RawStatus| matches!(status.details_kind.as_str(), "pods" | "namespaces");
    answer.status.as_ref().is_some_and(|status| status.reason == "NotFound" && about(status))
}

/// 429: the launcher webhook, a budget, or an API server that is busy.
fn from_429(answer: &RawAnswer, webhook: Option<Webhook<'_>>) -> EvictionAnswer {
    let by_kubevirt = webhook.as_ref().is_none_or(|w| w.name.contains("kubevirt"));
    let said = webhook.as_ref().map_or(answer.words(), |w| w.text);
    if let Some(vm) = by_kubevirt.then(|| from_kubevirt(said)).flatten() {
        return vm;
    }
    if let Some(webhook) = webhook {
        return webhook.refused();
    }
    if let Some(cause) = budget_cause(answer) {
        return from_budget(cause, answer.asked_wait());
    }
    EvictionAnswer::Throttled { after: answer.after() }
}

/// What KubeVirt's webhook says (`pod-eviction-admitter.go`). Errors that it passes on come first: they may quote anything.
fn from_kubevirt(said: &str) -> Option<EvictionAnswer> {
    let text = said.to_owned();
    Some(if said.starts_with("kubevirt failed ") || said.starts_with("failed getting owner ") {
        EvictionAnswer::VmLookupFailed { text }
    } else if said.starts_with("failed to parse ") {
        EvictionAnswer::EvictionMalformed { text }
    } else if said.contains("Evacuation in progress") {
        EvictionAnswer::VmEvacuating { marked_now: false }
    } else if said.contains("Eviction triggered evacuation") {
        EvictionAnswer::VmEvacuating { marked_now: true }
    } else if said.contains("is configured with an eviction strategy but is not live-migratable") {
        EvictionAnswer::VmNotMigratable
    } else if said.contains("Eviction request for target Pod") {
        EvictionAnswer::VmMigrationTarget
    } else if said.contains("cannot evict hotplug pod") {
        EvictionAnswer::HotplugCompanion
    } else {
        return None;
    })
}

/// The words of a refusal by a budget: those of its cause, else the message.
fn budget_cause(answer: &RawAnswer) -> Option<&str> {
    let status = answer.status.as_ref()?;
    let cause = status.causes.iter().find(|(reason, _)| reason == "DisruptionBudget");
    match cause {
        Some((_, words)) if !words.is_empty() => Some(words),
        Some(_) => Some(&status.message),
        None => status.message.contains("disruption budget").then_some(&status.message),
    }
}

fn from_budget(cause: &str, asked_wait: Option<u64>) -> EvictionAnswer {
    let words = cause.strip_prefix("The disruption budget ");
    let budget = words.and_then(|w| w.split_whitespace().next()).map(str::to_owned);
    let number_after = |marker: &str| cause.split_once(marker)?.1.split_whitespace().next()?.parse::<u32>().ok();
    let (needs, has) = (number_after(" needs "), number_after(" and has "));
    if cause.contains("failed sync") {
        EvictionAnswer::BudgetBroken { budget, text: cause.to_owned() }
    } else if cause.contains("still being processed") || (asked_wait == Some(10) && needs.is_none()) {
        EvictionAnswer::BudgetUnsynced { budget }
    } else {
        EvictionAnswer::BudgetExhausted { budget, needs, has, text: cause.to_owned() }
    }
}

/// 409: a conflict on the budget's status, or our UID precondition.
fn from_409(answer: &RawAnswer, webhook: Option<Webhook<'_>>) -> EvictionAnswer {
    let words = answer.words();
    if let Some(webhook) = webhook {
        webhook.refused()
    } else if is_about_budget(answer) || words.contains("poddisruptionbudget") {
        EvictionAnswer::BudgetBusy { budget: budget_name(answer) }
    } else if words.contains("UID in the precondition") || words.contains("UID in precondition") {
        EvictionAnswer::PodReplaced
    } else {
        EvictionAnswer::ServerTrouble { text: answer.words_or_code() }
    }
}

/// 403: the budget's status, the namespace, a webhook, or permissions.
fn from_403(answer: &RawAnswer, webhook: Option<Webhook<'_>>) -> EvictionAnswer {
    let words = answer.words();
    let terminating = answer.status.iter().flat_map(|s| &s.causes).any(|(reason, _)| reason == "NamespaceTerminating");
    if webhook.is_none() && is_about_budget(answer) && !words.contains(" cannot ") {
        EvictionAnswer::BudgetBroken { budget: budget_name(answer), text: answer.words_or_code() }
    } else if terminating {
        EvictionAnswer::NamespaceTerminating
    } else if let Some(webhook) = webhook {
        webhook.refused()
    } else if words.contains("because it is being terminated") {
        EvictionAnswer::NamespaceTerminating
    } else {
        EvictionAnswer::Forbidden { text: answer.words_or_code() }
    }
}

fn from_other(answer: &RawAnswer, code: u16, webhook: Option<Webhook<'_>>) -> EvictionAnswer {
    let words = answer.words();
    let text = answer.words_or_code();
    if code >= 500 && words.contains("failed calling webhook") {
        EvictionAnswer::WebhookUnreachable { text }
    } else if let Some(webhook) = webhook {
        webhook.refused()
    } else if words.contains("more than one PodDisruptionBudget") {
        EvictionAnswer::MultipleBudgets
    } else {
        match code {
            504 => EvictionAnswer::BudgetBusy { budget: budget_name(answer) },
            400 if words.contains("does not support dry run") => EvictionAnswer::ProbeImpossible { text },
            401 => EvictionAnswer::Unauthorized,
            // A timeout of the server or a proxy: the request may be sent again.
            408 => EvictionAnswer::ServerTrouble { text },
            400..=499 => EvictionAnswer::Invalid { text },
            _ => EvictionAnswer::ServerTrouble { text },
        }
    }
}

fn is_about_budget(answer: &RawAnswer) -> bool {
    answer.status.as_ref().is_some_and(|s| s.details_kind.to_ascii_lowercase().starts_with("poddisruptionbudget"))
}

/// Name of the budget: `details.name`, else what the message quotes.
fn budget_name(answer: &RawAnswer) -> Option<String> {
    let named = |s: &RawStatus| Some(s.details_name.clone()).filter(|name| !name.is_empty());
    if is_about_budget(answer)
        && let Some(name) = answer.status.as_ref().and_then(named)
    {
        return Some(name);
    }
    let words = answer.words();
    let at = words.to_ascii_lowercase().find("poddisruptionbudget")?;
    Some(words.get(at..)?.split('"').nth(1)?.to_owned()).filter(|name| !name.is_empty())
}

/// A refusal by an admission webhook: its name and what it said.
struct Webhook<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Webhook<'a> {
    /// `admission webhook "NAME" denied the request: TEXT`, or `… denied the request without explanation`
    /// (`admission/plugin/webhook/errors/statuserror.go`). Some servers put words of their own in front. The first one
    /// counts: what follows may be a refusal that the webhook itself met.
    fn of(words: &'a str) -> Option<Self> {
        let (_, rest) = words.split_once("admission webhook \"")?;
        let (name, rest) = rest.split_once('"')?;
        let text = rest.strip_prefix(" denied")?;
        let text = text.strip_prefix(" the request").unwrap_or(text);
        Some(Self { name, text: text.strip_prefix(':').unwrap_or(text).trim() })
    }

    fn refused(&self) -> EvictionAnswer {
        EvictionAnswer::WebhookRefused { name: self.name.to_owned(), text: self.text.to_owned() }
    }
}

/// What follows from a class: the cause to report, whether waiting helps (unset where that is no question), and how long.
struct Consequence(Option<Cause>, Option<bool>, Option<Duration>);

impl EvictionAnswer {
    /// The one table of what follows from each class. Waiting "helps" while something other than a human can clear it.
    ///
    /// The bounds: 60 s where a controller repairs itself on its next turn or not at all (virt-api's look-up of a VMI; the
    /// disruption controller's resync of a budget); 5 min where a pod must first start elsewhere (a webhook's server, the
    /// disruption controller) or an outside policy may change its mind. Without a bound the drain's deadline is it.
    fn consequence(&self) -> Consequence {
        const MINUTE: Option<Duration> = Some(Duration::from_secs(60));
        const FIVE_MINUTES: Option<Duration> = Some(Duration::from_secs(5 * 60));
        const HELPS: Option<bool> = Some(true);
        const NEVER: Option<bool> = Some(false);
        match self {
            Self::Accepted | Self::Gone | Self::PodReplaced | Self::ProbeImpossible { .. } => {
                Consequence(None, None, None)
            }
            Self::VmEvacuating { .. } => Consequence(Some(Cause::VmEvacuating), HELPS, None),
            Self::VmNotMigratable => Consequence(Some(Cause::VmNotMigratable), NEVER, None),
            Self::VmMigrationTarget => Consequence(Some(Cause::VmMigrationTarget), HELPS, None),
            Self::HotplugCompanion => Consequence(Some(Cause::HotplugCompanion), None, None),
            Self::VmLookupFailed { .. } => Consequence(Some(Cause::VmLookupFailed), HELPS, MINUTE),
            Self::EvictionMalformed { .. } => Consequence(Some(Cause::EvictionMalformed), NEVER, None),
            Self::BudgetExhausted { .. } => Consequence(Some(Cause::BudgetExhausted), HELPS, None),
            Self::BudgetUnsynced { .. } => Consequence(Some(Cause::BudgetUnsynced), HELPS, FIVE_MINUTES),
            Self::BudgetBroken { .. } => Consequence(Some(Cause::BudgetBroken), HELPS, MINUTE),
            Self::BudgetBusy { .. } => Consequence(Some(Cause::BudgetBusy), HELPS, None),
            Self::MultipleBudgets => Consequence(Some(Cause::MultipleBudgets), NEVER, None),
            Self::WebhookUnreachable { .. } => Consequence(Some(Cause::WebhookUnreachable), HELPS, FIVE_MINUTES),
            Self::WebhookRefused { .. } => Consequence(Some(Cause::WebhookRefused), HELPS, FIVE_MINUTES),
            Self::Throttled { .. } => Consequence(Some(Cause::Throttled), HELPS, None),
            Self::NamespaceTerminating => Consequence(Some(Cause::NamespaceTerminating), HELPS, None),
            Self::Forbidden { .. } => Consequence(Some(Cause::Forbidden), NEVER, None),
            Self::Invalid { .. } => Consequence(Some(Cause::Invalid), NEVER, None),
            Self::Unauthorized => Consequence(Some(Cause::Unauthorized), NEVER, None),
            Self::ServerTrouble { .. } => Consequence(Some(Cause::ServerTrouble), HELPS, None),
        }
    }

    /// Class of the reason; `None` where the answer stands in nobody's way.
    pub fn cause(&self) -> Option<Cause> {
        self.consequence().0
    }

    /// Whether waiting helps, by the answer alone: a budget that is exhausted may still be one that never recovers, which
    /// only its own status tells. `None` where that is no question, and for hot-plug pods, which follow their VM.
    pub fn waiting_helps(&self) -> Option<bool> {
        self.consequence().1
    }

    /// How long waiting for this is worth it, counted from the first such answer in a row; `None`: until the deadline.
    pub fn bound(&self) -> Option<Duration> {
        self.consequence().2
    }

    /// The answer in one clause, for people. What a server said in words that are not known here is quoted as it is.
    pub fn describe(&self) -> String {
        let budget = |name: &Option<String>| match name {
            Some(name) => format!("the disruption budget {name}"),
            None => "its disruption budget".to_owned(),
        };
        let clause = match self {
            Self::Accepted => "evicted".to_owned(),
            Self::Gone => "gone".to_owned(),
            Self::VmEvacuating { marked_now: true } => "KubeVirt has marked the VM for migration".to_owned(),
            Self::VmEvacuating { marked_now: false } => "KubeVirt is moving the VM".to_owned(),
            Self::VmNotMigratable => "its eviction strategy demands a live migration, which it cannot do".to_owned(),
            Self::VmMigrationTarget => "it takes part in a migration that is not finished".to_owned(),
            Self::HotplugCompanion => "holds a hot-plugged volume and leaves with its VM".to_owned(),
            Self::VmLookupFailed { text } => format!("KubeVirt could not handle the VM: {text}"),
            Self::EvictionMalformed { text } => format!("KubeVirt could not read the eviction: {text}"),
            Self::BudgetExhausted { budget: name, needs: Some(needs), has: Some(has), .. } => {
                format!("{} needs {needs} healthy pods and has {has}", budget(name))
            }
            Self::BudgetExhausted { text, .. } => text.clone(),
            Self::BudgetUnsynced { budget: name } => format!("{} has not been evaluated yet", budget(name)),
            Self::BudgetBroken { budget: name, text } => format!("{} is broken: {text}", budget(name)),
            Self::BudgetBusy { budget: Some(name) } => {
                format!("the disruption budget {name} is being changed by others")
            }
            Self::BudgetBusy { budget: None } => {
                "the API server timed out, perhaps over a disruption budget that others change".to_owned()
            }
            Self::MultipleBudgets => {
                "more than one disruption budget counts it, which evictions do not support".to_owned()
            }
            Self::PodReplaced => "another pod has its name now".to_owned(),
            Self::WebhookUnreachable { text } => unreachable(text),
            Self::WebhookRefused { name, text } => format!("the admission webhook {name} refuses: {text}"),
            Self::Throttled { after: Some(after) } => format!("the API server is busy, again in {}s", after.as_secs()),
            Self::Throttled { after: None } => "the API server is busy".to_owned(),
            Self::NamespaceTerminating => "its namespace is being deleted".to_owned(),
            Self::ProbeImpossible { text } => format!("a dry run is not possible: {text}"),
            Self::Forbidden { text } => format!("not permitted: {text}"),
            Self::Invalid { text } => format!("the API server does not accept the eviction: {text}"),
            Self::Unauthorized => "the API server does not accept the credentials".to_owned(),
            Self::ServerTrouble { text } => format!("the API server has trouble: {text}"),
        };
        super::raw::one_line(&clause)
    }
}

/// `failed calling webhook "NAME": failed to call webhook: Post "URL": WHY` in short: who is missing, and why. The URL, with
/// the time that the API server waits in it, tells an admin nothing that the name does not.
fn unreachable(text: &str) -> String {
    let rest = text.split_once("failed calling webhook \"").and_then(|(_, rest)| rest.split_once('"'));
    let Some((name, rest)) = rest else {
        let text = text.strip_prefix("Internal error occurred: ").unwrap_or(text);
        return format!("an admission webhook cannot be reached: {text}");
    };
    let who = if name.ends_with(".kubevirt.io") {
        "KubeVirt's webhook (virt-api)".to_owned()
    } else {
        format!("the admission webhook {name}")
    };
    let why = rest.trim_start_matches(": ").trim_start_matches("failed to call webhook: ");
    let posted = why.strip_prefix("Post \"").and_then(|rest| rest.split_once("\": "));
    let (url, why) = posted.unwrap_or(("", why));
    let waited = url.split_once("timeout=").map(|(_, time)| time.split('&').next().unwrap_or(time));
    match waited {
        Some(time) if why.contains("deadline exceeded") => format!("{who} does not answer within {time}"),
        _ => format!("{who} cannot be reached: {why}"),
    }
}

#[cfg(test)]
pub(super) mod tests;
