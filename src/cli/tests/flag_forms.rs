//! Flags and their values.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::ExposeSecret;

use super::*;
use crate::settings::{ColorChoice, DryRun, EventsFile, OnAbort, OutputFormat, RestartStale};

#[test]
fn a_bare_node_has_the_documented_defaults() {
    assert_eq!(drained("n1"), DrainOptions::for_nodes(["n1"]));
    let options = drained("n1");
    assert!(options.ignore_daemonsets);
    assert_eq!(options.timeout, Duration::from_secs(30 * 60));
    assert_eq!(options.chunk_size, 100);
    assert_eq!(options.parallel.get(), 1);
    assert_eq!(output("n1"), OutputOptions::default());
    assert_eq!(client("n1").request_timeout, Some(Duration::from_secs(30)));
}

#[test]
fn every_flag_of_kubectl_drain_is_taken() {
    let options = drained(
        "n1 --force --ignore-daemonsets=false --delete-emptydir-data --grace-period 5 --timeout 1h --pod-selector a=b \
         --disable-eviction --skip-wait-for-delete-timeout 7 --chunk-size 500 --dry-run=server",
    );
    let selector = options.pod_selector.clone().unwrap();
    assert_eq!(selector.as_str(), "a=b");
    let expected = DrainOptions {
        force: true,
        ignore_daemonsets: false,
        delete_emptydir_data: true,
        grace_period: Some(5),
        timeout: Duration::from_secs(3600),
        pod_selector: Some(selector),
        disable_eviction: true,
        skip_wait_for_delete: Some(Duration::from_secs(7)),
        chunk_size: 500,
        dry_run: DryRun::Server,
        ..DrainOptions::for_nodes(["n1"])
    };
    assert_eq!(options, expected);
}

#[test]
fn every_own_flag_is_taken() {
    let line = "n1 --restart-stale=never --allow-vm-down --only-if-clear --wait-blocked --on-abort leave --parallel 3";
    let options = drained(line);
    assert_eq!(options.restart_stale, RestartStale::Never);
    assert!(options.allow_vm_down && options.only_if_clear && options.wait_blocked);
    assert_eq!(options.on_abort, OnAbort::Leave);
    assert_eq!(drained("n1 --on-abort cancel").on_abort, OnAbort::Cancel);
    assert_eq!(options.parallel.get(), 3);
    let shown = output("n1 --no-input -o yaml --events-file e.jsonl -q --color=never -v 6");
    let expected = OutputOptions {
        format: Some(OutputFormat::Yaml),
        events_file: Some(EventsFile::Path(PathBuf::from("e.jsonl"))),
        quiet: true,
        color: ColorChoice::Never,
        detailed_exitcode: false,
        verbosity: 6,
        no_input: true,
    };
    assert_eq!(shown, expected);
    assert!(output("audit --detailed-exitcode").detailed_exitcode);
    assert_refused("n1 --detailed-exitcode", &["unknown flag", "a flag of `kubectl safe-drain audit`"]);
}

#[test]
fn every_connection_flag_is_taken() {
    let options = client(
        "n1 --kubeconfig k --context c --cluster cl --user u -n ns -s https://x --token t --username un --password p \
         --as a --as-group g1 --as-group g2 --as-uid 7 --as-user-extra k=v=w --certificate-authority ca \
         --client-certificate cc --client-key ck --tls-server-name t.n --request-timeout 5",
    );
    assert_eq!(options.kubeconfig, Some(PathBuf::from("k")));
    assert_eq!(options.context.as_deref(), Some("c"));
    assert_eq!(options.cluster.as_deref(), Some("cl"));
    assert_eq!(options.user.as_deref(), Some("u"));
    assert_eq!(options.namespace.as_deref(), Some("ns"));
    assert_eq!(options.server.as_deref(), Some("https://x"));
    assert_eq!(options.token.unwrap().expose_secret(), "t");
    assert_eq!(options.username.as_deref(), Some("un"));
    assert_eq!(options.password.unwrap().expose_secret(), "p");
    assert_eq!(options.as_user.as_deref(), Some("a"));
    assert_eq!(options.as_groups, ["g1", "g2"]);
    assert_eq!(options.as_uid.as_deref(), Some("7"));
    assert_eq!(options.as_user_extra, [("k".to_owned(), "v=w".to_owned())]);
    assert_eq!(options.certificate_authority, Some(PathBuf::from("ca")));
    assert_eq!(options.client_certificate, Some(PathBuf::from("cc")));
    assert_eq!(options.client_key, Some(PathBuf::from("ck")));
    assert_eq!(options.tls_server_name.as_deref(), Some("t.n"));
    assert_eq!(options.request_timeout, Some(Duration::from_secs(5)));
    assert!(client("n1 --insecure-skip-tls-verify").insecure_skip_tls_verify);
}

