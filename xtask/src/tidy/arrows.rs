//! Which crate may use which: the arrows between ours, and who may see certain others.
//!
//! The tables here are the truth. `cargo xtask gen` prints them into ARCHITECTURE.md.

use crate::metadata::Package;
use crate::tidy::Violation;

/// A crate of ours, and the crates of ours that it may use, in tests and benches too.
const ARROWS: [(&str, &[&str]); 11] = [
    ("sublet-core", &[]),
    ("sublet-wire", &["sublet-core"]),
    ("sublet-crds", &["sublet-core", "sublet-testkit"]),
    ("sublet-log", &["sublet-core"]),
    ("sublet-process", &["sublet-core"]),
    ("sublet-broker", &["sublet-core", "sublet-wire", "sublet-log", "sublet-process"]),
    // The agent's tests run against a real broker, in their own process. The program itself never
    // sees it: see `TESTS_ONLY`.
    (
        "sublet-agent",
        &[
            "sublet-core",
            "sublet-wire",
            "sublet-crds",
            "sublet-log",
            "sublet-process",
            "sublet-broker",
            "sublet-testkit",
        ],
    ),
    (
        "sublet",
        &[
            "sublet-core",
            "sublet-wire",
            "sublet-crds",
            "sublet-log",
            "sublet-process",
            "sublet-broker",
            "sublet-agent",
            "sublet-testkit",
        ],
    ),
    ("sublet-sim", &["sublet-core", "sublet-log", "sublet-broker"]),
    ("sublet-testkit", &[]),
    ("xtask", &[]),
];

/// Arrows that only tests may use: the shells never depend on each other.
const TESTS_ONLY: [(&str, &str); 2] =
    [("sublet-agent", "sublet-log"), ("sublet-agent", "sublet-broker")];

/// A crate of others that only some of ours may see.
const SEEN_BY: [(&str, &[&str]); 3] = [
    ("axum", &["sublet-broker"]),
    ("kube", &["sublet-crds", "sublet-agent"]),
    ("rusqlite", &["sublet-log"]),
];

const TABLE: &str = "xtask/src/tidy/arrows.rs";

/// Every arrow between the members of the workspace is an allowed one.
pub(crate) fn check<'a>(members: impl Iterator<Item = &'a Package>) -> Vec<Violation> {
    let members: Vec<_> = members.collect();
    let is_member = |name: &str| members.iter().any(|member| member.name == name);
    let mut found = Vec::new();
    for member in &members {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == member.name) else {
            found.push(at(format!("{} has no row in the arrows", member.name), "add one"));
            continue;
        };
        for needed in member.dependencies.iter().map(|dependency| dependency.name.as_str()) {
            let ours_forbidden =
                is_member(needed) && needed != member.name && !allowed.contains(&needed);
            if ours_forbidden || !may_see(&member.name, needed) {
                found.push(at(
                    format!("{} depends on {needed}, which is not an allowed arrow", member.name),
                    "drop the dependency, or argue for the arrow in an ADR and allow it here",
                ));
            }
        }
    }
    found.extend(members.iter().flat_map(|member| beyond_tests(member)));
    for (name, _) in ARROWS.iter().filter(|(name, _)| !is_member(name)) {
        found.push(at(format!("{name} is not in the workspace"), "remove its row"));
    }
    found
}

/// What is for tests alone, and used by more.
fn beyond_tests(member: &Package) -> impl Iterator<Item = Violation> {
    let is_limited = |name: &str| TESTS_ONLY.contains(&(member.name.as_str(), name));
    let wrong =
        member.dependencies.iter().filter(move |one| is_limited(&one.name) && !one.is_for_tests());
    wrong.map(|one| {
        let what = format!("{} depends on {}, which is for its tests alone", member.name, one.name);
        at(what, "move it to the dev-dependencies")
    })
}

fn may_see(member: &str, needed: &str) -> bool {
    SEEN_BY.iter().all(|(other, seen_by)| *other != needed || seen_by.contains(&member))
}

fn at(what: String, remedy: &str) -> Violation {
    Violation::at(TABLE, 1, what, remedy)
}

/// The tables as ARCHITECTURE.md shows them.
pub(crate) fn table() -> String {
    let ours = rows("| crate | may use of ours |", &ARROWS);
    let others = rows("| crate of others | only these see it |", &SEEN_BY);
    format!("{ours}\n{others}")
}

fn rows(heading: &str, table: &[(&str, &[&str])]) -> String {
    let row = |(name, others): &(&str, &[&str])| {
        let others: Vec<_> = others.iter().map(|other| format!("`{other}`")).collect();
        let others = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
        format!("| `{name}` | {others} |\n")
    };
    let rows: String = table.iter().map(row).collect();
    format!("{heading}\n|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(changed: &Package) -> Vec<String> {
        let mut members: Vec<_> =
            ARROWS.iter().map(|(name, allowed)| Package::sample(name, allowed)).collect();
        members.retain(|member| member.name != changed.name);
        members.push(changed.clone());
        check(members.iter()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_allowed_arrows_are_allowed() {
        assert_eq!(said(&Package::sample("sublet-core", &["serde"])), Vec::<String>::new());
    }

    #[test]
    fn one_shell_sees_the_other_in_its_tests_alone() {
        let mut agent = Package::sample("sublet-agent", &["sublet-broker"]);
        assert_eq!(said(&agent), Vec::<String>::new());
        agent.dependencies = Package::sample_needed(&["sublet-broker"]);
        assert!(said(&agent)[0].contains("for its tests alone"));
    }

    #[test]
    fn the_core_may_use_nothing_of_ours() {
        let said = said(&Package::sample("sublet-core", &["sublet-log"]));
        assert!(said[0].contains("sublet-core depends on sublet-log"));
    }

    #[test]
    fn nobody_may_use_the_simulator_even_in_tests() {
        let said = said(&Package::sample("sublet-broker", &["sublet-core", "sublet-sim"]));
        assert!(said[0].contains("sublet-broker depends on sublet-sim"));
    }

    #[test]
    fn only_the_log_sees_sqlite() {
        assert!(said(&Package::sample("sublet-broker", &["rusqlite"]))[0].contains("rusqlite"));
        assert_eq!(said(&Package::sample("sublet-log", &["rusqlite"])), Vec::<String>::new());
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert!(said(&Package::sample("sublet-new", &[]))[0].contains("has no row"));
    }

    #[test]
    fn a_crate_may_use_itself_in_its_tests() {
        assert_eq!(said(&Package::sample("sublet-log", &["sublet-log"])), Vec::<String>::new());
    }

    #[test]
    fn the_table_has_a_row_per_crate() {
        assert!(table().contains("| `sublet-log` | `sublet-core` |\n"));
        assert!(table().contains("| `sublet-core` | nothing |\n"));
    }
}
