//! Whether `--timeout` can be enough for a node.

use std::time::Duration;

use super::{PodAction, PodItem, RESTARTS_AT_A_TIME, VmAction, VmItem};
use crate::forecast::words::spoken;
use crate::outcome::VmOutcome;

/// A live migration hardly ever takes less; with the limit per node it gives the least time that a node needs.
const SHORTEST_MIGRATION: Duration = Duration::from_secs(15);
/// A fitting `--timeout` leaves this much on top of the least time.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(5 * 60);

/// A time that the node needs.
struct Needed {
    time: Duration,
    /// What needs it.
    why: String,
    /// What comes of a shorter `--timeout`.
    so: &'static str,
    /// True if more may well be needed.
    or_more: bool,
}

/// Compares the time that the node needs with `--timeout`: the guests' graces, with the restarts few at a time, the queue of
/// the migrations, and the pods that may take longer to stop. One value fits all of them.
pub(super) fn too_short<'a>(
    vms: impl IntoIterator<Item = &'a VmItem>,
    pods: &[PodItem],
    slots: u32,
    timeout: Duration,
) -> Vec<String> {
    let vms: Vec<&VmItem> = vms.into_iter().collect();
    let of_vms = [slowest(&vms, timeout), restarts(&vms, timeout), migrations(&vms, slots)];
    let of_vms = of_vms.into_iter().flatten().max_by_key(|needed| needed.time).filter(|n| n.time >= timeout);
    let all: Vec<Needed> = of_vms.into_iter().chain(stopping(pods, timeout)).collect();
    let longest = all.iter().map(|needed| needed.time).max().unwrap_or_default();
    let minutes = (longest + TIMEOUT_MARGIN).as_secs().div_ceil(60);
    let fits = if all.iter().any(|needed| needed.or_more) {
        format!("give it --timeout={minutes}m or more")
    } else {
        format!("--timeout={minutes}m fits")
    };
    let said = |n: Needed| format!("{}, and --timeout is {}{}: {fits}", n.why, spoken(timeout), n.so);
    all.into_iter().map(said).collect()
}

/// Pods that may take longer to stop than there is time.
fn stopping(pods: &[PodItem], timeout: Duration) -> Option<Needed> {
    let evicted = |pod: &&PodItem| matches!(pod.action, PodAction::Evict | PodAction::Delete);
    let slow: Vec<&PodItem> = pods.iter().filter(evicted).filter(|pod| pod.grace > timeout).collect();
    let time = slow.iter().map(|pod| pod.grace).max()?;
    let why = match slow.as_slice() {
        [pod] => format!("pod {} may take {} to stop", pod.pod, spoken(time)),
        several => format!("{} pods may take up to {} to stop", several.len(), spoken(time)),
    };
    Some(Needed { time, why, so: "", or_more: false })
}

/// The guest that may take longest to stop.
fn slowest(vms: &[&VmItem], timeout: Duration) -> Option<Needed> {
    let stops = |vm: &&&VmItem| matches!(vm.action, VmAction::ShutDown | VmAction::Restart | VmAction::AwaitGone);
    let vm = vms.iter().filter(stops).max_by_key(|vm| vm.grace)?;
    let unsent = vm.grace > timeout && vm.action != VmAction::AwaitGone;
    let why = format!("{} may take {} to shut down", vm.vmi, spoken(vm.grace));
    Some(Needed { time: vm.grace, why, so: if unsent { ", so it is not begun" } else { "" }, or_more: false })
}

/// Restarts wait for a place, and none is begun whose guest may take longer than the time that is left.
fn restarts(vms: &[&VmItem], timeout: Duration) -> Option<Needed> {
    let mut places = [Duration::ZERO; RESTARTS_AT_A_TIME];
    let restarts: Vec<&&VmItem> = vms.iter().filter(|vm| vm.action == VmAction::Restart).collect();
    for vm in &restarts {
        if let Some(place) = places.iter_mut().min() {
            *place += vm.grace;
        }
    }
    let n = restarts.len();
    let time = places.into_iter().max().filter(|_| n > RESTARTS_AT_A_TIME)?;
    let why = format!("{n} VMs restart, {RESTARTS_AT_A_TIME} at a time, which may take {}", spoken(time));
    let so = if time > timeout { ", so the last of them may not be begun" } else { "" };
    Some(Needed { time, why, so, or_more: false })
}

/// The least that the queue of migrations takes. How long one takes is up to its memory.
fn migrations(vms: &[&VmItem], slots: u32) -> Option<Needed> {
    let migrations = vms.iter().filter(|vm| vm.row.outcome == VmOutcome::Migrates).count();
    let rounds = u32::try_from(migrations).unwrap_or(u32::MAX).div_ceil(slots);
    let time = SHORTEST_MIGRATION.saturating_mul(rounds);
    let why = match migrations {
        0 => return None,
        1 => format!("1 VM migrates, which takes {} or more", spoken(time)),
        n => format!("{n} VMs migrate, {slots} at a time, which takes {} or more", spoken(time)),
    };
    Some(Needed { time, why, so: "", or_more: true })
}
