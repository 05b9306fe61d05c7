//! The road of the data: each file that stands for a stage says so in its first line,
//! ``//! Stage 7 of 12 · decide — …``, and `cargo xtask tidy --stages` prints the road.

use crate::source::Source;
use crate::tidy::Violation;

/// A stage, and where it is built.
struct Stage {
    name: &'static str,
    /// How the path of at least one of its files begins.
    home: &'static str,
}

const fn built(name: &'static str, home: &'static str) -> Stage {
    Stage { name, home }
}

/// In the order in which the data passes through them.
const STAGES: [Stage; 12] = [
    built("collect", "crates/agent/src/collect/mod.rs"),
    built("advertise", "crates/agent/src/advertise"),
    built("carry", "crates/agent/src/transport/mod.rs"),
    built("admit", "crates/broker/src/http/mod.rs"),
    built("sequence", "crates/broker/src/engine"),
    built("account", "crates/core/src/ledger"),
    built("decide", "crates/core/src/decision/mod.rs"),
    built("reserve", "crates/core/src/plan"),
    built("commit", "crates/log/src/lib.rs"),
    built("instruct", "crates/core/src/instruction.rs"),
    built("act", "crates/agent/src/controllers/mod.rs"),
    built("peer", "crates/agent/src/peering/mod.rs"),
];

const FORM: &str = "write `//! Stage N of 12 · name — what it does`";

/// What a stage line says.
struct Line<'a> {
    number: usize,
    name: &'a str,
    about: &'a str,
}

/// Every stage line is right, and every stage that is built has one at home.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut found: Vec<_> = sources.iter().filter_map(wrong_line).collect();
    for (number, stage) in (1..).zip(&STAGES) {
        let home = stage.home;
        let is_home = |source: &&Source| source.path.starts_with(home);
        let at_home = |(source, line): (&Source, Line)| line.number == number && is_home(&source);
        if !lines(sources).any(at_home) {
            found.push(missing(number, stage.name, home, sources.iter().find(is_home)));
        }
    }
    found
}

/// The road as far as it is built, one line per file.
pub(crate) fn road(sources: &[Source]) -> String {
    let mut lines: Vec<_> = lines(sources).collect();
    lines.sort_by_key(|(_, line)| line.number);
    let shown = |(source, line): (&Source, Line)| {
        let Line { number, name, about } = line;
        format!("{number:>2} {name:<10} {:<40} {about}\n", source.path)
    };
    lines.into_iter().map(shown).collect()
}

fn lines(sources: &[Source]) -> impl Iterator<Item = (&Source, Line<'_>)> {
    sources.iter().filter_map(|source| Some((source, parse(stage_text(source)?)?)))
}

/// What follows `//! Stage ` in the first line of a Rust file that has it.
fn stage_text(source: &Source) -> Option<&str> {
    let first = source.text.lines().next().filter(|_| source.is_rust())?;
    first.strip_prefix("//! Stage ")
}

fn parse(text: &str) -> Option<Line<'_>> {
    let (number, rest) = text.split_once(" of 12 · ")?;
    let (name, about) = rest.split_once(" — ")?;
    Some(Line { number: number.parse().ok()?, name, about })
}

fn wrong_line(source: &Source) -> Option<Violation> {
    let text = stage_text(source)?;
    let wrong = |what: String, remedy: &str| Some(Violation::at(&source.path, 1, what, remedy));
    let Some(line) = parse(text) else {
        return wrong(format!("not a stage line: `Stage {text}`"), FORM);
    };
    match line.number.checked_sub(1).and_then(|index| STAGES.get(index)) {
        Some(stage) if stage.name != line.name => {
            wrong(format!("stage {} is {}, not {}", line.number, stage.name, line.name), FORM)
        }
        Some(_) => None,
        None => wrong(format!("there is no stage {}", line.number), FORM),
    }
}

fn missing(number: usize, name: &str, home: &str, file: Option<&Source>) -> Violation {
    let path = file.map_or(home, |source| &source.path);
    let remedy = format!("begin the file with `//! Stage {number} of 12 · {name} — …`");
    Violation::at(path, 1, format!("stage {number}, {name}, has no stage line here"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, first: &str) -> Source {
        Source { path: path.to_owned(), text: format!("{first}\n") }
    }

    fn whole_road() -> Vec<Source> {
        let built = (1..).zip(&STAGES).map(|(number, stage)| (number, stage, stage.home));
        built
            .map(|(number, stage, home): (usize, _, _)| {
                let path = if home.contains('.') { home.to_owned() } else { format!("{home}.rs") };
                file(&path, &format!("//! Stage {number} of 12 · {} — does it.", stage.name))
            })
            .collect()
    }

    fn said(sources: &[Source]) -> Vec<String> {
        check(sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_whole_road_is_fine_and_printed_in_order() {
        let mut sources = whole_road();
        sources.reverse();
        assert_eq!(said(&sources), Vec::<String>::new());
        let numbers: Vec<_> =
            road(&sources).lines().map(|line| line[..2].trim().to_owned()).collect();
        let all: Vec<_> = (1..=STAGES.len()).map(|number| number.to_string()).collect();
        assert_eq!(numbers, all);
    }

    #[test]
    fn a_number_that_does_not_match_its_name_is_found() {
        let mut sources = whole_road();
        sources.push(file("crates/core/src/extra.rs", "//! Stage 6 of 12 · decide — wrong."));
        assert!(
            said(&sources)[0]
                .starts_with("crates/core/src/extra.rs:1: stage 6 is account, not decide")
        );
    }

    #[test]
    fn a_built_stage_without_its_line_is_found() {
        let mut sources = whole_road();
        sources[4].text = "//! The engine.\n".to_owned();
        assert!(
            said(&sources)[0]
                .starts_with("crates/broker/src/engine.rs:1: stage 5, sequence, has no stage line")
        );
    }

    #[test]
    fn a_line_of_another_form_is_found() {
        let mut sources = whole_road();
        sources.push(file("crates/core/src/extra.rs", "//! Stage 7 - decide"));
        assert!(said(&sources)[0].contains("not a stage line"));
    }
}
