//! The metrics in the code and the metrics in the page for operators are the same.

use std::collections::BTreeSet;

use crate::source::Source;
use crate::tidy::Violation;

/// Where metrics are registered, each with its name as the first argument of `register`, and what
/// every name begins with.
const CODE: [(&str, &str); 2] = [
    ("crates/broker/src/metrics.rs", "sublet_broker_"),
    ("crates/agent/src/metrics.rs", "sublet_agent_"),
];
/// Where they are described, each in a row of a table that begins with its name.
const PAGE: &str = "docs/metrics.md";

/// Every metric has a row, and every row a metric.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let page = find(PAGE).map_or("", |page| page.text.as_str());
    let of = |(path, prefix)| find(path).map(|code| compare(&code.text, page, prefix));
    CODE.into_iter().filter_map(of).flatten().collect()
}

fn compare(code: &str, page: &str, prefix: &str) -> Vec<Violation> {
    let (registered, described) = (registered(code), described(page, prefix));
    let missing = registered.difference(&described).map(|name| {
        Violation::at(PAGE, 1, format!("{prefix}{name} is not described"), "add a row for it")
    });
    let stale = described.difference(&registered).map(|name| {
        Violation::at(PAGE, 1, format!("{prefix}{name} is not in the code"), "remove its row")
    });
    missing.chain(stale).collect()
}

fn registered(code: &str) -> BTreeSet<String> {
    let calls = code.split("register(").skip(1);
    let names = calls.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    names.map(str::to_owned).collect()
}

/// Counters have `_total` at the end where Prometheus sees them.
fn described(page: &str, prefix: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_prefix(prefix));
    let names = rows.filter_map(|row| row.split(['`', '{']).next());
    names.map(|name| name.strip_suffix("_total").unwrap_or(name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, page: &str) -> Vec<String> {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources = [source(CODE[0].0, code), source(PAGE, page)];
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_metric_without_a_row_and_a_row_without_a_metric_are_found() {
        let code =
            "all.register(\"requests\", \"Help\", x);\nall.register(\n    \"up\", \"Help\", y);";
        let both = "| `sublet_broker_requests_total{route}` | … |\n| `sublet_broker_up` | … |\n";
        assert_eq!(said(code, both), Vec::<String>::new());
        let one = "| `sublet_broker_up` | … |\n| `sublet_broker_gone` | … |\n";
        let said = said(code, one);
        assert!(said[0].contains("sublet_broker_requests is not described"), "{said:?}");
        assert!(said[1].contains("sublet_broker_gone is not in the code"), "{said:?}");
    }

    #[test]
    fn what_one_program_has_is_not_looked_for_in_the_other() {
        let code = "all.register(\"up\", \"Help\", y);";
        let page = "| `sublet_broker_up` | … |\n| `sublet_agent_up` | … |\n";
        assert_eq!(said(code, page), Vec::<String>::new());
    }
}
