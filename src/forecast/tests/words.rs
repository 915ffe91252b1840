//! Words that depend on what others say.

use crate::facts::Key;
use crate::forecast::words::{after_failed_migrations, scheduler};

#[test]
fn of_the_schedulers_words_what_it_says_of_nodes_is_kept() {
    let long = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Too many pods. no new claims to deallocate, \
                preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(scheduler(long), "0/3 nodes are available: 1 node(s) were unschedulable, 2 Too many pods");
    let older = "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 No preemption victims found.";
    assert_eq!(scheduler(older), "0/1 nodes are available: 1 Insufficient memory");
    for other in ["no nodes available to schedule pods", ""] {
        assert_eq!(scheduler(other), other);
    }
}

#[test]
fn what_helps_against_failing_migrations_depends_on_why_they_fail() {
    let key = Key::new("tenant-a", "web-1");
    let help = |why: &str| after_failed_migrations(why, &key, true);
    let cpu =
        "internal error: unable to execute QEMU command: guest CPU doesn't match specification: missing features: pcid";
    assert!(
        help(cpu)
            .starts_with("waiting does not heal it: add a host with that CPU, or `virtctl restart web-1 -n tenant-a`")
    );
    assert!(!after_failed_migrations(cpu, &key, false).contains("restart"), "there is nothing to restart");
    for slow in [
        "Live migration is not completed after 150 seconds and has been aborted",
        "Live migration stuck for 150 seconds",
    ] {
        assert!(help(slow).contains("completionTimeoutPerGiB"), "{slow}");
    }
    assert!(help("no node accepts its target pod: 0/3 nodes are available").starts_with("make room for it"));
    assert!(help("Target pod is down").starts_with("`kubectl get pods -n tenant-a -l vm.kubevirt.io/name=web-1`"));
    for why in [cpu, "stuck", "no node accepts", "Target pod is down", ""] {
        assert_eq!(help(why).matches('`').count() % 2, 0, "{}", help(why));
    }
    assert!(after_failed_migrations("", &key, false).ends_with("`kubectl delete vmi web-1 -n tenant-a`"));
}
