//! The command line before the parser sees it: which words are flags, which is the first that is none.
//!
//! A sub-command counts only as the first word that is no flag and no flag's value. The parser cannot be trusted with
//! that (`--context x audit` must never drain a node called audit, `n1 --force audit` must never be an audit), so the
//! line is read here once, with the same table of flags. On the way `_` in flag names becomes `-`, as in kubectl.

use std::ffi::{OsStr, OsString};

use super::flags::{self, Flag, Takes};

/// A command line, read once.
#[derive(Debug)]
pub(super) struct Line {
    /// The arguments, flag names with `-` for `_`.
    pub(super) words: Vec<OsString>,
    /// Where the first word stands that is neither a flag nor a flag's value and comes before any `--`.
    pub(super) first: Option<usize>,
    /// The known flags in their order, with their position. What follows `--` is no flag.
    pub(super) flags: Vec<(usize, &'static Flag)>,
    /// The flag at the end whose value would come next.
    pub(super) pending: Option<&'static Flag>,
    /// Where `--` stands.
    pub(super) terminator: Option<usize>,
    /// Where the words stand that are neither flags nor values, the ones after `--` too.
    pub(super) plain: Vec<usize>,
}

impl Line {
    /// Reads the arguments that follow the program's name.
    pub(super) fn read(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut line = Self {
            words: Vec::new(),
            first: None,
            flags: Vec::new(),
            pending: None,
            terminator: None,
            plain: Vec::new(),
        };
        for word in arguments {
            let word = line.read_word(word);
            line.words.push(word);
        }
        line
    }

    /// The first word as text.
    pub(super) fn first_word(&self) -> Option<&str> {
        self.first.and_then(|index| self.words[index].to_str())
    }

    /// Whether this flag stands anywhere in the line.
    pub(super) fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|(_, flag)| flag.name == name)
    }

    /// The known flags that stand before the first word.
    pub(super) fn flags_before_first(&self) -> impl Iterator<Item = &'static Flag> {
        let end = self.first.unwrap_or(0);
        self.flags.iter().take_while(move |(index, _)| *index < end).map(|(_, flag)| *flag)
    }

    /// The words without the first one.
    pub(super) fn without_first(&self) -> Vec<OsString> {
        let words = self.words.iter().enumerate();
        words.filter(|(index, _)| Some(*index) != self.first).map(|(_, word)| word.clone()).collect()
    }

    /// The words that are neither flags nor values nor the first one, as text.
    pub(super) fn further_words(&self) -> impl Iterator<Item = &str> {
        let words = self.plain.iter().filter(|index| Some(**index) != self.first);
        words.filter_map(|index| self.words[*index].to_str())
    }

    fn read_word(&mut self, word: OsString) -> OsString {
        let index = self.words.len();
        if self.terminator.is_some() {
            self.plain.push(index);
            return word;
        }
        if let Some(flag) = self.pending.take()
            && is_value_of(flag, &word)
        {
            return word;
        }
        if word == "--" {
            self.terminator = Some(index);
            return word;
        }
        let bytes = word.as_encoded_bytes();
        if !bytes.starts_with(b"-") || bytes == b"-" {
            self.first = self.first.or(Some(index));
            self.plain.push(index);
            return word;
        }
        match word.to_str() {
            Some(text) if text.starts_with("--") => self.read_long(index, text),
            Some(text) => {
                self.read_shorts(index, &text[1..]);
                word
            }
            None => word,
        }
    }

    fn read_long(&mut self, index: usize, text: &str) -> OsString {
        let (name, value) = match text[2..].split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&text[2..], None),
        };
        let name = name.replace('_', "-");
        if let Some(flag) = flags::by_name(&name) {
            self.flags.push((index, flag));
            self.pending = (value.is_none() && wants_word(flag)).then_some(flag);
        }
        match value {
            Some(value) => format!("--{name}={value}").into(),
            None => format!("--{name}").into(),
        }
    }

    fn read_shorts(&mut self, index: usize, letters: &str) {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let Some(flag) = flags::by_short(letter) else { return };
            self.flags.push((index, flag));
            if wants_word(flag) {
                self.pending = rest.as_str().is_empty().then_some(flag);
                return;
            }
            if rest.as_str().starts_with('=') {
                return;
            }
        }
    }
}

/// Whether the flag takes the next word as its value.
const fn wants_word(flag: &Flag) -> bool {
    match flag.takes {
        Takes::Nothing | Takes::MaybeOneOf(..) => false,
        Takes::Text(_) | Takes::Path(_) | Takes::Number(_) | Takes::Duration(_) | Takes::Many(_) | Takes::OneOf(_) => {
            true
        }
    }
}

/// Whether the parser takes this word as the flag's value, though it may start with a dash.
fn is_value_of(flag: &Flag, word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    let dashed = bytes.starts_with(b"-") && bytes != b"-";
    match flag.takes {
        Takes::Duration(_) => bytes != b"--",
        Takes::Number(_) => !dashed || (bytes.len() > 1 && bytes[1..].iter().all(u8::is_ascii_digit)),
        Takes::Nothing | Takes::MaybeOneOf(..) | Takes::Text(_) | Takes::Path(_) | Takes::Many(_) | Takes::OneOf(_) => {
            !dashed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Line {
        Line::read(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_first_word_is_no_flag_and_no_value() {
        let cases = [
            ("n1", Some("n1")),
            ("--context x audit", Some("audit")),
            ("--context=x audit", Some("audit")),
            ("-n x audit", Some("audit")),
            ("-nx audit", Some("audit")),
            ("-n=x audit", Some("audit")),
            ("-qn x audit", Some("audit")),
            ("-q=true audit", Some("audit")),
            ("-v 5 audit", Some("audit")),
            ("-v5 audit", Some("audit")),
            ("--dry-run server", Some("server")),
            ("--restart_stale n1", Some("n1")),
            ("--force true", Some("true")),
            ("--grace-period -1 n1", Some("n1")),
            ("--timeout -5m n1", Some("n1")),
            ("--events-file - n1", Some("n1")),
            ("--unknown n1", Some("n1")),
            ("-- audit", None),
            ("--context -- audit", None),
            ("--force", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).first_word(), expected, "{text}");
        }
    }

    #[test]
    fn underscore_counts_as_dash_in_flag_names_only() {
        let line = read("--ignore_daemonsets=false --context my_ctx -n a_b --user=x_y n_1 -- --a_b");
        let words: Vec<&str> = line.words.iter().map(|word| word.to_str().unwrap()).collect();
        let expected =
            ["--ignore-daemonsets=false", "--context", "my_ctx", "-n", "a_b", "--user=x_y", "n_1", "--", "--a_b"];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_flag_at_the_end_waits_for_its_value() {
        assert_eq!(read("n1 --context").pending.unwrap().name, "context");
        assert_eq!(read("n1 -qn").pending.unwrap().name, "namespace");
        assert!(read("n1 --dry-run").pending.is_none());
        assert!(read("n1 --context=x").pending.is_none());
        assert!(read("n1 --context x").pending.is_none());
    }

    #[test]
    fn what_follows_the_terminator_is_no_flag() {
        let line = read("-- --help");
        assert!(!line.has("help"));
        assert!(read("--help").has("help"));
        assert!(read("-qh").has("help"));
    }
}
