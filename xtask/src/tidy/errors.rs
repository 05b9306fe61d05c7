//! Every error code has its page in docs/errors, and every page its code.
//!
//! The codes are read from docs/openapi.json, which is made from the code: no build is needed, and
//! the check of generated files sees that it is up to date.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::source::Source;
use crate::tidy::Violation;

const DESCRIPTION: &str = "docs/openapi.json";
const FOLDER: &str = "docs/errors/";
const INDEX: &str = "README";

/// The codes without a page, and the pages without a code.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let Some(description) = sources.iter().find(|source| source.path == DESCRIPTION) else {
        return Vec::new();
    };
    let Some(codes) = codes(&description.text) else {
        let what = "the schema `Code` does not list the codes";
        return vec![Violation::at(DESCRIPTION, 1, what, "run `cargo xtask gen`")];
    };
    let pages: BTreeSet<_> = sources.iter().filter_map(page).collect();
    let missing = codes.iter().filter(|code| !pages.contains(code.as_str())).map(|code| {
        let what = format!("the error code {code} has no page");
        Violation::at(&format!("{FOLDER}{INDEX}.md"), 1, what, format!("write {FOLDER}{code}.md"))
    });
    let extra = pages.iter().filter(|page| !codes.contains(**page)).map(|page| {
        let what = format!("there is no error code {page}");
        Violation::at(&format!("{FOLDER}{page}.md"), 1, what, "remove the page, or name it right")
    });
    missing.chain(extra).collect()
}

fn codes(description: &str) -> Option<BTreeSet<String>> {
    let document: Value = serde_json::from_str(description).ok()?;
    let codes = document.pointer("/components/schemas/Code/oneOf")?.as_array()?;
    codes.iter().map(|code| Some(code["const"].as_str()?.to_owned())).collect()
}

/// What a page of the folder is about.
fn page(source: &Source) -> Option<&str> {
    let name = source.path.strip_prefix(FOLDER)?.strip_suffix(".md")?;
    (name != INDEX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pages: &[&str]) -> Vec<String> {
        let file = |path: String, text: &str| Source { path, text: text.to_owned() };
        let codes =
            r#"{"components":{"schemas":{"Code":{"oneOf":[{"const":"A"},{"const":"B"}]}}}}"#;
        let mut sources = vec![file(DESCRIPTION.to_owned(), codes)];
        sources.extend(pages.iter().map(|page| file(format!("{FOLDER}{page}.md"), "")));
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_page_for_each_code_is_right() {
        assert!(said(&["A", "B", "README"]).is_empty());
    }

    #[test]
    fn a_code_without_a_page_is_found() {
        assert!(said(&["A"])[0].contains("error code B has no page"));
    }

    #[test]
    fn a_page_without_a_code_is_found() {
        assert!(
            said(&["A", "B", "C"])[0].starts_with("docs/errors/C.md:1: there is no error code C")
        );
    }

    #[test]
    fn a_description_that_lists_no_codes_is_found() {
        let empty = Source { path: DESCRIPTION.to_owned(), text: "{}".to_owned() };
        assert_eq!(check(&[empty]).len(), 1);
    }
}
