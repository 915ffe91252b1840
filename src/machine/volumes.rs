//! What is still attached to a node whose pods are gone. Who powers it off too early makes their successors wait for a
//! forced detach (6 minutes, `maxWaitForUnmountDuration` of the attach-detach controller).

use std::time::Duration;

use super::core::{Asker, Core};
use super::node::{NodeRun, Phase};
use super::pod::Closed;
use super::types::{EffectKind, Failure, RequestId};
use crate::event::EventKind;
use crate::outcome::{PodOutcome, still_attached};
use crate::plan::Wave;

/// How long the list may hold up the end: it only adds to what is told.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is known of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Volumes {
    /// Nobody asked.
    #[default]
    Unasked,
    /// A list is on its way, and waited for until then.
    Asked { id: RequestId, until: Duration },
    /// Their names, or why they are not known.
    Told(Result<Vec<String>, Failure>),
}

impl Volumes {
    /// Until when the end waits for them.
    pub(super) fn until(&self) -> Option<Duration> {
        match self {
            Self::Asked { until, .. } => Some(*until),
            Self::Unasked | Self::Told(_) => None,
        }
    }
}

impl NodeRun {
    /// Asks for them, together with the last list of pods. Where something blocks, or is left out
    /// by `--pod-selector`, volumes are attached for a reason.
    pub(super) fn ask_for_volumes(&mut self, core: &mut Core, now: Duration) {
        self.volumes = Volumes::Unasked;
        let blocked = self.closings().any(|closed| matches!(closed, Some(Closed::Blocked | Closed::Pending)));
        if blocked || self.pods.iter().any(|pod| pod.item.row.outcome == PodOutcome::NotSelected) {
            return;
        }
        let kind = EffectKind::ListVolumes { node: self.place.node.clone() };
        let id = core.send(self.place.number, Asker::Node, kind);
        self.volumes = Volumes::Asked { id, until: now + PATIENCE };
    }

    /// The list came, or did not.
    pub(super) fn volumes_listed(
        &mut self,
        id: RequestId,
        result: Result<Vec<String>, Failure>,
        core: &mut Core,
        now: Duration,
    ) {
        if matches!(self.volumes, Volumes::Asked { id: own, .. } if own == id) {
            self.volumes = Volumes::Told(result);
            if self.phase == Phase::Emptied {
                self.end_if_told(core, now);
            }
        }
    }

    /// The node is empty: it ends as soon as there is nothing more to learn.
    pub(super) fn end_if_told(&mut self, core: &mut Core, now: Duration) {
        if self.is_held(core) {
            self.phase = Phase::Running(Wave::Infrastructure);
        } else if self.volumes.until().is_none_or(|until| until <= now) {
            self.tell_volumes(core, now);
            self.finish(None, core, now);
        }
    }

    /// Puts what was learned into the report.
    pub(super) fn tell_volumes(&mut self, core: &mut Core, now: Duration) {
        let why = match &self.volumes {
            Volumes::Unasked => return,
            Volumes::Told(Ok(names)) => {
                if !names.is_empty() {
                    self.warnings.push(still_attached(names));
                }
                return;
            }
            Volumes::Told(Err(Failure::Forbidden(_))) => "listing volumeattachments is not permitted",
            Volumes::Told(Err(failure)) => failure.text(),
            Volumes::Asked { .. } => "the list did not come in time",
        };
        let text = format!("which volumes are still attached to {} is not known: {why}", self.place.node);
        core.emit(now, EventKind::Noted { warning: false, text });
    }

    /// Names of the volumes that are attached at the end.
    pub(super) fn attached(&self) -> Vec<String> {
        if let Volumes::Told(Ok(names)) = &self.volumes { names.clone() } else { Vec::new() }
    }
}
