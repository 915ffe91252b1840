use super::*;
use crate::report::Task;
use crate::report::question::{PROMPT, Question, QuestionVm, question};

#[test]
fn the_question() {
    let vm = |name: &str, because: &str| QuestionVm { name: format!("tenant-a/{name}"), because: because.into() };
    let q = Question {
        task: Task::Drain,
        context: Some("prod".into()),
        nodes: vec!["node-0".into(), "node-1".into()],
        restarted: vec![
            vm("db-0", "a restart gives it LiveMigrateIfPossible"),
            vm("gpu-1", "as db-0; the GPU model is free on node-2"),
        ],
        down: vec![vm("legacy-1", "runStrategy Manual: nothing starts it again")],
        staying: vec![vm("pinned-1", "its VM template asks for LiveMigrate")],
    };
    insta::assert_snapshot!(text(&question(&q, Some(80))) + PROMPT, @r"
    Draining node-0, node-1 in context prod interrupts VMs. Nothing has been changed yet.

    2 VMs will be restarted and run elsewhere afterwards:
      ! tenant-a/db-0   a restart gives it LiveMigrateIfPossible
      ! tenant-a/gpu-1  as db-0; the GPU model is free on node-2

    1 VM will not run afterwards:
      ! tenant-a/legacy-1  runStrategy Manual: nothing starts it again

    1 VM will stay and block the node, whatever the answer:
      ✗ tenant-a/pinned-1  its VM template asks for LiveMigrate

    Do you want to continue? (y/N):
    ");
}
