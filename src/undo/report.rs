//! The rows of an undo: what came of each VM and of the cordon, why, and what is left to do.

use super::{Tried, Trouble, UNANSWERED, Undo, Vm, old_release};
use crate::exit::ExitCode;
use crate::facts::{FIELD_MANAGER, Index, Key};
use crate::outcome::{CordonOutcome, UndoMigration, UndoOutcome, UndoReport, UndoRow, UndoVerdict};

/// How far an undo has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing was sent: what would come of it.
    Preview,
    /// It went as far as it could.
    Ran,
    /// A signal ended it, with that code.
    Stopped(ExitCode),
    /// There is no contact with the API server: what was known last.
    Lost,
}

/// What keeps a VM's evacuation going: reason, remedy, and the code that it stands for.
type Obstacle = (String, Option<String>, ExitCode);

impl Undo {
    /// What came of it, or would come.
    pub fn report(&self, index: &Index, end: End, elapsed_seconds: f64) -> UndoReport {
        let mut codes = Vec::new();
        let vms: Vec<UndoRow> = self.vms.iter().map(|(key, vm)| self.row(index, end, key, vm, &mut codes)).collect();
        let (cordon, cordon_because) = self.cordon(index, end, &vms, &mut codes);
        codes.extend((end == End::Lost).then_some(ExitCode::Api));
        let node = index.node(&self.node);
        let code = ExitCode::of_all(codes);
        UndoReport {
            name: self.node.clone(),
            uid: node.map(|n| n.uid.clone()),
            verdict: verdict(code, end),
            exit_code: code.code(),
            cordoned_before: self.cordoned_before,
            cordoned_by: self.cordoned_by.clone(),
            cordoned_now: node.is_some_and(|n| n.unschedulable) && self.uncordon != Tried::Done,
            cordon,
            cordon_because,
            elapsed_seconds,
            vms,
        }
    }

    fn row(&self, index: &Index, end: End, key: &Key, vm: &Vm, codes: &mut Vec<ExitCode>) -> UndoRow {
        let now = index.vmi(key).filter(|v| vm.uid.is_none() || vm.uid.as_ref() == Some(&v.uid));
        let marked = now.is_some() && self.is_marked(index, key);
        let unfinished: Vec<_> = self.unfinished(index, key, vm).collect();
        let node = now.and_then(|v| v.node.clone());
        let (outcome, because, remedy) = if let Some((because, remedy, code)) = self.obstacle(index, key, vm, marked) {
            codes.push(code);
            (UndoOutcome::Blocks, because, remedy)
        } else if end == End::Preview {
            (UndoOutcome::Cancels, String::new(), None)
        } else if marked || !unfinished.is_empty() {
            codes.push(match end {
                End::Stopped(code) => code,
                End::Preview | End::Ran | End::Lost => ExitCode::Timeout,
            });
            (UndoOutcome::Pending, pending(vm, marked, end), None)
        } else if now.is_none_or(|v| v.phase.is_final()) {
            (UndoOutcome::Gone, "it was stopped or deleted meanwhile".to_owned(), None)
        } else if vm.ran_here && node.as_ref().is_some_and(|node| *node != self.node) {
            (UndoOutcome::Migrates, "it had left before its migration could be stopped".to_owned(), None)
        } else {
            (UndoOutcome::Cancels, String::new(), None)
        };
        let migrations = vm.migrations.iter().map(|(name, own)| {
            let open = unfinished.iter().find(|m| m.key.name == *name);
            let planned = end == End::Preview && outcome == UndoOutcome::Cancels;
            UndoMigration {
                name: name.clone(),
                uid: own.uid.clone(),
                deletes: planned || own.delete == Tried::Done || open.is_some_and(|m| m.deleting),
                finished: open.is_none(),
            }
        });
        UndoRow {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            vmi_uid: vm.uid.clone(),
            owner: vm.owner.clone(),
            node,
            marked,
            outcome,
            migrations: migrations.collect(),
            because,
            remedy,
        }
    }

    /// What waiting will not clear.
    fn obstacle(&self, index: &Index, key: &Key, vm: &Vm, marked: bool) -> Option<Obstacle> {
        let unfinished = || self.unfinished(index, key, vm);
        if let Some(taint) = self.taint(index).filter(|_| marked || unfinished().next().is_some()) {
            let because = format!("the node has the taint {taint}, by which KubeVirt evacuates all of it");
            let remedy = format!("`kubectl taint node {} {taint}-`, then the same command again", self.node);
            return Some((because, Some(remedy), ExitCode::Blocked));
        }
        if marked {
            let release = old_release(index).map(str::to_owned);
            return match (&vm.unmark, release) {
                (_, Some(version)) => Some(no_such_call(key, vm, &format!("KubeVirt {version}"))),
                (Tried::Failed(Trouble::Unsupported), None) => Some(no_such_call(key, vm, "this KubeVirt")),
                (Tried::Failed(trouble), None) => Some(self.refusal(trouble, "the mark")),
                (Tried::Not | Tried::Later(_) | Tried::Doubtful(..) | Tried::Done, None) => None,
            };
        }
        let failed = unfinished().find_map(|m| match &vm.migrations.get(&m.key.name)?.delete {
            Tried::Failed(trouble) if !m.deleting => Some((m, trouble)),
            Tried::Failed(_) | Tried::Not | Tried::Later(_) | Tried::Doubtful(..) | Tried::Done => None,
        });
        failed.map(|(m, trouble)| self.refusal(trouble, &format!("the migration {}", m.key.name)))
    }

