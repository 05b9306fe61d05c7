//! Writes JSON as Go's `json.Encoder` does: `<`, `>` and `&` escaped, a newline at the end.
//!
//! Go escapes them so that an answer is harmless inside a web page, which our dashboard is glad of.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

/// The value as one line of JSON, with its newline.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1024);
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, Go(CompactFormatter));
    // Our types have names for keys, and memory does not refuse to be written to.
    drop(value.serialize(&mut writer));
    bytes.push(b'\n');
    bytes
}

/// What Go escapes beyond what JSON asks for; the last two end a line in JavaScript.
const SPECIAL: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

struct Go(CompactFormatter);

impl Formatter for Go {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        // Bytes are looked at much faster than letters, and hardly any text has one of these.
        let may_need_escape = |b: u8| matches!(b, b'<' | b'>' | b'&' | 0xe2);
        while rest.bytes().any(may_need_escape) {
            let Some(at) = rest.find(SPECIAL) else { break };
            let (plain, special) = rest.split_at(at);
            let mut letters = special.chars();
            self.0.write_string_fragment(writer, plain)?;
            if let Some(letter) = letters.next() {
                write!(writer, "\\u{:04x}", u32::from(letter))?;
            }
            rest = letters.as_str();
        }
        self.0.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn what_a_browser_would_read_as_markup_is_escaped_as_go_does() {
        assert_eq!(
            encode("a<b>&c\u{2028}\"é\n"),
            b"\"a\\u003cb\\u003e\\u0026c\\u2028\\\"\xc3\xa9\\n\"\n"
        );
        assert_eq!(encode::<Option<u8>>(&None), b"null\n");
    }
}
