//! Labels, colours, symbols and lines: what a text means is said here once, how it looks is decided when it is written.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text means. Colour follows from it and never carries meaning alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Ordinary text.
    Plain,
    /// A heading or column title.
    Heading,
    /// Went or goes well.
    Good,
    /// Blocks, failed.
    Bad,
    /// Goes down, or deserves a look.
    Caution,
    /// Waits.
    Waiting,
    /// Less important: times, folded counts.
    Faint,
    /// Something to type or to do.
    Remedy,
}

impl Label {
    /// Its look on a terminal with colour.
    pub fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Caution => AnsiColor::Yellow.on_default(),
            Self::Waiting => AnsiColor::Blue.on_default(),
            Self::Faint => Style::new().dimmed(),
            Self::Remedy => AnsiColor::Cyan.on_default(),
        }
    }
}

/// A mark in the first column of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `✗`: stays, blocks, failed.
    Blocks,
    /// `✓`: goes, without downtime where it is a VM.
    Goes,
    /// `?`: waits for something.
    Waits,
    /// `!`: the guest goes down, for a while or for good.
    Down,
}

impl Mark {
    /// The symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Blocks => "✗",
            Self::Goes => "✓",
            Self::Waits => "?",
            Self::Down => "!",
        }
    }

    /// Its label.
    pub fn label(self) -> Label {
        match self {
            Self::Blocks => Label::Bad,
            Self::Goes => Label::Good,
            Self::Waits => Label::Waiting,
            Self::Down => Label::Caution,
        }
    }
}

/// One line of output in labelled pieces. It holds no control characters: text of the cluster is cleaned on its way in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    pieces: Vec<(Label, String)>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of ordinary text.
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::new().with(Label::Plain, text)
    }

    /// A line that starts with a mark and a space.
    pub fn marked(mark: Mark) -> Self {
        Self::new().with(mark.label(), mark.symbol()).with(Label::Plain, " ")
    }

    /// The line with a piece added.
    #[must_use]
    pub fn with(mut self, label: Label, text: impl AsRef<str>) -> Self {
        let text = clean(text.as_ref());
        if !text.is_empty() {
            self.pieces.push((label, text));
        }
        self
    }

    /// The line with another one added.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// The line filled with spaces up to a width.
    #[must_use]
    pub fn padded(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.with(Label::Plain, " ".repeat(missing))
    }

    /// The line cut to a width, with `…` in place of what is missing.
    #[must_use]
    pub fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut short = Self::new();
        for (label, text) in self.pieces {
            let mut kept = String::new();
            for c in text.chars() {
                let w = c.width().unwrap_or(0);
                if w > left {
                    return short.with(label, kept).with(label, "…");
                }
                left -= w;
                kept.push(c);
            }
            short = short.with(label, kept);
        }
        short
    }

    /// Columns that it takes.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// The text, with or without colour, without spaces at its end.
    pub fn render(&self, color: bool) -> String {
        let mut out = String::new();
        let last = self.pieces.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        for (i, (label, text)) in self.pieces.iter().enumerate() {
            let text = match last {
                Some(last) if i < last => text.as_str(),
                Some(last) if i == last => text.trim_end(),
                _ => break,
            };
            let style = label.style();
            if color && *label != Label::Plain {
                let _ = write!(out, "{style}{text}{style:#}");
            } else {
                out.push_str(text);
            }
        }
        out
    }
}

/// Lines as one text; each ends with a newline.
pub fn page(lines: &[Line], color: bool) -> String {
    lines.iter().map(|line| line.render(color) + "\n").collect()
}

/// Text that is safe on a terminal and stays on its line: breaks and tabs become spaces, other control characters go.
fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\t' => Some(' '),
            c if c.is_control() => None,
            c => Some(c),
        })
        .collect()
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// Where the stream is a terminal that shows it and nobody objects.
    #[default]
    Auto,
    /// Yes, whatever the stream is.
    Always,
    /// No.
    Never,
}

/// What the environment says about colour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColorEnv {
    /// `NO_COLOR` is set; its value does not matter, as in kubectl.
    pub no_color: bool,
    /// `TERM`.
    pub term: Option<String>,
}

/// Decides whether a stream gets colour. The flag beats the environment.
pub fn use_color(choice: ColorChoice, env: &ColorEnv, is_terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => is_terminal && !env.no_color && env.term.as_deref() != Some("dumb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_follows_flag_then_environment_then_stream() {
        let plain = ColorEnv::default();
        let no_color = ColorEnv { no_color: true, ..ColorEnv::default() };
        let dumb = ColorEnv { term: Some("dumb".into()), ..ColorEnv::default() };
        for (choice, env, terminal, expected) in [
            (ColorChoice::Auto, &plain, true, true),
            (ColorChoice::Auto, &plain, false, false),
            (ColorChoice::Auto, &no_color, true, false),
            (ColorChoice::Auto, &dumb, true, false),
            (ColorChoice::Always, &no_color, false, true),
            (ColorChoice::Never, &plain, true, false),
        ] {
            assert_eq!(use_color(choice, env, terminal), expected, "{choice:?} {env:?} {terminal}");
        }
    }

    #[test]
    fn colour_is_only_an_addition() {
        let line = Line::marked(Mark::Blocks).with(Label::Remedy, "add --force").padded(40);
        assert_eq!(line.width(), 40);
        assert_eq!(line.render(false), "✗ add --force");
        assert_eq!(line.render(true), "\u{1b}[31m✗\u{1b}[0m \u{1b}[36madd --force\u{1b}[0m");
    }

    #[test]
    fn text_of_the_cluster_cannot_break_the_line_or_the_terminal() {
        assert_eq!(Line::plain("a\nb\u{1b}[2Jc\r").render(true), "a b[2Jc");
    }

    #[test]
    fn a_cut_line_has_its_width() {
        let line = Line::plain("tenant-ü/").with(Label::Good, "日本-web-1");
        assert_eq!(line.clone().cut(12).render(false), "tenant-ü/日…");
        assert_eq!(line.clone().cut(99), line);
        assert_eq!(line.cut(0).width(), 1);
    }
}
