//! Files in the repository that are made from the code, or that other programs read by rules of their own.
//!
//! `UPDATE_GENERATED=1 cargo test --test generated` writes the generated ones anew.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use clap_complete::{Shell as ClapShell, generate};
use safe_drain::cli::{COMPLETION_HELPER, command, completion_script};
use safe_drain::settings::Shell;
use serde::Deserialize;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a file with what it should hold, or writes it.
fn check(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap();
    assert!(found == expected, "{path} is stale: UPDATE_GENERATED=1 cargo test --test generated");
}

fn generated(shell: ClapShell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut command(), "kubectl-safe_drain", &mut script);
    String::from_utf8(script).unwrap()
}

#[test]
fn completion_scripts_match_the_command_line() {
    check("completions/kubectl-safe_drain.bash", &generated(ClapShell::Bash));
    check("completions/_kubectl-safe_drain", &generated(ClapShell::Zsh));
    check("completions/kubectl-safe_drain.fish", &generated(ClapShell::Fish));
    check("completions/_kubectl-safe_drain.ps1", &generated(ClapShell::PowerShell));
}

#[test]
fn the_program_prints_the_script_of_each_shell() {
    let cases = [
        (Shell::Bash, "completions/kubectl-safe_drain.bash"),
        (Shell::Zsh, "completions/_kubectl-safe_drain"),
        (Shell::Fish, "completions/kubectl-safe_drain.fish"),
        (Shell::Powershell, "completions/_kubectl-safe_drain.ps1"),
    ];
    for (shell, path) in cases {
        assert!(completion_script(shell).contains("safe_drain"), "{path}");
        assert!(completion_script(shell).contains("restart-stale"), "{path}");
        if std::env::var_os("UPDATE_GENERATED").is_none() {
            assert!(completion_script(shell) == fs::read_to_string(root().join(path)).unwrap(), "{path}");
        }
    }
}

#[test]
fn completion_scripts_have_no_flag_that_is_only_accepted() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Powershell] {
        let script = completion_script(shell);
        for name in ["warnings-as-errors", "match-server-version", "cache-dir", "delete-local-data"] {
            assert!(!script.contains(name), "{name} is in the script of {}", shell.as_str());
        }
    }
}

#[test]
fn the_helper_is_what_the_program_prints_without_comments() {
    let file = root().join("completions").join(COMPLETION_HELPER);
    let helper = fs::read_to_string(&file).unwrap();
    let mut lines = completion_script(Shell::Kubectl).lines();
    let first = lines.next().unwrap();
    let code: Vec<&str> = std::iter::once(first).chain(lines.filter(|line| !line.starts_with('#'))).collect();
    assert_eq!(helper.lines().collect::<Vec<_>>(), code);
    assert_eq!(code.len(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o111, 0o111, "kubectl only runs it if it may");
    }
}

// ---- the krew manifest ----------------------------------------------------------------------------------------------

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    version: String,
    short_description: String,
    description: String,
    caveats: String,
    homepage: String,
    platforms: Vec<Platform>,
}

#[derive(Clone, Deserialize)]
struct Platform {
    uri: String,
    /// A number here means that the quotes were forgotten.
    sha256: serde_json::Value,
    selector: Selector,
    files: Option<Vec<FileMove>>,
    bin: String,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
}

#[derive(Clone, Deserialize)]
struct FileMove {
    from: String,
    to: String,
}

/// The pairs of operating system and processor that krew installs on.
const PAIRS: [(&str, &str); 11] = [
    ("windows", "386"),
    ("windows", "amd64"),
    ("windows", "arm64"),
    ("linux", "386"),
    ("linux", "amd64"),
    ("linux", "arm"),
    ("linux", "arm64"),
    ("linux", "ppc64le"),
    ("darwin", "386"),
    ("darwin", "amd64"),
    ("darwin", "arm64"),
];

/// The file names that krew's validator takes for a licence.
const LICENCES: [&str; 8] =
    ["license", "license.txt", "license.md", "licenses", "licenses.txt", "licenses.md", "copying", "copying.txt"];

fn manifest_text() -> String {
    fs::read_to_string(root().join("plugin.yaml")).unwrap()
}

fn manifest(text: &str) -> Manifest {
    serde_saphyr::from_str(text).unwrap()
}

/// krew's rules that refuse a manifest; the first that is broken.
fn broken_rule(manifest: &Manifest) -> Result<(), String> {
    let rule = |holds: bool, name: &str| if holds { Ok(()) } else { Err(name.to_owned()) };
    rule(manifest.api_version == "krew.googlecontainertools.github.com/v1alpha2", "apiVersion")?;
    rule(manifest.kind == "Plugin", "kind")?;
    let name = &manifest.metadata.name;
    rule(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')), "name")?;
    let spec = &manifest.spec;
    rule(spec.version.strip_prefix('v').is_some_and(is_semver), "version")?;
    rule(!spec.short_description.is_empty() && !spec.short_description.contains(['\r', '\n']), "shortDescription")?;
    rule(!spec.platforms.is_empty(), "platforms")?;
    for platform in &spec.platforms {
        rule(!platform.uri.is_empty(), "uri")?;
        let digest = platform.sha256.as_str().unwrap_or_default();
        rule(digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)), "sha256")?;
        let labels = &platform.selector.match_labels;
        rule(!labels.is_empty() && labels.keys().all(|key| matches!(key.as_str(), "os" | "arch")), "selector")?;
        rule(PAIRS.iter().any(|pair| selects(labels, *pair)), "platform")?;
        for file in platform.files.iter().flatten() {
            rule(is_clean(&file.to) && !file.from.is_empty() && !file.from.contains(".."), "files")?;
        }
        rule(platform.files.as_ref().is_none_or(|files| !files.is_empty()), "files")?;
        rule(!platform.bin.is_empty() && is_clean(&platform.bin), "bin")?;
    }
    for pair in PAIRS {
        let matching = spec.platforms.iter().filter(|platform| selects(&platform.selector.match_labels, pair));
        rule(matching.count() <= 1, "overlap")?;
    }
    Ok(())
}

