#!/bin/sh
# Drains on simulated clusters: of a node with VMs (first the preview, then the drain), then of one with pods only.
#
# Needs Rust only. Asks nothing and touches no real cluster: the simulator listens on loopback and hands its own
# kubeconfig to the commands it runs. Succeeds when the first two end with 3 (a VM remains that only a human can clear)
# and the third with 0.
set -eu

# The second part: the simulator runs this script again, with KUBECONFIG set to its cluster.
if [ "${1:-}" = inside ]; then
    tool=$2
    failed=0

    # What is shown, the exit code that it should have, the arguments.
    show() {
        title=$1
        expected=$2
        shift 2
        printf '\n=== %s\n$ kubectl safe-drain %s\n\n' "$title" "$*"
        code=0
        "$tool" "$@" </dev/null || code=$?
        printf '\n=== exit code %s' "$code"
        if [ "$code" -eq "$expected" ]; then
            printf ', as expected\n'
        else
            printf ', but %s was expected\n' "$expected"
            failed=1
        fi
    }

    if [ "$3" = plain ]; then
        show 'A node with pods only.' 0 node-0 --no-input
        exit "$failed"
    fi
    show 'What would happen? Nothing is changed.' 3 \
        node-0 --dry-run
    show 'Drain it, and restart the VMs that block only for their old eviction strategy.' 3 \
        node-0 --restart-stale --no-input --timeout 60s
    echo 'Why 3 (blocked) is right here: pinned-1 must migrate and cannot, and each migration of fail-1 fails. Both stay'
    echo 'until somebody types what the list above says. A clean drain, as the next one, ends with "drained" and 0.'
    exit "$failed"
fi

CARGO=${CARGO:-cargo}
cd "$(dirname "$0")/.."

echo 'Building the plugin and the simulator ...'
$CARGO build --locked --bin kubectl-safe_drain
$CARGO build --locked -p safe-drain-sim --bin safe-drain-sim

# Where cargo puts programs: the target folder may have been moved by configuration.
target=$($CARGO metadata --locked --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
bin=${target:-target}/debug

# The cluster is on loopback; a proxy of the machine must not be asked for it.
NO_PROXY=127.0.0.1,localhost
no_proxy=$NO_PROXY
export NO_PROXY no_proxy

echo
echo 'Starting a simulated cluster: 3 nodes, VMs on node-0 that were created under LiveMigrate, and a cluster'
echo 'evictionStrategy that is LiveMigrateIfPossible by now. Its guests and migrations run 4 times as fast.'
code=0
for scenario in strategy-switch plain; do
    "$bin/safe-drain-sim" run --scenario "$scenario" --speed 4 -- \
        sh "$PWD/tests/demo.sh" inside "$bin/kubectl-safe_drain" "$scenario" || code=$?
done

echo
if [ "$code" -eq 0 ]; then
    echo 'The demo went as expected.'
else
    echo "The demo did not go as expected (exit code $code)." >&2
fi
exit "$code"
