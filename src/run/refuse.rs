//! The error of a command that is refused before anything was changed.

use std::collections::BTreeMap;

use crate::error::{CliError, ErrorKind};
use crate::plan::consent::Refusal;
use crate::report::text::{agree, names, plural};

/// Names that a hint lists before it only counts.
const NAMES: usize = 8;

/// One error for all refusals: what is missing, with one hint per flag and reason.
pub(super) fn error(refusals: &[Refusal]) -> CliError {
    let mut groups: BTreeMap<(Vec<&str>, &str), Vec<&str>> = BTreeMap::new();
    let mut general = Vec::new();
    for refusal in refusals {
        match &refusal.object {
            Some(object) => groups.entry((refusal.needs.clone(), refusal.because.as_str())).or_default().push(object),
            None => general.push(refusal.because.clone()),
        }
    }
    let objects: usize = groups.values().map(Vec::len).sum();
    let vms = refusals.iter().filter(|refusal| refusal.is_vm).count();
    let counts = [(vms, "VM", "VMs"), (objects - vms, "pod", "pods")];
    let counts = counts.into_iter().filter(|(n, ..)| *n > 0).map(|(n, one, many)| plural(n, one, many));
    let reason = match objects {
        0 => general.join("; "),
        n => format!("{} {} a flag first", counts.collect::<Vec<_>>().join(" and "), agree(n, "needs", "need")),
    };
    let message = format!("refused, nothing was changed: {reason}");
    let mut error = CliError::new(ErrorKind::Refused, message);
    for ((needs, because), objects) in groups {
        let names = names(&objects, NAMES);
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
