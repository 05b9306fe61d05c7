//! The metrics in the code and the metrics in the page for operators are the same.

use std::collections::BTreeSet;

use crate::source::Source;
use crate::tidy::Violation;

/// Where metrics are registered, each with its name as the first argument of `register`.
const CODE: &str = "crates/broker/src/metrics.rs";
/// Where they are described, each in a row of a table that begins with its name.
const PAGE: &str = "docs/metrics.md";
const PREFIX: &str = "sublet_broker_";

/// Every metric has a row, and every row a metric.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let (Some(code), page) = (find(CODE), find(PAGE)) else { return Vec::new() };
    let registered = registered(&code.text);
    let described = page.map(|page| described(&page.text)).unwrap_or_default();
    let missing = registered.difference(&described).map(|name| {
        Violation::at(PAGE, 1, format!("{PREFIX}{name} is not described"), "add a row for it")
    });
    let stale = described.difference(&registered).map(|name| {
        Violation::at(PAGE, 1, format!("{PREFIX}{name} is not in the code"), "remove its row")
    });
    missing.chain(stale).collect()
}

fn registered(code: &str) -> BTreeSet<String> {
    let calls = code.split("register(").skip(1);
    let names = calls.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    names.map(str::to_owned).collect()
}

/// Counters have `_total` at the end where Prometheus sees them.
fn described(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_prefix(PREFIX));
    let names = rows.filter_map(|row| row.split(['`', '{']).next());
    names.map(|name| name.strip_suffix("_total").unwrap_or(name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, page: &str) -> Vec<String> {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources = [source(CODE, code), source(PAGE, page)];
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
}
