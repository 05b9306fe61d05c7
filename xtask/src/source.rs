//! A text file of the tree, and what a Rust file looks like without its strings and comments.
//!
//! The checks look for words and braces. A small lexer that knows strings, characters and comments
//! is enough to do that without being fooled, and costs no parser.

/// A text file: its path from the root of the tree, with `/` on every platform, and its text.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Whether this is a Rust file.
    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == Some("rs")
    }

    /// Whether this is a Markdown page.
    pub(crate) fn is_markdown(&self) -> bool {
        self.extension() == Some("md")
    }

    /// Whether all of it is test code, by where it lies.
    pub(crate) fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| matches!(part, "tests" | "benches" | "examples" | "tests.rs"))
    }

    /// The file's last name, without what follows the last dot.
    pub(crate) fn stem(&self) -> &str {
        self.name().rsplit_once('.').map_or(self.name(), |(stem, _)| stem)
    }

    fn extension(&self) -> Option<&str> {
        self.name().rsplit_once('.').map(|(_, extension)| extension)
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A Rust file seen twice, line for line and column for column: once as code, once as comments.
/// What belongs to the other view, and the inside of every string, is blank.
pub(crate) struct Views {
    pub(crate) code: String,
    pub(crate) comments: String,
}

impl Views {
    /// Separates code from comments.
    pub(crate) fn of(text: &str) -> Self {
        let mut lexer = Lexer {
            rest: text,
            before: ' ',
            views: Self { code: String::new(), comments: String::new() },
        };
        while !lexer.rest.is_empty() {
            lexer.step();
        }
        lexer.views
    }
}

/// What a piece of text is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

struct Lexer<'a> {
    rest: &'a str,
    /// The character before `rest`, to tell the `r` of a raw string from the end of a name.
    before: char,
    views: Views,
}

impl Lexer<'_> {
    /// Takes one comment, one literal, or one character of code.
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            self.take(rest.find('\n').unwrap_or(rest.len()), Kind::Comment);
        } else if rest.starts_with("/*") {
            self.take(block_comment(rest), Kind::Comment);
        } else if let Some(length) = self.raw_string() {
            self.take(length, Kind::Literal);
        } else if rest.starts_with('"') {
            self.take(quoted(rest, '"'), Kind::Literal);
        } else if let Some(length) = character(rest) {
            self.take(length, Kind::Literal);
        } else {
            self.take(rest.chars().next().map_or(1, char::len_utf8), Kind::Code);
        }
    }

    /// The length of the raw string that begins here, `r"…"` or `br#"…"#`.
    fn raw_string(&self) -> Option<usize> {
        if self.before.is_alphanumeric() || self.before == '_' {
            return None;
        }
        let prefix = if self.rest.starts_with("br") { 2 } else { 1 };
        let body = self.rest.strip_prefix("br").or_else(|| self.rest.strip_prefix('r'))?;
        let hashes = body.len() - body.trim_start_matches('#').len();
        let text = body[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = text.find(&end).map_or(text.len(), |at| at + end.len());
        Some(prefix + hashes + 1 + length)
    }

    fn take(&mut self, length: usize, kind: Kind) {
        let (piece, rest) = self.rest.split_at(length);
        for character in piece.chars() {
            let shown = |wanted| {
                if character == '\n' || kind == wanted { character } else { ' ' }
            };
            self.views.code.push(shown(Kind::Code));
            self.views.comments.push(shown(Kind::Comment));
        }
        self.before = piece.chars().next_back().unwrap_or(' ');
        self.rest = rest;
    }
}

/// The length of the block comment that begins here; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let tail = &text.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the literal that begins and ends with this quote; a backslash hides one character.
fn quoted(text: &str, quote: char) -> usize {
    let mut hidden = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if hidden => hidden = false,
            '\\' => hidden = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the character literal that begins here, unless it is a lifetime.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some(quoted(text, '\''));
    }
    inside[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Views::of(text).code
    }

    #[test]
    fn strings_and_comments_are_blank_in_the_code() {
        assert_eq!(code("a(\"}\") // {\nb"), "a(   )     \nb");
        assert_eq!(code("a /* { /* nested */ } */ b"), "a                        b");
    }

    #[test]
    fn comments_stand_in_their_own_view_at_their_own_place() {
        assert_eq!(Views::of("x; // why\ny").comments, "   // why\n ");
    }

    #[test]
    fn a_raw_string_ends_only_with_its_own_hashes() {
        assert_eq!(code("r#\"a\"b\"#;"), "        ;");
        assert_eq!(code("br\"\\\";"), "     ;");
    }

    #[test]
    fn a_name_that_ends_in_r_does_not_begin_a_raw_string() {
        assert_eq!(code("for\"x\""), "for   ");
    }

    #[test]
    fn a_quote_in_a_character_does_not_begin_a_string() {
        assert_eq!(code("f('\"', '\\'', b'{')"), "f(   ,     , b   )");
    }

    #[test]
    fn a_lifetime_is_code() {
        assert_eq!(code("&'a str, 'b'"), "&'a str,    ");
    }

    #[test]
    fn an_escaped_quote_does_not_end_a_string() {
        assert_eq!(code("\"a\\\"}\"x"), "      x");
    }
}
