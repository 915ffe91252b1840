//! From a plan to an exit code: settle what is agreed to, then preview or execute. A drain and a restart go this way alike.

use futures::StreamExt;

use super::drain::{Asker, World};
use super::execute::execute;
use super::perform::Performer;
use super::session::Session;
use super::start::stopped;
use super::{probe, refuse};
use crate::cluster::Watches;
use crate::error::{CliError, ErrorKind};
use crate::event::{Consent as Consented, EventKind};
use crate::exit::ExitCode;
use crate::facts::Index;
use crate::machine::{Machine, MachineOptions, Planner};
use crate::plan::consent::{Consent, ConsentOptions, Decision, Question, RestartStale, decline, grant, settle};
use crate::plan::{self, ConsentKind, Plan, PlanOptions, would_exit};
use crate::report::style::page;
use crate::report::text::plural;
use crate::report::{Task, question as ask};
use crate::settings::{self, DryRun};

/// Evictions and restarts in flight at a time (design §8).
pub(super) const MAX_IN_FLIGHT: usize = 32;

/// What is known when a plan stands.
pub(super) struct Prepared {
    /// The cluster.
    pub(super) index: Index,
    /// What keeps it up to date.
    pub(super) watches: Watches,
    /// The plan, not settled.
    pub(super) plan: Plan,
    /// What the plan was told.
    pub(super) plan_options: PlanOptions,
}

/// What the command says about the way in which its plan is carried out.
pub(super) struct Terms {
    /// What it does.
    pub(super) task: Task,
    /// Whether it is a preview.
    pub(super) dry_run: DryRun,
    /// Consent to restarts of stale VMs.
    pub(super) restart_stale: settings::RestartStale,
    /// Consent to VMs that do not run afterwards.
    pub(super) allow_vm_down: bool,
    /// Change nothing if anything would block.
    pub(super) only_if_clear: bool,
    /// How the machine works.
    pub(super) machine: MachineOptions,
}

impl Terms {
    fn consent(&self, question_possible: bool) -> ConsentOptions {
        let restart_stale = match self.restart_stale {
            settings::RestartStale::Unset => RestartStale::Unset,
            settings::RestartStale::Ask => RestartStale::Ask,
            settings::RestartStale::Always => RestartStale::Always,
            settings::RestartStale::Never => RestartStale::Never,
        };
        ConsentOptions { question_possible, restart_stale, allow_vm_down: self.allow_vm_down }
    }
}

/// Previews the plan, or settles and executes it.
pub(super) async fn carry_out(world: World, terms: &Terms, prepared: Prepared, session: &mut Session) -> ExitCode {
    if terms.dry_run.is_preview() {
        preview(world, terms, prepared, session).await
    } else {
        settle_and_execute(world, terms, prepared, session).await
    }
}

/// Shows what the same command would do without a terminal, and ends after one pass.
async fn preview(mut world: World, terms: &Terms, mut prepared: Prepared, session: &mut Session) -> ExitCode {
    let decision = settle(&mut prepared.plan, &terms.consent(false));
    emit_consent(terms, Consented::None, session);
    // The watches were never opened; the probes need their connections.
    drop(prepared.watches);
    if terms.dry_run == DryRun::Server {
        let requests = world.connection.requests();
        let asked = tokio::select! {
            Some(reason) = world.signals.next() => return stopped(session, reason),
            asked = probe::probe(&requests, &mut prepared.plan, &prepared.index, MAX_IN_FLIGHT, &terms.task) => asked,
        };
        let requests = plural(asked, "dry run", "dry runs");
        let text = format!("the API server was asked by {requests}, without effect");
        session.emit(EventKind::Noted { warning: false, text });
    }
    session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
    let exit = match decision {
        Decision::Refuse(_) => ExitCode::Refused,
        Decision::Go | Decision::Ask(_) => would_end(&prepared.plan, terms),
    };
    session.end(exit, None)
}

/// The exit code that the plan promises.
fn would_end(plan: &Plan, terms: &Terms) -> ExitCode {
    if terms.only_if_clear && !plan.is_clear() {
        return ExitCode::Refused;
    }
    ExitCode::from_code(would_exit(plan))
}

fn emit_consent(terms: &Terms, by_answer: Consented, session: &mut Session) {
    let restart_flag = terms.restart_stale == settings::RestartStale::Always;
    session.emit(EventKind::Consented {
        restart_stale: if restart_flag { Consented::Flag } else { by_answer },
        vm_down: if terms.allow_vm_down { Consented::Flag } else { by_answer },
    });
}

