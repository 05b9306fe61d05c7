//! How long files and functions are, without their tests.

use crate::source::{Source, Views};
use crate::tidy::ratchet::{Figure, Kind};

/// The lengths of a Rust file and of each of its functions; nothing for a file that is all tests.
pub(crate) fn measure(source: &Source) -> Vec<Figure> {
    if !source.is_rust() || source.is_test() {
        return Vec::new();
    }
    let code = Views::of(&source.text).code;
    let tests = test_blocks(&code);
    let in_tests: usize = tests.iter().map(|(first, last)| last + 1 - first).sum();
    let figure = |kind, name: &str, line, lines| Figure {
        kind,
        path: source.path.clone(),
        name: name.to_owned(),
        line,
        lines,
    };
    let mut figures = vec![figure(Kind::File, "", 1, source.text.lines().count() - in_tests)];
    for function in functions(&code) {
        if !tests.iter().any(|(first, last)| (first..=last).contains(&&function.first)) {
            let lines = function.last + 1 - function.first;
            figures.push(figure(Kind::Function, function.name, function.first + 1, lines));
        }
    }
    figures
}

/// A function with a body; lines are counted from 0.
struct Function<'a> {
    name: &'a str,
    first: usize,
    last: usize,
}

/// Every `fn name` that has a body, wherever it stands. Types like `fn(u8)` have no name and
/// signatures without body end at a semicolon, so neither is one.
fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let begins_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = code[at + 3..].trim_start();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if !begins_word || length == 0 {
            continue;
        }
        if let Some(end) = body(&code[at..]).map(|end| at + end) {
            found.push(Function {
                name: &rest[..length],
                first: line_of(code, at),
                last: line_of(code, end),
            });
        }
    }
    found
}

/// The lines of every `#[cfg(test)] mod … { … }` that stands at the left margin, attribute
/// included.
fn test_blocks(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, attribute) in code.match_indices("#[cfg(test)]") {
        let at_margin = at == 0 || code[..at].ends_with('\n');
        let rest = code[at + attribute.len()..].trim_start();
        if !at_margin || !(rest.starts_with("mod ") || rest.starts_with("pub(crate) mod ")) {
            continue;
        }
        let item = code.len() - rest.len();
        if let Some(end) = body(rest) {
            found.push((line_of(code, at), line_of(code, item + end)));
        }
    }
    found
}

/// Where the body of the item that begins here ends: at the brace that closes its first one outside
/// of parentheses and brackets. Nothing when a semicolon comes first.
fn body(code: &str) -> Option<usize> {
    let (mut nested, mut braces) = (0_i32, 0_i32);
    for (at, character) in code.char_indices() {
        match character {
            '(' | '[' if braces == 0 => nested += 1,
            ')' | ']' if braces == 0 => nested -= 1,
            ';' if braces == 0 && nested == 0 => return None,
            '{' if nested == 0 => braces += 1,
            '}' if nested == 0 => {
                braces -= 1;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<(String, usize)> {
        let source = Source { path: "crates/core/src/a.rs".to_owned(), text: text.to_owned() };
        measure(&source).into_iter().map(|figure| (figure.name, figure.lines)).collect()
    }

    fn named(name: &str, lines: usize) -> (String, usize) {
        (name.to_owned(), lines)
    }

    #[test]
    fn a_function_is_counted_from_its_name_to_its_last_brace() {
        let signature = "/// Doc.\npub fn a<const N: usize>(x: [u8; 3]) -> u8\nwhere\n    T: B,\n";
        let text = format!("{signature}{{\n    if x {{ \"}}\" }}\n}}\n");
        assert_eq!(lengths(&text), [named("", 7), named("a", 6)]);
    }

    #[test]
    fn the_trailing_tests_are_not_counted() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\n";
        assert_eq!(lengths(text), [named("", 2), named("a", 1)]);
    }

    #[test]
    fn a_test_module_in_its_own_file_takes_nothing_away() {
        assert_eq!(lengths("#[cfg(test)]\nmod tests;\nfn a() {}\n"), [named("", 3), named("a", 1)]);
    }

    #[test]
    fn signatures_without_body_and_function_types_are_no_functions() {
        assert_eq!(lengths("trait T { fn a(&self); }\ntype F = fn(u8) -> u8;\n"), [named("", 2)]);
    }

    #[test]
    fn functions_inside_of_functions_count_in_both() {
        assert_eq!(
            lengths("fn a() {\n  fn b() {\n  }\n}\n"),
            [named("", 4), named("a", 4), named("b", 2)]
        );
    }

    #[test]
    fn a_file_of_tests_is_not_measured() {
        let source = Source {
            path: "crates/log/tests/conformance.rs".to_owned(),
            text: "fn a() {}".to_owned(),
        };
        assert!(measure(&source).is_empty());
    }
}