#[test]
fn connection_flags_that_contradict_each_other_are_refused() {
    for line in ["n1 --as-group g", "n1 --as-uid 7", "n1 --as-user-extra k=v"] {
        assert_refused(line, &["--as USER"]);
    }
    assert_refused("n1 --as a --as-user-extra k", &["KEY=VALUE"]);
    assert_refused("n1 --insecure-skip-tls-verify --certificate-authority ca", &["--certificate-authority"]);
}

#[test]
fn booleans_take_kubectls_forms() {
    for form in ["--force", "--force=true", "--force=1", "--force=t", "--force=T", "--force=TRUE", "--force=True"] {
        assert!(drained(&format!("n1 {form}")).force, "{form}");
    }
    for form in ["--force=false", "--force=0", "--force=f", "--force=F", "--force=FALSE", "--force=False"] {
        assert!(!drained(&format!("n1 {form}")).force, "{form}");
    }
    assert!(output("n1 -q").quiet);
    assert!(!output("n1 -q=false").quiet);
    assert_eq!(output("n1 -qv5").verbosity, 5);
    assert_refused("n1 --force=yes", &["`--force=yes` is neither true nor false", "`--force=true`"]);
    assert_refused("n1 --force=", &["`--force=` is neither true nor false"]);
}

#[test]
fn a_boolean_never_takes_the_next_word() {
    assert_eq!(nodes("--force n1"), ["n1"]);
    assert_eq!(nodes("n1 --force false"), ["n1", "false"]);
}

#[test]
fn of_repeated_flags_the_last_wins() {
    assert!(!drained("n1 --force --force=false").force);
    assert_eq!(drained("n1 --timeout 1m --timeout 2m").timeout, Duration::from_secs(120));
    assert_eq!(drained("n1 --dry-run=server --dry-run").dry_run, DryRun::Client);
    assert_eq!(drained("n1 --dry-run --dry-run=none").dry_run, DryRun::None);
    assert_eq!(output("n1 -o json -o yaml").format, Some(OutputFormat::Yaml));
    assert_eq!(client("n1 --context a --context=b").context.as_deref(), Some("b"));
    assert_eq!(client("n1 --as x --as-group a --as-group=b").as_groups, ["a", "b"]);
}

#[test]
fn a_grace_period_may_be_negative() {
    assert_eq!(drained("n1 --grace-period -1").grace_period, None);
    assert_eq!(drained("n1 --grace-period=-1").grace_period, None);
    assert_eq!(drained("--grace-period -1 n1").targets, Targets::Nodes(vec!["n1".to_owned()]));
    assert_eq!(drained("n1 --grace-period 0").grace_period, Some(0));
    assert_refused("n1 --grace-period 1m", &["`--grace-period=1m`", "--grace-period=60"]);
}

#[test]
fn numbers_outside_their_range_are_refused() {
    for line in ["n1 --chunk-size=-1", "n1 --parallel 0", "n1 --parallel=x", "n1 -v x", "n1 --chunk-size="] {
        assert_refused(line, &["is no whole number"]);
    }
    assert_eq!(drained("n1 --chunk-size 0").chunk_size, 0);
    assert_eq!(drained("n1 --skip-wait-for-delete-timeout 0").skip_wait_for_delete, None);
}

#[test]
fn underscore_counts_as_dash_in_flag_names() {
    assert!(!drained("n1 --ignore_daemonsets=false").ignore_daemonsets);
    assert!(drained("n1 --delete_emptydir-data").delete_emptydir_data);
    assert_eq!(drained("--dry_run n1").dry_run, DryRun::Client);
    assert_eq!(client("n1 --request_timeout 7").request_timeout, Some(Duration::from_secs(7)));
}

#[test]
fn dry_run_and_restart_stale_take_the_next_word_as_a_node() {
    let options = drained("--dry-run n1");
    assert_eq!((options.dry_run, options.targets), (DryRun::Client, Targets::Nodes(vec!["n1".to_owned()])));
    let options = drained("--restart-stale n1");
    assert_eq!(options.restart_stale, RestartStale::Always);
    assert_eq!(options.targets, Targets::Nodes(vec!["n1".to_owned()]));
    assert_eq!(nodes("--dry-run server n1"), ["server", "n1"]);
}

