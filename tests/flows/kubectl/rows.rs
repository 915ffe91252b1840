//! Where this tool differs from `kubectl drain` on purpose: the rows of the table in README that tests allow differences by.

const README: &str = include_str!("../../../README.md");

/// kubectl's side of a row.
pub type Row = &'static str;

pub const TIMEOUT: Row = "waits for ever unless `--timeout` is given";
pub const CORDONS_FIRST: Row = "cordons, then checks";
pub const CORDON_REFUSED: Row = "goes on and exits 0 when the cordon is refused";
pub const DRY_RUN: Row = "`--dry-run` prints lines; `=server` can loop for ever";
pub const DAEMON_SETS: Row = "refuses DaemonSet pods without `--ignore-daemonsets`";
pub const LAUNCHERS: Row = "tells of launchers, as of any other pod";
pub const NO_MATCH: Row = "a selector without a match: exit 0";
pub const NO_DOCUMENT: Row = "has no `-o`";
pub const PAGES: Row = "`--chunk-size` is 500, `--request-timeout` endless";

/// All of them.
const ALL: [Row; 9] =
    [TIMEOUT, CORDONS_FIRST, CORDON_REFUSED, DRY_RUN, DAEMON_SETS, LAUNCHERS, NO_MATCH, NO_DOCUMENT, PAGES];

#[test]
fn each_difference_is_told_to_users() {
    let table: Vec<&str> = README.lines().filter(|line| line.starts_with("| ")).collect();
    for row in ALL {
        assert!(table.iter().any(|line| line.starts_with(&format!("| {row} |"))), "{row}");
    }
}
