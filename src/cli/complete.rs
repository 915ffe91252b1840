//! kubectl's completion of `kubectl safe-drain`: which words can come next.
//!
//! kubectl runs the helper program with the words that follow the plugin's name, the last one being typed. The answer
//! is one candidate per line, a tab and a description behind it, and at the end a colon with cobra's directive. Names
//! that only the cluster or the kubeconfig knows are asked for by [`Dynamic`]; the shell looks them up and adds them.

use std::ffi::OsString;

use super::command;
use super::flags::{self, Arguments, Flag, SUB_COMMANDS, Takes};
use super::read::Reader;
use super::words::Line;
use crate::settings::{ClientOptions, Shell};

/// cobra's directive: files are no candidates.
const NO_FILES: u8 = 4;

/// cobra's directive: files are candidates.
const FILES: u8 = 0;

/// What can come next.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The candidates that need no lookup, already narrowed to what was typed.
    pub candidates: Vec<Candidate>,
    /// The names that the shell shall look up and add.
    pub dynamic: Option<Dynamic>,
    /// What was typed of the word; a candidate has to start with it.
    pub typed: String,
    /// How to connect for the lookup, as far as it was typed.
    pub client: ClientOptions,
    directive: u8,
}

/// One word that can come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The word.
    pub value: String,
    /// What it is, in a few words; may be empty.
    pub description: String,
}

/// Names that have to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dynamic {
    /// Nodes of the cluster, without those that were named already.
    Nodes {
        /// The nodes that were named already, without prefix.
        except: Vec<String>,
    },
    /// Namespaces of the cluster.
    Namespaces,
    /// Contexts of the kubeconfig.
    Contexts,
    /// Clusters of the kubeconfig.
    Clusters,
    /// Users of the kubeconfig.
    Users,
}

impl Completion {
    /// Adds looked up names that fit what was typed.
    pub fn add(&mut self, names: impl IntoIterator<Item = Candidate>) {
        let typed = &self.typed;
        self.candidates.extend(names.into_iter().filter(|name| name.value.starts_with(typed.as_str())));
    }

    /// The answer for kubectl.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for candidate in &self.candidates {
            text.push_str(&candidate.value);
            if !candidate.description.is_empty() {
                text.push('\t');
                text.push_str(&candidate.description);
            }
            text.push('\n');
        }
        text.push(':');
        text.push_str(&self.directive.to_string());
        text.push('\n');
        text
    }
}

