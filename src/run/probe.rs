//! `--dry-run=server`: one dry-run eviction or restart per item, asked once and read, never repeated.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::iter;

use crate::answer::{EvictionAnswer, RestartAnswer, classify_eviction, classify_restart};
use crate::cluster::Requests;
use crate::facts::{Index, Key, PodKey};
use crate::outcome::PodOutcome;
use crate::plan::{Plan, PodAction, VmAction, probed};
use crate::report::Task;

enum Question {
    Evict(PodKey),
    Delete(PodKey),
    Restart(Key),
}

enum Answer {
    Eviction(EvictionAnswer),
    Restart(RestartAnswer),
}

/// Asks the server about everything that the plan would send or leave alone because it blocks, and writes what it said
/// into the rows. Returns how many questions that took.
pub(super) async fn probe(requests: &Requests, plan: &mut Plan, index: &Index, at_a_time: usize, task: &Task) -> usize {
    let drains = *task == Task::Drain;
    let mut questions = Vec::new();
    for (n, node) in plan.nodes.iter().enumerate() {
        for (i, pod) in node.pods.iter().enumerate() {
            match pod.action {
                PodAction::Evict => questions.push((n, i, false, Question::Evict(pod.pod.clone()))),
                PodAction::Delete => questions.push((n, i, false, Question::Delete(pod.pod.clone()))),
                PodAction::Leave if pod.row.outcome == PodOutcome::Blocks => {
                    questions.push((n, i, false, Question::Evict(pod.pod.clone())));
                }
                PodAction::AwaitGone | PodAction::Leave | PodAction::Refuse => {}
            }
        }
        for (i, vm) in node.vms.iter().enumerate() {
            match vm.action {
                VmAction::Migrate | VmAction::ShutDown | VmAction::AwaitOwner => {
                    questions.push((n, i, true, Question::Evict(vm.launcher.clone())));
                }
                VmAction::Restart => questions.push((n, i, true, Question::Restart(vm.vmi.clone()))),
                // What blocks is asked about too: the server may see it otherwise. Outside a drain nothing is evicted; there
                // it is the restart that somebody may yet agree to.
                VmAction::Leave if !drains && vm.consent.is_some() => {
                    questions.push((n, i, true, Question::Restart(vm.vmi.clone())));
                }
                VmAction::Leave if drains && !vm.launcher.uid.is_empty() => {
                    questions.push((n, i, true, Question::Evict(vm.launcher.clone())));
                }
                VmAction::AwaitCondition | VmAction::AwaitMigration | VmAction::AwaitGone | VmAction::Leave => {}
            }
        }
    }
    let asked = questions.len();
    let mut answers = iter(questions)
        .map(|(n, i, vm, question)| async move {
            let answer = match question {
                Question::Evict(pod) => Answer::Eviction(classify_eviction(&requests.evict(&pod, None, true).await)),
                Question::Delete(pod) => {
                    Answer::Eviction(classify_eviction(&requests.delete_pod(&pod, None, true).await))
                }
                Question::Restart(vm) => Answer::Restart(classify_restart(&requests.restart_vm(&vm, true).await)),
            };
            (n, i, vm, answer)
        })
        .buffer_unordered(at_a_time);
    let mut silent: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    while let Some((n, i, vm, answer)) = answers.next().await {
        let node = &mut plan.nodes[n];
        let silence = match &answer {
            Answer::Eviction(answer) if vm => {
                probed::silence(answer).or_else(|| probed::passed_by(&node.vms[i], answer, index))
            }
            Answer::Eviction(answer) => probed::silence(answer),
            Answer::Restart(answer) => probed::restart_silence(answer),
        };
        silent.entry(n).or_default().extend(silence);
        match (vm, answer) {
            (true, Answer::Eviction(answer)) => probed::vm(&mut node.vms[i], &answer, index),
            (true, Answer::Restart(answer)) => probed::restart(&mut node.vms[i], &answer),
            (false, Answer::Eviction(answer)) => probed::pod(&mut node.pods[i], &answer),
            (false, Answer::Restart(_)) => {}
        }
    }
    for (n, silent) in silent {
        probed::unconfirmed(&mut plan.nodes[n], &silent);
    }
    asked
}
