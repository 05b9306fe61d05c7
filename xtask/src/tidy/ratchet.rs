//! The limits on length, as a ratchet: `xtask/ratchet.txt` lists what is too long and how long it
//! may be. A figure can only go down; a new exception is written by hand and argued for in review.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

use crate::tidy::Violation;

/// Where the exceptions are listed.
pub(crate) const PATH: &str = "xtask/ratchet.txt";
const HEADER: &str = "\
# What is longer than allowed, and how long it may be; `cargo xtask tidy` reads this.
# Figures only go down: `cargo xtask tidy --ratchet` lowers them, and nothing raises them.
";

/// What a length is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    File,
    Function,
}

impl Kind {
    const ALL: [Self; 2] = [Self::File, Self::Function];

    const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Function => "function",
        }
    }

    const fn lines_max(self) -> usize {
        match self {
            Self::File => 400,
            Self::Function => 70,
        }
    }
}

/// How long one file or function is; a file has no name beside its path.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) kind: Kind,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// What an exception is for: a file, or all functions of one name in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    kind: Kind,
    path: String,
    name: String,
}

impl Figure {
    fn subject(&self) -> Subject {
        Subject { kind: self.kind, path: self.path.clone(), name: self.name.clone() }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.name.is_empty() { "" } else { "::" };
        write!(f, "{} {}{separator}{}", self.kind.word(), self.path, self.name)
    }
}

/// The listed exceptions: how many lines each may have.
pub(crate) struct Ratchet(BTreeMap<Subject, usize>);

impl Ratchet {
    /// Reads lines like `function 83 crates/core/src/plan.rs::plan`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let exception =
            |line: &str| parse_line(line).with_context(|| format!("{PATH}: cannot read `{line}`"));
        lines.map(exception).collect::<Result<_>>().map(Self)
    }

    /// What is too long and not listed, longer than listed, or shorter than listed.
    pub(crate) fn check(&self, figures: &[Figure]) -> Vec<Violation> {
        let mut found: Vec<_> = figures.iter().filter_map(|figure| self.too_long(figure)).collect();
        let present = longest(figures);
        for (subject, listed) in &self.0 {
            let now = present.get(subject).copied().unwrap_or_default();
            if now < *listed {
                let what = format!("{subject} may have {listed} lines and has {now}");
                found.push(Violation::at(
                    PATH,
                    1,
                    what,
                    "run `cargo xtask tidy --ratchet` to keep what was won",
                ));
            }
        }
        found
    }

    fn too_long(&self, figure: &Figure) -> Option<Violation> {
        let subject = figure.subject();
        let limit = self.0.get(&subject).copied().unwrap_or(figure.kind.lines_max());
        (figure.lines > limit).then(|| {
            let what = format!("{} lines, {limit} allowed: {subject}", figure.lines);
            Violation::at(&figure.path, figure.line, what, "split it where a reader would")
        })
    }

    /// The list with every figure lowered to what it is now, and without those that need no
    /// exception any more.
    pub(crate) fn lowered(&self, figures: &[Figure]) -> Self {
        let present = longest(figures);
        let lower = |(subject, listed): (&Subject, &usize)| {
            let now = present.get(subject).copied().unwrap_or_default();
            (now > subject.kind.lines_max()).then(|| (subject.clone(), now.min(*listed)))
        };
        Self(self.0.iter().filter_map(lower).collect())
    }
}

impl fmt::Display for Ratchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEADER)?;
        for (Subject { kind, path, name }, lines) in &self.0 {
            let separator = if name.is_empty() { "" } else { "::" };
            writeln!(f, "{} {lines} {path}{separator}{name}", kind.word())?;
        }
        Ok(())
    }
}

fn parse_line(line: &str) -> Option<(Subject, usize)> {
    let mut words = line.split(' ');
    let (kind, lines, place) = (words.next()?, words.next()?, words.next()?);
    let kind = Kind::ALL.into_iter().find(|known| known.word() == kind)?;
    let (path, name) = place.split_once("::").unwrap_or((place, ""));
    let subject = Subject { kind, path: path.to_owned(), name: name.to_owned() };
    Some((subject, lines.parse().ok().filter(|_| words.next().is_none())?))
}

/// The longest figure of each subject: several functions of one file may share a name.
fn longest(figures: &[Figure]) -> BTreeMap<Subject, usize> {
    let mut longest = BTreeMap::new();
    for figure in figures {
        let lines: &mut usize = longest.entry(figure.subject()).or_default();
        *lines = figure.lines.max(*lines);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> Figure {
        Figure {
            kind: Kind::Function,
            path: "a.rs".to_owned(),
            name: "f".to_owned(),
            line: 3,
            lines,
        }
    }

    fn ratchet(text: &str) -> Ratchet {
        Ratchet::parse(text).expect("a readable list")
    }

    #[test]
    fn what_is_short_enough_needs_no_exception() {
        assert!(ratchet("").check(&[function(70)]).is_empty());
    }

    #[test]
    fn what_is_too_long_is_found_where_it_stands() {
        let found = ratchet("").check(&[function(71)]);
        assert!(
            found[0].to_string().starts_with("a.rs:3: 71 lines, 70 allowed: function a.rs::f;")
        );
    }

    #[test]
    fn a_listed_exception_may_stay_but_not_grow() {
        let ratchet = ratchet("function 80 a.rs::f\n");
        assert!(ratchet.check(&[function(80)]).is_empty());
        assert_eq!(ratchet.check(&[function(81)]).len(), 1);
    }

    #[test]
    fn an_exception_that_became_shorter_must_be_lowered() {
        let found = ratchet("function 80 a.rs::f\n").check(&[function(75)]);
        assert!(found[0].to_string().contains("cargo xtask tidy --ratchet"));
    }

    #[test]
    fn lowering_never_raises_and_never_adds() {
        let listed = ratchet("function 80 a.rs::f\nfile 500 gone.rs\n");
        let lowered = |lines| listed.lowered(&[function(lines)]).to_string().replace(HEADER, "");
        assert_eq!(lowered(75), "function 75 a.rs::f\n");
        assert_eq!(lowered(90), "function 80 a.rs::f\n");
        assert_eq!(lowered(70), "");
        assert_eq!(ratchet("").lowered(&[function(90)]).to_string(), HEADER);
    }

    #[test]
    fn the_longest_function_of_a_name_counts() {
        assert!(ratchet("function 80 a.rs::f\n").check(&[function(80), function(5)]).is_empty());
    }

    #[test]
    fn an_unreadable_line_is_an_error() {
        assert!(Ratchet::parse("function many a.rs::f\n").is_err());
    }
}