    fn refusal(&self, trouble: &Trouble, what: &str) -> Obstacle {
        match trouble {
            Trouble::Forbidden(text) => {
                let remedy = "get that permission (deploy/rbac-cancel.yaml has all that it needs)".to_owned();
                (format!("{what} stays, not permitted: {text}"), Some(remedy), ExitCode::Failed)
            }
            Trouble::Unsupported => (format!("{what} stays: the API server has no such call"), None, ExitCode::Failed),
            Trouble::Refused(text) => (format!("{what} stays, the server says: {text}"), None, ExitCode::Blocked),
            Trouble::Returned => {
                let because =
                    format!("{what} was taken off and is there again: does a drain of {} still run?", self.node);
                (because, Some("end that drain, then the same command again".to_owned()), ExitCode::Blocked)
            }
        }
    }

    /// What becomes of the cordon, and why it stays where it does.
    fn cordon(
        &self,
        index: &Index,
        end: End,
        vms: &[UndoRow],
        codes: &mut Vec<ExitCode>,
    ) -> (CordonOutcome, Option<String>) {
        if self.uncordon == Tried::Done {
            return (CordonOutcome::Lifts, None);
        }
        let Some(node) = index.node(&self.node).filter(|n| n.unschedulable) else { return (CordonOutcome::None, None) };
        if node.cordoned_by.as_deref() != Some(FIELD_MANAGER) {
            let by = match &node.cordoned_by {
                Some(manager) => format!("{manager} set it, not safe-drain"),
                None => "the API does not tell who set it".to_owned(),
            };
            return (CordonOutcome::Stays, Some(by));
        }
        let remains = |row: &&UndoRow| matches!(row.outcome, UndoOutcome::Blocks | UndoOutcome::Pending);
        if vms.iter().any(|row| remains(&row)) {
            return (CordonOutcome::Stays, Some("VMs are still being evacuated".to_owned()));
        }
        match (&self.uncordon, end) {
            (Tried::Failed(trouble), _) => {
                let (because, _, code) = self.refusal(trouble, "the cordon");
                codes.push(code);
                (CordonOutcome::Stays, Some(because))
            }
            (_, End::Preview) => (CordonOutcome::Lifts, None),
            (tried, End::Ran | End::Stopped(_) | End::Lost) => {
                codes.push(if let End::Stopped(code) = end { code } else { ExitCode::Timeout });
                let because = match tried {
                    Tried::Later(text) | Tried::Doubtful(text, _) => format!("it could not be lifted in time: {text}"),
                    Tried::Not | Tried::Done | Tried::Failed(_) => "its turn did not come".to_owned(),
                };
                (CordonOutcome::Stays, Some(because))
            }
        }
    }
}

/// Why a mark cannot be taken off at all.
fn no_such_call(key: &Key, vm: &Vm, release: &str) -> Obstacle {
    let goes_on = if vm.external {
        "the controller that owns it may still act"
    } else {
        "it goes on migrating, and an uncordon would not stop that"
    };
    let because =
        format!("it stays marked for evacuation, since {release} cannot take a mark off (1.7 can); {goes_on}");
    let Key { namespace, name } = key;
    let remedy = match vm.owner.as_ref().map(|o| o.kind.as_str()) {
        Some("VirtualMachine") => {
            format!("let it migrate, or restart it, which takes the mark off: `virtctl restart {name} -n {namespace}`")
        }
        _ => "let it migrate: only its deletion would take the mark off".to_owned(),
    };
    (because, Some(remedy), ExitCode::Blocked)
}

/// Why a VM is not through yet.
fn pending(vm: &Vm, marked: bool, end: End) -> String {
    let tried = if marked { Some(&vm.unmark) } else { vm.migrations.values().map(|m| &m.delete).find(|t| t.is_open()) };
    match tried {
        Some(Tried::Later(text)) if text == UNANSWERED => UNANSWERED.to_owned(),
        Some(Tried::Later(text)) => format!("KubeVirt's API cannot be reached: {text}"),
        Some(Tried::Doubtful(text, _)) => format!("the server says: {text}"),
        Some(Tried::Done) => "its mark was taken off; what came of it was not looked at any more".to_owned(),
        Some(Tried::Not | Tried::Failed(_)) if end == End::Ran => "no answer came in time".to_owned(),
        Some(Tried::Not | Tried::Failed(_)) => "its turn did not come".to_owned(),
        None => "its migration is being stopped, which it may still outrun".to_owned(),
    }
}

fn verdict(code: ExitCode, end: End) -> UndoVerdict {
    match code {
        ExitCode::Done if end == End::Preview => UndoVerdict::Clear,
        ExitCode::Done => UndoVerdict::Undone,
        ExitCode::Blocked => UndoVerdict::Blocked,
        ExitCode::Timeout => UndoVerdict::Timeout,
        ExitCode::Hangup | ExitCode::Interrupted | ExitCode::Terminated => UndoVerdict::Interrupted,
        ExitCode::Failed | ExitCode::Usage | ExitCode::Refused | ExitCode::VmDown | ExitCode::Api => {
            UndoVerdict::Failed
        }
    }
}
