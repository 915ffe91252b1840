mod budgets;
mod staleness;
mod targets;
mod vms;
mod words;
