//! The table of VMs: what a drain does to each, and why. Pure.

use super::remedies;
use super::style::{Label, Line};
use super::text::reason_row;
use super::words::{vm_because, vm_mark, vm_severity, vm_strategy};
use crate::outcome::{VmOutcome, VmRow};

/// The title of the column that says what happens, and its words.
pub type Happens = (&'static str, fn(VmOutcome) -> &'static str);

/// The rows of VMs, most severe first, in aligned columns.
pub fn vm_table(vms: &[VmRow], happens: Happens, width: Option<usize>) -> Vec<Line> {
    let mut rows: Vec<&VmRow> = vms.iter().collect();
    rows.sort_by(|a, b| (vm_severity(a), &a.namespace, &a.name).cmp(&(vm_severity(b), &b.namespace, &b.name)));
    let rows: Vec<(&VmRow, Option<String>)> = rows.into_iter().map(|row| (row, remedies::of_vm(row))).collect();
    table(&rows, happens, false, width)
}

/// Rows in this order with these remedies, on demand with a column for the node of each.
pub fn table(rows: &[(&VmRow, Option<String>)], happens: Happens, with_node: bool, width: Option<usize>) -> Vec<Line> {
    let (what, words) = happens;
    let node = |cell: &str| with_node.then(|| cell.to_owned());
    let joined = |name: String, node: Option<String>, strategy: String, on_drain: &str| -> Vec<String> {
        [Some(name), node, Some(strategy), Some(on_drain.to_owned())].into_iter().flatten().collect()
    };
    let head = joined("VM".to_owned(), node("NODE"), "STRATEGY".to_owned(), what);
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|(row, _)| {
            let place = node(row.node_before.as_deref().unwrap_or_default());
            joined(row.display_name(), place, vm_strategy(row), words(row.outcome))
        })
        .collect();
    let widest = |column: usize| {
        let own = |cells: &Vec<String>| Line::plain(&cells[column]).width();
        cells.iter().map(own).chain([own(&head)]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(widest).collect();
    let columns = |start: Line, labels: (Label, Label), cells: &[String]| {
        let last = cells.len() - 1;
        cells.iter().zip(&widths).enumerate().fold(start, |line, (column, (cell, width))| {
            let label = if column == last { labels.1 } else { labels.0 };
            line.and(Line::new().with(label, cell).padded(width + 2))
        })
    };
    let title = columns(Line::plain("  "), (Label::Heading, Label::Heading), &head).with(Label::Heading, "BECAUSE");
    let mut lines = vec![title];
    for ((row, remedy), cells) in rows.iter().zip(&cells) {
        let mark = vm_mark(row.outcome);
        let head = columns(Line::marked(mark), (Label::Plain, mark.label()), cells);
        lines.extend(reason_row(head, &vm_because(row), remedy.as_deref(), width));
    }
    lines
}