/// What can come next after these words, the last of which is being typed.
pub fn complete(words: &[String]) -> Completion {
    let (typed, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let line = Line::read(before.iter().map(OsString::from));
    let mut completion = Completion {
        candidates: Vec::new(),
        dynamic: None,
        typed: typed.to_owned(),
        client: typed_client(&line),
        directive: NO_FILES,
    };
    let flag_and_value = typed.strip_prefix("--").and_then(|text| text.split_once('='));
    if let Some(flag) = line.pending {
        completion.offer_values(flag);
    } else if line.terminator.is_none()
        && let Some((name, value)) = flag_and_value
    {
        value.clone_into(&mut completion.typed);
        if let Some(flag) = flags::by_name(&name.replace('_', "-")) {
            completion.offer_values(flag);
        }
    } else if line.terminator.is_none() && typed.starts_with('-') {
        completion.offer_flags(&line);
    } else {
        completion.offer_words(&line);
    }
    completion
}

impl Completion {
    fn offer(&mut self, value: &str, description: &str) {
        self.add([Candidate { value: value.to_owned(), description: description.to_owned() }]);
    }

    fn offer_plain(&mut self, words: &[&str]) {
        for word in words {
            self.offer(word, "");
        }
    }

    fn offer_values(&mut self, flag: &Flag) {
        match flag.takes {
            Takes::Nothing => self.offer_plain(&["true", "false"]),
            Takes::OneOf(words) | Takes::MaybeOneOf(words, _) => self.offer_plain(words),
            Takes::Path(_) => self.directive = FILES,
            Takes::Text(_) | Takes::Many(_) | Takes::Number(_) | Takes::Duration(_) => {
                self.dynamic = match flag.name {
                    "namespace" => Some(Dynamic::Namespaces),
                    "context" => Some(Dynamic::Contexts),
                    "cluster" => Some(Dynamic::Clusters),
                    "user" => Some(Dynamic::Users),
                    _ => None,
                };
            }
        }
    }

    fn offer_flags(&mut self, line: &Line) {
        let sub = line.first_word().and_then(flags::sub_command);
        let shown = flags::flags_of(sub).filter(|flag| flag.group.is_shown());
        for flag in shown.filter(|flag| matches!(flag.takes, Takes::Many(_)) || !line.has(flag.name)) {
            let name = format!("--{}", flag.name);
            match flag.takes {
                Takes::MaybeOneOf(words, _) => {
                    self.offer(&name, flag.help);
                    for word in words {
                        self.offer(&format!("{name}={word}"), "");
                    }
                }
                Takes::Nothing
                | Takes::Text(_)
                | Takes::Path(_)
                | Takes::Number(_)
                | Takes::Duration(_)
                | Takes::Many(_)
                | Takes::OneOf(_) => self.offer(&name, flag.help),
            }
            if let Some(short) = flag.short {
                self.offer(&format!("-{short}"), flag.help);
            }
        }
    }

    fn offer_words(&mut self, line: &Line) {
        let sub = line.first_word().and_then(flags::sub_command);
        match sub.map_or(Arguments::Nodes, |sub| sub.arguments) {
            Arguments::None => {}
            Arguments::Shell => {
                if line.further_words().next().is_none() {
                    self.offer_plain(&Shell::ALL.map(Shell::as_str));
                }
            }
            Arguments::Nodes => {
                let words = line.plain.iter().filter(|index| sub.is_none() || Some(**index) != line.first);
                let words = words.filter_map(|index| line.words[*index].to_str());
                let except = words.map(|word| word.rsplit('/').next().unwrap_or(word).to_owned()).collect();
                let selected = sub.is_none() && line.has("selector");
                self.dynamic = (!selected).then_some(Dynamic::Nodes { except });
            }
        }
        if line.first.is_none() && line.terminator.is_none() && line.flags.iter().all(|(_, flag)| flag.is_global()) {
            for sub in SUB_COMMANDS {
                self.offer(sub.word, sub.about);
            }
        }
    }
}

/// The connection flags among the words; what cannot be read counts as not given.
fn typed_client(line: &Line) -> ClientOptions {
    let sub = line.first_word().and_then(flags::sub_command);
    let words = if sub.is_some() { line.without_first() } else { line.words.clone() };
    let matches = command::parser(sub).ignore_errors(true).try_get_matches_from(words);
    matches.ok().and_then(|matches| Reader(&matches).client().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn after(words: &[&str]) -> Completion {
        complete(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    fn values(words: &[&str]) -> Vec<String> {
        after(words).candidates.into_iter().map(|candidate| candidate.value).collect()
    }

    fn nodes(except: &[&str]) -> Dynamic {
        Dynamic::Nodes { except: except.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn the_first_word_is_a_node_or_a_sub_command() {
        let completion = after(&[""]);
        assert_eq!(completion.dynamic, Some(nodes(&[])));
        assert_eq!(values(&[""]), ["audit", "restart-stale", "cancel", "completion"]);
        assert_eq!(values(&["--context", "x", "co"]), ["completion"]);
        assert!(values(&["--dry-run", ""]).is_empty());
        assert!(values(&["n1", ""]).is_empty());
        assert!(values(&["--", "co"]).is_empty());
    }

    #[test]
    fn nodes_that_were_named_are_not_offered_again() {
        assert_eq!(after(&["n1", "node/n2", ""]).dynamic, Some(nodes(&["n1", "n2"])));
        assert_eq!(after(&["cancel", "n1", ""]).dynamic, Some(nodes(&["n1"])));
        assert_eq!(after(&["-l", "a=b", ""]).dynamic, None);
        assert_eq!(after(&["audit", ""]).dynamic, None);
    }

    #[test]
    fn the_value_of_an_optional_flag_is_offered_only_behind_an_equals_sign() {
        assert_eq!(values(&["--dry-run=s"]), ["server"]);
        assert_eq!(values(&["--dry-r"]), ["--dry-run", "--dry-run=none", "--dry-run=client", "--dry-run=server"]);
        assert_eq!(after(&["--dry-run", "s"]).dynamic, Some(nodes(&[])));
        assert!(values(&["--dry-run", "s"]).is_empty());
    }

    #[test]
    fn values_of_flags() {
        assert_eq!(values(&["-o", ""]), ["json", "yaml"]);
        assert_eq!(values(&["n1", "--color", "a"]), ["auto", "always"]);
        assert_eq!(values(&["--force=t"]), ["true"]);
        assert_eq!(values(&["completion", "f"]), ["fish"]);
        assert!(values(&["completion", "fish", ""]).is_empty());
        assert_eq!(after(&["--context", ""]).dynamic, Some(Dynamic::Contexts));
        assert_eq!(after(&["-n", ""]).dynamic, Some(Dynamic::Namespaces));
        assert_eq!(after(&["--cluster="]).dynamic, Some(Dynamic::Clusters));
        assert_eq!(after(&["--user", ""]).dynamic, Some(Dynamic::Users));
    }

    #[test]
    fn flags_of_the_command_that_were_not_given_yet() {
        let offered = values(&["n1", "--force", "-"]);
        assert!(offered.contains(&"--restart-stale".to_owned()));
        assert!(offered.contains(&"-l".to_owned()));
        assert!(offered.contains(&"--context".to_owned()));
        assert!(!offered.contains(&"--force".to_owned()));
        assert!(!offered.contains(&"--cache-dir".to_owned()));
        assert!(!offered.contains(&"--warnings-as-errors".to_owned()));
        assert!(values(&["completion", "--f"]).is_empty());
        assert_eq!(values(&["--as-group", "a", "--as-gr"]), ["--as-group"]);
    }

    #[test]
    fn the_answer_ends_with_the_directive() {
        assert_eq!(after(&["-o", "j"]).render(), "json\n:4\n");
        assert_eq!(after(&["--kubeconfig", ""]).render(), ":0\n");
        assert!(after(&["comp"]).render().starts_with("completion\tprint"));
    }

    #[test]
    fn looked_up_names_are_narrowed_to_what_was_typed() {
        let mut completion = after(&["n"]);
        let name = |value: &str| Candidate { value: value.to_owned(), description: "Ready".to_owned() };
        completion.add([name("n1"), name("m1")]);
        assert_eq!(completion.render(), "n1\tReady\n:4\n");
    }

    #[test]
    fn the_lookup_connects_as_typed() {
        let client = after(&["--context", "prod", "--token=x", "--bogus", "n1", ""]).client;
        assert_eq!(client.context.as_deref(), Some("prod"));
        assert_eq!(client.token.unwrap().expose_secret(), "x");
        assert_eq!(after(&["cancel", "--context", "prod", ""]).client.context.as_deref(), Some("prod"));
        assert_eq!(after(&["--context", "prod", "--as-uid", "7", ""]).client.context, None);
    }
}
