//! What is left behind when work stops half-way: markers, debugging calls, tests and lints that are
//! switched off, code in comments.

use crate::source::{Source, Views};
use crate::tidy::Violation;

/// Words that say that something is not finished; in comments and in prose.
const WORDS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Calls and attributes, and what to do instead; in code.
const CODE: [(&str, &str); 4] = [
    ("dbg!(", "remove it"),
    ("todo!(", "write it, or leave the item out"),
    ("unimplemented!(", "write it, or leave the item out"),
    ("#[ignore", "make the test run, or delete it"),
];

/// How a line of code begins, what is in it and how it ends; a comment of which all three are true
/// is code.
const CODE_BEGINS: [&str; 15] = [
    "let ", "use ", "pub ", "fn ", "return ", "if ", "for ", "while ", "match ", "impl ",
    "struct ", "enum ", "mod ", "#[", "self.",
];
const CODE_HOLDS: [&str; 4] = ["(", "=", "::", "{"];
const CODE_ENDS: [char; 3] = [';', '{', '}'];

/// Whatever of this kind is in one file.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    if source.is_rust() {
        let views = Views::of(&source.text);
        let mut found = words(&source.path, views.comments.lines());
        found.extend(calls(&source.path, &views.code));
        found.extend(switched_off(&source.path, &views.code));
        found.extend(commented_code(&source.path, &views.comments));
        found
    } else if source.is_markdown() {
        let prose: Vec<_> = prose(&source.text).collect();
        words(&source.path, prose.iter().map(String::as_str))
    } else {
        words(&source.path, source.text.lines())
    }
}

fn words<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let mut parts = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        if let Some(word) = parts.find(|part| WORDS.contains(part)) {
            found.push(Violation::at(
                path,
                number,
                format!("leftover {word}"),
                "do it now, or open an issue",
            ));
        }
    }
    found
}

/// The lines of a page without code: fenced blocks are blank, and so is what stands between
/// backticks.
fn prose(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    text.lines().map(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fence || fenced {
            String::new()
        } else {
            line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
        }
    })
}

fn calls(path: &str, code: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        for (marker, remedy) in CODE.iter().filter(|(marker, _)| line.contains(marker)) {
            found.push(Violation::at(path, number, format!("leftover `{marker}`"), *remedy));
        }
    }
    found
}

/// Attributes that switch a lint off without saying why, or that keep what nobody uses.
fn switched_off(path: &str, code: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for opening in ["[allow(", "[expect("] {
        for (at, _) in code.match_indices(opening) {
            let attribute =
                code[at..].split_once(']').map_or(&code[at..], |(attribute, _)| attribute);
            let line = code[..at].matches('\n').count() + 1;
            if attribute.contains("dead_code") {
                found.push(Violation::at(
                    path,
                    line,
                    "dead code is kept",
                    "delete what nobody uses",
                ));
            } else if !attribute.contains("reason =") {
                let what = format!("`#{opening}…)]` without a reason");
                found.push(Violation::at(path, line, what, "write `#[expect(…, reason = \"…\")]`"));
            }
        }
    }
    found
}

/// Comments that read like code. Documentation may show code, so only plain comments count.
fn commented_code(path: &str, comments: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(comments.lines()) {
        let Some(comment) = line.trim_start().strip_prefix("//").map(str::trim) else {
            continue;
        };
        let begins = CODE_BEGINS.iter().any(|begin| comment.starts_with(begin));
        let holds = CODE_HOLDS.iter().any(|part| comment.contains(part));
        if begins && holds && comment.ends_with(CODE_ENDS) {
            found.push(Violation::at(
                path,
                number,
                "code in a comment",
                "delete it; git remembers",
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
    fn a_marker_in_a_comment_is_found_with_its_line() {
        let found = said("a.rs", "fn a() {}\n// TODO: later\n");
        assert_eq!(found, ["a.rs:2: leftover TODO; do it now, or open an issue"]);
    }

    #[test]
    fn a_marker_in_a_string_or_inside_a_word_is_fine() {
        assert!(said("a.rs", "const A: &str = \"TODO dbg!(\"; // XXXXXX TODOS\n").is_empty());
    }

    #[test]
    fn a_page_may_name_a_marker_as_code() {
        assert!(said("a.md", "No `TODO` here.\n```\nFIXME\n```\n").is_empty());
        assert_eq!(said("a.md", "FIXME\n").len(), 1);
    }

    #[test]
    fn calls_and_switched_off_tests_are_found() {
        let text =
            "fn a() { dbg!(1); todo!(); unimplemented!(); }\n#[ignore = \"slow\"]\nfn b() {}\n";
        assert_eq!(said("a.rs", text).len(), 4);
    }

    #[test]
    fn a_lint_is_switched_off_only_with_a_reason() {
        assert_eq!(said("a.rs", "#[allow(clippy::x)]\nfn a() {}\n").len(), 1);
        assert_eq!(said("a.rs", "#[expect(clippy::x)]\nfn a() {}\n").len(), 1);
        assert!(
            said("a.rs", "#[expect(\n    clippy::x,\n    reason = \"it [must]\"\n)]\nfn a() {}\n")
                .is_empty()
        );
    }

    #[test]
    fn dead_code_is_not_kept_whatever_the_reason() {
        assert_eq!(said("a.rs", "#[allow(dead_code, reason = \"later\")]\nfn a() {}\n").len(), 1);
    }

    #[test]
    fn code_in_a_comment_is_found() {
        assert_eq!(said("a.rs", "// let a = b();\n").len(), 1);
        assert_eq!(said("a.rs", "    // if a::b(c) {\n").len(), 1);
    }

    #[test]
    fn prose_and_examples_in_documentation_are_no_code() {
        assert!(
            said("a.rs", "// if it fails, nothing is lost;\n// use the other one (see below).\n")
                .is_empty()
        );
        assert!(said("a.rs", "/// let a = b();\n//! use a::b;\n").is_empty());
    }
}
