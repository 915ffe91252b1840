//! The one question of a run, before anything is changed. Pure.

use super::Task;
use super::style::{Label, Line, Mark};
use super::text::{names, plural, reason_row};

/// The words that end the question; the answer is typed behind them.
pub const PROMPT: &str = "Do you want to continue? (y/N): ";

/// A VM that the question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionVm {
    /// `namespace/name`.
    pub name: String,
    /// Why it is in its group.
    pub because: String,
}

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// What the run does.
    pub task: Task,
    /// Name of the kubeconfig context.
    pub context: Option<String>,
    /// Nodes of the command.
    pub nodes: Vec<String>,
    /// VMs that will be restarted.
    pub restarted: Vec<QuestionVm>,
    /// VMs that will not run afterwards.
    pub down: Vec<QuestionVm>,
    /// VMs that stay on their node and block it, whatever the answer is.
    pub staying: Vec<QuestionVm>,
}

/// The question as lines; [`PROMPT`] follows them, without a newline.
pub fn question(q: &Question, width: Option<usize>) -> Vec<Line> {
    let context = q.context.as_ref().map_or_else(String::new, |c| format!(" in context {c}"));
    let (head, restarted, staying) = match &q.task {
        Task::Drain => (
            format!("Draining {}{context}", names(&q.nodes, 8)),
            "will be restarted and run elsewhere afterwards",
            "will stay and block the node, whatever the answer",
        ),
        Task::Restart { scope } => (
            format!("Restarting the stale VMs in {scope}{}", context.replacen(" in", ",", 1)),
            "will be restarted (down until the guest has stopped and booted again)",
            "will not be restarted, whatever the answer",
        ),
    };
    let rest = " interrupts VMs. Nothing has been changed yet.";
    let rest = if q.task == Task::Drain { rest } else { ": that interrupts them. Nothing has been changed yet." };
    let mut lines = vec![Line::new().with(Label::Heading, head).with(Label::Plain, rest)];
    let groups = [
        (&q.restarted, Mark::Down, restarted),
        (&q.down, Mark::Down, "will not run afterwards"),
        (&q.staying, Mark::Blocks, staying),
    ];
    for (vms, mark, words) in groups {
        if vms.is_empty() {
            continue;
        }
        lines.push(Line::new());
        lines.push(Line::new().with(mark.label(), format!("{} {words}:", plural(vms.len(), "VM", "VMs"))));
        let widest = vms.iter().map(|vm| Line::plain(&vm.name).width()).max().unwrap_or(0);
        for vm in vms {
            let head = Line::plain("  ").and(Line::marked(mark)).and(Line::plain(&vm.name).padded(widest + 2));
            lines.extend(reason_row(head, &vm.because, None, width));
        }
    }
    lines.push(Line::new());
    lines
}