fn selects(labels: &BTreeMap<String, String>, (os, arch): (&str, &str)) -> bool {
    labels.get("os").is_none_or(|label| label == os) && labels.get("arch").is_none_or(|label| label == arch)
}

fn is_semver(text: &str) -> bool {
    let core = text.split_once(['-', '+']).map_or(text, |(core, _)| core);
    let parts: Vec<&str> = core.split('.').collect();
    let number = |part: &&str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (*part == "0" || !part.starts_with('0'))
    };
    parts.len() == 3 && parts.iter().all(number)
}

/// As Go's `path.Clean` leaves it, and inside the directory.
fn is_clean(path: &str) -> bool {
    path == "."
        || (!path.is_empty()
            && !path.starts_with('/')
            && path.split('/').all(|part| !part.is_empty() && part != "." && part != ".."))
}

#[test]
fn the_krew_manifest_keeps_krews_rules() {
    assert_eq!(broken_rule(&manifest(&manifest_text())), Ok(()));
}

#[test]
fn the_check_of_the_krew_manifest_finds_what_krew_refuses() {
    let text = manifest_text();
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let digest = format!("\"{}\"", "0".repeat(64));
    let cases = [
        ("v1alpha2", "v1alpha1", "apiVersion"),
        ("kind: Plugin", "kind: Plug", "kind"),
        ("name: safe-drain", "name: safe drain", "name"),
        (version, "0.1.0", "version"),
        (version, "v0.1", "version"),
        (version, "v0.01.0", "version"),
        (digest.as_str(), "0", "sha256"),
        (digest.as_str(), &format!("\"{}\"", "A".repeat(64)), "sha256"),
        (digest.as_str(), "\"00\"", "sha256"),
        ("os: linux", "oss: linux", "selector"),
        ("arch: arm64", "arch: riscv64", "platform"),
        ("arch: arm64", "arch: amd64", "overlap"),
        ("to: .", "to: ./", "files"),
        ("bin: kubectl-safe_drain", "bin: ../kubectl-safe_drain", "bin"),
    ];
    for (from, to, rule) in cases {
        assert!(text.contains(from), "{from}");
        assert_eq!(broken_rule(&manifest(&text.replace(from, to))), Err(rule.to_owned()), "{from} -> {to}");
    }
}

#[test]
fn the_krew_manifest_says_what_this_package_is() {
    let manifest = manifest(&manifest_text());
    let spec = &manifest.spec;
    assert_eq!(manifest.metadata.name, "safe-drain");
    assert_eq!(spec.version, concat!("v", env!("CARGO_PKG_VERSION")));
    assert_eq!(spec.homepage, env!("CARGO_PKG_REPOSITORY"));
    let pairs: Vec<(&str, &str)> = spec
        .platforms
        .iter()
        .map(|platform| {
            let labels = &platform.selector.match_labels;
            (labels["os"].as_str(), labels["arch"].as_str())
        })
        .collect();
    let expected =
        ["linux", "darwin", "windows"].iter().flat_map(|os| [(*os, "amd64"), (*os, "arm64")]).collect::<Vec<_>>();
    assert_eq!(pairs, expected);
    for (platform, (os, arch)) in spec.platforms.iter().zip(pairs) {
        let (ending, program) =
            if os == "windows" { ("zip", "kubectl-safe_drain.exe") } else { ("tar.gz", "kubectl-safe_drain") };
        let version = &spec.version;
        let uri = format!(
            "{}/releases/download/{version}/kubectl-safe_drain-{version}-{os}-{arch}.{ending}",
            env!("CARGO_PKG_REPOSITORY")
        );
        assert_eq!(platform.uri, uri);
        assert_eq!(platform.bin, program);
        let files: Vec<&str> = platform.files.iter().flatten().map(|file| file.from.as_str()).collect();
        assert_eq!(files, [program, "LICENSE"]);
    }
}

#[test]
fn the_krew_manifest_installs_a_licence() {
    for platform in manifest(&manifest_text()).spec.platforms {
        let files = platform.files.unwrap();
        assert!(files.iter().any(|file| LICENCES.contains(&file.from.to_lowercase().as_str())), "{}", platform.uri);
    }
}

#[test]
fn the_krew_manifest_reads_well_in_the_index() {
    let spec = manifest(&manifest_text()).spec;
    assert!(spec.short_description.chars().count() <= 50, "{}", spec.short_description);
    assert!(!spec.short_description.ends_with('.'));
    for text in [&spec.description, &spec.caveats] {
        assert!(!text.trim().is_empty());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    assert!(!spec.description.contains("--"), "the description has no flags");
}
