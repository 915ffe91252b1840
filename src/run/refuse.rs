//! The error of a command that is refused before anything was changed.

use std::collections::BTreeMap;

use crate::error::{CliError, ErrorKind};
use crate::plan::consent::Refusal;
use crate::report::Task;

/// Names that a hint lists before it only counts.
const NAMES: usize = 8;

/// One error for all refusals: what is missing, with one hint per flag and reason.
pub(super) fn error(refusals: &[Refusal], task: &Task) -> CliError {
    let (one, many) = match task {
        Task::Drain => ("pod or VM", "pods or VMs"),
        Task::Restart { .. } => ("VM", "VMs"),
    };
    let mut groups: BTreeMap<(Vec<&str>, &str), Vec<&str>> = BTreeMap::new();
    let mut general = Vec::new();
    for refusal in refusals {
        match &refusal.object {
            Some(object) => groups.entry((refusal.needs.clone(), refusal.because.as_str())).or_default().push(object),
            None => general.push(refusal.because.clone()),
        }
    }
    let objects: usize = groups.values().map(Vec::len).sum();
    let message = match (objects, general.is_empty()) {
        (0, _) => format!("refused, nothing was changed: {}", general.join("; ")),
        (1, _) => format!("refused, nothing was changed: one {one} needs a flag first"),
        (n, _) => format!("refused, nothing was changed: {n} {many} need a flag first"),
    };
    let mut error = CliError::new(ErrorKind::Refused, message);
    for ((needs, because), objects) in groups {
        let names = crate::report::text::names(&objects, NAMES);
        let flags = needs.join(" and ");
        let hint =
            if flags.is_empty() { format!("{names}: {because}") } else { format!("{names}: {because} → {flags}") };
        error = error.hint(hint);
    }
    if objects > 0 {
        for text in general {
            error = error.hint(text);
        }
    }
    error
}