#[test]
fn dry_run_takes_kubectls_values() {
    for (form, expected) in [
        ("--dry-run", DryRun::Client),
        ("--dry-run=client", DryRun::Client),
        ("--dry-run=server", DryRun::Server),
        ("--dry-run=none", DryRun::None),
        ("--dry-run=true", DryRun::Client),
        ("--dry-run=false", DryRun::None),
    ] {
        assert_eq!(drained(&format!("n1 {form}")).dry_run, expected, "{form}");
    }
    assert_refused("n1 --dry-run=sever", &["`--dry-run=sever`", "none, client, server", "did you mean `server`"]);
}

#[test]
fn an_empty_value_never_turns_a_preview_into_a_drain() {
    for line in ["n1 --dry-run=", "n1 --restart-stale=", "n1 --on-abort=", "n1 --timeout="] {
        let text = refused(line);
        assert!(text.contains("needs a value") || text.contains("is empty"), "{line}: {text}");
    }
}

#[test]
fn a_node_named_like_a_value_is_answered_with_did_you_mean() {
    let cases = [
        ("--dry-run server n1", "server", Some("did you mean `--dry-run=server`?")),
        ("--dry-run client", "client", Some("did you mean `--dry-run=client`?")),
        ("--dry-run none n1", "none", Some("did you mean `--dry-run=none`?")),
        ("--restart-stale always", "always", Some("did you mean `--restart-stale=always`?")),
        ("--restart-stale never n1", "never", Some("did you mean `--restart-stale=never`?")),
        ("n1 --restart-stale ask", "ask", Some("did you mean `--restart-stale=ask`?")),
        ("cancel --dry-run server", "server", Some("did you mean `--dry-run=server`?")),
        ("server", "server", None),
        ("--dry-run=server server", "server", None),
        ("--dry-run never", "never", None),
        ("--dry-run n1", "n1", None),
    ];
    for (line, node, expected) in cases {
        assert_eq!(did_you_mean(node, &parsed(line)).as_deref(), expected, "{line}");
    }
    let hint = |line: &str, node: &str| did_you_mean(node, &parsed(line)).unwrap();
    assert!(hint("n1 --force false", "false").contains("--force=false"));
    assert!(hint("n1 restart-stale", "restart-stale").contains("did you mean the sub-command?"));
    assert!(hint("node n1", "node").contains("node/NODE"));
}

#[test]
fn an_empty_selector_counts_as_not_given() {
    assert_refused("-l ''", &["`-l` is empty", "KEY=VALUE"]);
    assert_refused("--selector=", &["`-l` is empty"]);
    match parse(args(&["-l", "  "])) {
        Err(Exit::Error(error)) => assert!(error.message().contains("`-l` is empty")),
        other => panic!("{other:?}"),
    }
    assert_eq!(nodes("n1 -l ''"), ["n1"]);
    assert_eq!(drained("n1 --pod-selector ''").pod_selector, None);
}

#[test]
fn an_empty_variable_never_restarts_every_vm() {
    for line in ["restart-stale -l ''", "restart-stale --namespace="] {
        assert_refused(line, &["is empty, which would restart VMs everywhere"]);
    }
}

#[test]
fn an_empty_connection_flag_counts_as_not_given() {
    let options = client("n1 --context '' --kubeconfig= -n '' --token '' --as '' --as-group '' --server=");
    assert!(!options.chooses_connection());
    assert_eq!(options.namespace, None);
    assert!(options.as_groups.is_empty());
    assert_eq!(output("n1 -o ''").format, None);
}

#[test]
fn a_node_and_a_selector_exclude_each_other() {
    assert_refused("n1 -l a=b", &["cannot specify both a node name and a --selector option"]);
    match drained("-l node-role.kubernetes.io/worker=").targets {
        Targets::Selector(selector) => assert_eq!(selector.as_str(), "node-role.kubernetes.io/worker="),
        Targets::Nodes(nodes) => panic!("{nodes:?}"),
    }
}

#[test]
fn neither_a_node_nor_a_selector_is_refused() {
    for line in ["", "--dry-run", "--", "--context x"] {
        assert_refused(line, &["no node given", "kubectl safe-drain NODE...", "kubectl safe-drain --help"]);
    }
}

#[test]
fn a_selector_that_is_none_is_refused() {
    assert_refused("-l a=b=c", &["`--selector=a=b=c`"]);
    assert_refused("n1 --pod-selector=!", &["`--pod-selector=!`", "--pod-selector app=web"]);
}

#[test]
fn prefixes_and_duplicates_are_dropped() {
    assert_eq!(nodes("node/n1 nodes/n2 no/n3 n1 n3 n2"), ["n1", "n2", "n3"]);
}

#[test]
fn what_cannot_be_a_node_name_is_refused() {
    for line in ["''", "node/", "n1 ''"] {
        assert_refused(line, &["a node name is empty"]);
    }
    for line in ["pod/x", "node/a/b", "N1", "..", "n1,n2", "-- --force", "n_1"] {
        assert_refused(line, &["cannot be the name of a node"]);
    }
    assert_eq!(nodes("ip-10-0-0-1.eu-west-1.compute.internal"), ["ip-10-0-0-1.eu-west-1.compute.internal"]);
}