async fn settle_and_execute(
    mut world: World,
    terms: &Terms,
    mut prepared: Prepared,
    session: &mut Session,
) -> ExitCode {
    let consent_options = terms.consent(world.asker.is_some());
    let decision = settle(&mut prepared.plan, &consent_options);
    let mut consent = Consent::by_flags(consent_options);
    let mut by_answer = Consented::None;
    match decision {
        Decision::Go => {}
        Decision::Refuse(refusals) => {
            session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
            let error = refuse::error(&refusals);
            return session.end(error.exit_code(), Some(&error));
        }
        Decision::Ask(question) => {
            if terms.only_if_clear && !prepared.plan.is_clear() {
                return not_clear(&prepared.plan, session);
            }
            // What a yes leads to, with its warnings, before the question.
            session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
            let answered = tokio::select! {
                Some(reason) = world.signals.next() => return stopped(session, reason),
                answer = put(&mut world.asker, world.connection.context.as_ref(), world.width, &terms.task, &question) => answer,
            };
            if answered != "y" && answered != "Y" {
                decline(&mut prepared.plan, &question, &consent_options);
                emit_consent(terms, Consented::Declined, session);
                session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
                let error =
                    CliError::new(ErrorKind::Refused, "not confirmed; nothing was changed").hint(match terms.task {
                        Task::Drain if question.asked().any(|vm| vm.kind == ConsentKind::EvictDown) => {
                            "--dry-run shows the plan; a VM that may not go down must be moved or stopped by hand first"
                        }
                        Task::Drain => "--restart-stale=never drains what needs no restart; --dry-run shows the plan",
                        Task::Restart { .. } => "-n and -l choose some of them; --dry-run shows the plan",
                    });
                return session.end(error.exit_code(), Some(&error));
            }
            consent = grant(&mut prepared.plan, &question, &consent_options);
            by_answer = Consented::Answer;
        }
    }
    if terms.only_if_clear && !prepared.plan.is_clear() {
        return not_clear(&prepared.plan, session);
    }
    emit_consent(terms, by_answer, session);
    session.emit(EventKind::Planned { nodes: prepared.plan.reports() });
    run_machine(world, terms, prepared, consent, session).await
}

/// `--only-if-clear`, and something stands in the way.
fn not_clear(plan: &Plan, session: &mut Session) -> ExitCode {
    session.emit(EventKind::Planned { nodes: plan.reports() });
    let message = "something would block, and --only-if-clear is given; nothing was changed";
    let error = CliError::new(ErrorKind::Refused, message).hint("--dry-run shows what stands in the way");
    session.end(error.exit_code(), Some(&error))
}

/// Puts the question and gives the line that was typed.
async fn put(
    asker: &mut Option<Asker>,
    context: Option<&String>,
    width: Option<usize>,
    task: &Task,
    question: &Question,
) -> String {
    let vms = |vms: &[plan::consent::QuestionVm]| {
        let because = |vm: &plan::consent::QuestionVm| match vm.data_loss.as_slice() {
            [] => vm.because.clone(),
            lost => format!("{}; loses the data of {}", vm.because, lost.join(", ")),
        };
        vms.iter().map(|vm| ask::QuestionVm { name: vm.vm.to_string(), because: because(vm) }).collect()
    };
    let shown = ask::Question {
        task: task.clone(),
        context: context.cloned(),
        nodes: question.nodes.clone(),
        restarted: vms(&question.restarted),
        down: vms(&question.not_running),
        staying: vms(&question.blocking),
    };
    let text = page(&ask::question(&shown, width), false) + ask::PROMPT;
    match asker {
        Some(asker) => asker(text).await,
        None => String::new(),
    }
}

async fn run_machine(
    mut world: World,
    terms: &Terms,
    prepared: Prepared,
    consent: Consent,
    session: &mut Session,
) -> ExitCode {
    let Prepared { index, mut watches, plan, plan_options } = prepared;
    let planner = Planner { options: plan_options, consent };
    let (clock, first) = (session.clock, session.next_seq());
    let mut machine = Machine::new(index, plan, Box::new(planner), terms.machine.clone(), clock.started_at(), first);
    let performer = Performer::new(world.connection.clone());
    execute(&mut machine, &performer, &mut watches, &mut world.signals, session.reporter.as_mut(), &clock).await
}
