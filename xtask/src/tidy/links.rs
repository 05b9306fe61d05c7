//! Links between the pages of the tree lead somewhere.

use std::collections::BTreeSet;

use crate::source::Source;
use crate::tidy::Violation;

/// Every relative link of every page leads to a file or folder of the tree, and every `#heading` to
/// a heading.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let places = places(sources);
    let mut found = Vec::new();
    for page in sources.iter().filter(|source| source.is_markdown()) {
        for (line, link) in links(&page.text) {
            if let Some(what) = broken(&page.path, &link, &places, sources) {
                found.push(Violation::at(&page.path, line, what, "correct the link"));
            }
        }
    }
    found
}

/// The paths of all files, and of all folders that hold one.
fn places(sources: &[Source]) -> BTreeSet<&str> {
    let mut places = BTreeSet::from([""]);
    for source in sources {
        places.insert(&source.path);
        places.extend(source.path.match_indices('/').map(|(at, _)| &source.path[..at]));
    }
    places
}

/// The targets of `[text](target)` outside of code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        fenced ^= line.trim_start().starts_with("```");
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
        for rest in prose.split("](").skip(1).filter(|_| !fenced) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

fn broken(page: &str, link: &str, places: &BTreeSet<&str>, sources: &[Source]) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, heading) =
        link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let target = if file.is_empty() { Some(page.to_owned()) } else { resolved(page, file) };
    let Some(target) = target.filter(|target| places.contains(target.as_str())) else {
        return Some(format!("the link to {link} leads nowhere"));
    };
    let missing = |heading: &&str| {
        let page = sources.iter().find(|source| source.path == target && source.is_markdown());
        page.is_some_and(|page| !anchors(&page.text).any(|anchor| anchor == **heading))
    };
    heading.filter(missing).map(|heading| format!("{target} has no heading #{heading}"))
}

/// The path from the root of a link in a page; nothing when it leaves the tree.
fn resolved(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a page's headings, as forges make them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            file("README.md", "# Sublet\n## The two commands\n"),
            file("docs/adr/0001-a.md", text),
            file("crates/core/src/lib.rs", ""),
        ];
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_are_followed() {
        assert!(
            said(
                "[a](../../README.md) [b](../../crates/core) [c](../../README.md#the-two-commands)"
            )
            .is_empty()
        );
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_its_line() {
        let found = said("one\n[a](gone.md)");
        assert_eq!(
            found,
            ["docs/adr/0001-a.md:2: the link to gone.md leads nowhere; correct the link"]
        );
    }

    #[test]
    fn a_heading_that_is_not_there_is_found() {
        assert!(said("[a](../../README.md#gone)")[0].contains("no heading #gone"));
    }

    #[test]
    fn a_link_out_of_the_tree_is_found() {
        assert_eq!(said("[a](../../../elsewhere.md)").len(), 1);
    }

    #[test]
    fn the_web_and_code_are_not_followed() {
        assert!(said("[a](https://example.com/x) `[b](gone)`\n```\n[c](gone)\n```\n").is_empty());
    }
}
