//! The preview's class of each VM is what then happens to it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prop_assert;
use proptest::test_runner::{TestCaseError, TestCaseResult, TestRunner};
use safe_drain::settings::{DrainOptions, DryRun};
use safe_drain_sim::Json;

use super::stage::{Flags, Stage, flags, stage};
use super::{config, in_virtual_time};
use crate::harness::{Flow, Outcome};

/// What may become of a class. Nobody acts for VMs with strategy External, so they wait until the deadline.
fn kept(class: &str, result: &str, exit: u8) -> bool {
    match class {
        "waits" => result == "pending",
        // A refused run changes nothing: all that was to be done is open.
        _ if exit == 4 => result == class || result == "pending",
        _ => result == class,
    }
}

fn compare(preview: &Outcome, run: &Outcome) -> TestCaseResult {
    let rows = |run: &Outcome, kind: &str| -> Vec<(String, String, String)> {
        let of = |r: &&serde_json::Value| {
            (r.text("/namespace").to_owned(), r.text("/name").to_owned(), r.text("/outcome").to_owned())
        };
        run.rows(kind).iter().map(of).collect()
    };
    for kind in ["vms", "pods"] {
        for (ns, name, class) in rows(preview, kind) {
            let result =
                rows(run, kind).into_iter().find(|(n, m, _)| (n, m) == (&ns, &name)).map(|(_, _, result)| result);
            let Some(result) = result else {
                return Err(TestCaseError::fail(format!("{ns}/{name} is in the preview only\n{run}")));
            };
            let pods_pass = kind == "pods" && class == "waits" && result == "evicts";
            if !kept(&class, &result, run.exit) && !pods_pass {
                return Err(TestCaseError::fail(format!("{ns}/{name}: {class} became {result}\n{preview}\n{run}")));
            }
        }
    }
    let waits = run.exit == 124 && rows(preview, "vms").iter().any(|(_, _, class)| class == "waits");
    prop_assert!(run.exit == preview.exit || waits, "exit {} was promised\n{}\n{}", preview.exit, preview, run);
    Ok(())
}

fn holds(stage: &Stage, flags: Flags) -> Result<Outcome, TestCaseError> {
    in_virtual_time(async {
        let sim = stage.build();
        let options = flags.options();
        let preview = DrainOptions { dry_run: DryRun::Client, ..options.clone() };
        let preview = Flow::new(&sim, preview).run().await;
        let run = Flow::new(&sim, options).without_preview().run().await;
        compare(&preview, &run)?;
        Ok(run)
    })
}

#[test]
fn what_the_preview_says_is_what_happens() {
    let seen = RefCell::new(BTreeMap::<String, usize>::new());
    let mut runner = TestRunner::new(config(100));
    let ran = runner.run(&(stage(), flags()), |(stage, flags)| {
        let run = holds(&stage, flags)?;
        for row in run.rows("vms").iter().filter(|_| run.exit != 4) {
            *seen.borrow_mut().entry(row.text("/outcome").to_owned()).or_default() += 1;
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    // Chance must have brought each of them about, or nothing was shown.
    let seen = seen.into_inner();
    println!("{seen:?}");
    for outcome in ["migrates", "restarts", "returns", "stays-off", "down-until-node", "pending", "blocks"] {
        assert!(seen.contains_key(outcome), "no VM {outcome}: {seen:?}");
    }
}
