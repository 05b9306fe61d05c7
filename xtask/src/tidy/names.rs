//! What a file is called, how it opens, and which names of the outside world it must not contain.

use crate::source::Source;
use crate::tidy::Violation;

/// File names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 5] = ["utils", "util", "helpers", "common", "manager"];

/// Hosts from which packages come, in two parts so that this file does not contain them. Which
/// mirror a machine uses is its own affair; a tree that names one builds on that machine only.
const HOSTS: [(&str, &str); 8] = [
    ("index.crates", "io"),
    ("static.crates", "io"),
    ("registry.npmjs", "org"),
    ("registry.yarnpkg", "com"),
    ("proxy.golang", "org"),
    ("files.pythonhosted", "org"),
    ("deb.debian", "org"),
    ("registry-1.docker", "io"),
];

/// What is wrong with the name or the opening of one file, or with what it refers to.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Some(name) = empty_name(source) {
        let what = format!("`{name}` says nothing of what is inside");
        found.push(Violation::at(&source.path, 1, what, "name it after what it owns"));
    }
    if is_crate_code(source) && !source.text.starts_with("//!") {
        found.push(Violation::at(
            &source.path,
            1,
            "no module documentation",
            "open the file with `//!`: what it owns, and what it does not",
        ));
    }
    found.extend(outside(source));
    found
}

fn empty_name(source: &Source) -> Option<&str> {
    let mut parts = source.path.split('/').rev().skip(1).chain([source.stem()]);
    parts.find(|part| EMPTY_NAMES.contains(part))
}

fn is_crate_code(source: &Source) -> bool {
    let mut parts = source.path.split('/');
    source.is_rust() && parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

/// References to package hosts, and code that reads what lies beside the tree.
fn outside(source: &Source) -> Vec<Violation> {
    let beside = format!("{}/shared", "..");
    let mut found = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        if let Some((host, domain)) =
            HOSTS.iter().find(|(host, domain)| line.contains(&format!("{host}.{domain}")))
        {
            let what = format!("names the package host {host}.{domain}");
            found.push(Violation::at(
                &source.path,
                number,
                what,
                "leave it to the machine's own configuration",
            ));
        }
        if line.contains(&beside) {
            let what = format!("refers to {beside}, which is not part of the tree");
            found.push(Violation::at(
                &source.path,
                number,
                what,
                "copy what is needed into the tree",
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_that_says_nothing_is_found_for_files_and_folders() {
        assert!(said("crates/core/src/utils.rs", "//! Doc.")[0].contains("says nothing"));
        assert!(said("crates/core/tests/common/mod.rs", "")[0].contains("says nothing"));
        assert!(said("crates/core/src/ledger.rs", "//! Doc.").is_empty());
    }

    #[test]
    fn crate_code_opens_with_its_documentation() {
        assert!(
            said("crates/core/src/ledger.rs", "use alloc::vec;")[0]
                .contains("no module documentation")
        );
        assert!(said("crates/core/tests/ledger.rs", "use alloc::vec;").is_empty());
    }

    #[test]
    fn a_package_host_is_found_with_its_line() {
        let (host, domain) = HOSTS[0];
        let found = said("docs/a.md", &format!("one\nhttps://{host}.{domain}/x\n"));
        assert!(found[0].starts_with("docs/a.md:2: names the package host"));
    }

    #[test]
    fn nothing_refers_to_what_lies_beside_the_tree() {
        let text = format!("const DATA: &str = \"{}/shared/data\";", "..");
        assert!(said("xtask/src/a.rs", &text)[0].contains("not part of the tree"));
    }
}