#[test]
fn a_timeout_is_a_go_duration_with_unit_and_limit() {
    for (text, seconds) in [("1h30m", 5400), ("90s", 90), ("1.5h", 5400), ("2m0s", 120)] {
        assert_eq!(drained(&format!("n1 --timeout {text}")).timeout, Duration::from_secs(seconds), "{text}");
    }
    assert_eq!(drained("n1 --timeout=100ms").timeout, Duration::from_millis(100));
    for text in ["30", "1d", "0", "0s", "-5m", "x", "''"] {
        assert_refused(&format!("n1 --timeout {text}"), &["`--timeout=", "`--timeout=30m`"]);
    }
    assert_refused("n1 --timeout=-5m", &["is negative", "`--timeout=30m`"]);
    assert_refused("n1 --timeout --dry-run", &["`--timeout=30m`"]);
}

#[test]
fn a_request_timeout_may_be_a_bare_number_of_seconds() {
    assert_eq!(client("n1 --request-timeout=5").request_timeout, Some(Duration::from_secs(5)));
    assert_eq!(client("n1 --request-timeout 1m").request_timeout, Some(Duration::from_secs(60)));
    assert_eq!(client("n1 --request-timeout 0").request_timeout, None);
    assert_refused("n1 --request-timeout -1", &["is negative", "`--request-timeout=30s`"]);
}

#[test]
fn an_output_other_than_json_or_yaml_is_refused_with_the_list() {
    assert_refused("n1 -o wide", &["`--output=wide` is not possible", "json, yaml"]);
    assert_refused("n1 --output=name", &["json, yaml"]);
    assert_eq!(output("n1 -ojson").format, Some(OutputFormat::Json));
}

#[test]
fn events_and_document_do_not_share_stdout() {
    assert_eq!(output("n1 --events-file -").events_file, Some(EventsFile::Stdout));
    assert_refused("n1 -o json --events-file -", &["both want stdout"]);
    assert!(output("n1 -o json --events-file e").format.is_some());
}

#[test]
fn harmless_flags_of_kubectl_are_accepted() {
    let line = "n1 --cache-dir d --vmodule a=1 --log-flush-frequency=5s --profile cpu --profile-output p \
                --disable-compression --kuberc r";
    assert_eq!(drained(line), DrainOptions::for_nodes(["n1"]));
    assert!(drained("n1 --delete-local-data").delete_emptydir_data);
}

#[test]
fn flags_that_promise_a_failure_are_refused() {
    assert_refused("n1 --warnings-as-errors", &["`--warnings-as-errors` is not supported: a warning"]);
    assert_refused("n1 --match-server-version", &["`--match-server-version` is not supported"]);
    assert_refused("--match-server-version audit", &["is not supported"]);
    assert_eq!(nodes("n1 --warnings-as-errors=false"), ["n1"]);
}

#[test]
fn an_unknown_flag_is_refused_with_a_suggestion() {
    assert_refused("n1 --forse", &["unknown flag `--forse`", "did you mean `--force`?"]);
    assert_refused("n1 -x", &["unknown flag `-x`", "see `kubectl safe-drain --help`"]);
    assert_refused("audit -x", &["see `kubectl safe-drain audit --help`"]);
    assert_refused("n1 -y", &["unknown flag `-y`", "--restart-stale"]);
    assert_refused("cancel n1 --force", &["unknown flag `--force`", "a flag of a drain"]);
}

#[test]
fn a_flag_without_its_value_is_refused() {
    assert_refused("n1 --context", &["`--context` needs a value"]);
    assert_refused("--context --dry-run n1", &["`--context` needs a value"]);
    assert_refused("n1 --on-abort", &["`--on-abort` needs a value", "leave, cancel"]);
}

#[test]
fn a_namespace_has_a_name_that_can_be() {
    for line in ["audit -n Bad_Name", "restart-stale -n a/b", "audit --namespace=../x"] {
        assert_refused(line, &["cannot be the name of a namespace", "small letters"]);
    }
    assert_eq!(client("n1 -n tenant-a").namespace.as_deref(), Some("tenant-a"));
}

#[test]
fn a_timeout_has_an_example_that_fits() {
    assert_refused("n1 --timeout", &["needs a value", "`--timeout=30m`"]);
    assert_refused("n1 --timeout=1d", &["`--timeout=24h`"]);
    assert_refused("n1 --timeout=0d", &["`--timeout=30m`"]);
}
