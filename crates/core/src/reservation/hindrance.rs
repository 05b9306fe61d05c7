//! What kept two clusters apart, in the words of the agent that found out.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// What kept two clusters apart. The log keeps it and others read it, so it is short and plain text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hindrance {
    /// One word for programs; empty where it has no name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    word: String,
    /// What happened and what to do, for people.
    text: String,
}

impl Hindrance {
    /// Longer than any word there is.
    pub const WORD_MAX: usize = 64;
    /// In bytes: long enough for two fingerprints and what to do about them.
    pub const TEXT_MAX: usize = 512;

    /// What can be kept of what somebody said; none if that is nothing.
    pub fn new(word: &str, text: &str) -> Option<Self> {
        let is_word =
            word.len() <= Self::WORD_MAX && word.bytes().all(|b| b.is_ascii_alphanumeric());
        let word = String::from(if is_word { word } else { "" });
        let mut kept = String::new();
        for letter in text.trim().chars() {
            // Each is one character in a record, and none moves the cursor of who reads it.
            let letter = match letter {
                '"' | '\\' => '\'',
                // Nor does one turn around what follows it.
                letter if letter.is_control() || is_invisible(letter) => ' ',
                letter => letter,
            };
            if kept.len().saturating_add(letter.len_utf8()) > Self::TEXT_MAX {
                break;
            }
            kept.push(letter);
        }
        (!word.is_empty() || !kept.is_empty()).then_some(Self { word, text: kept })
    }

    /// One word for programs; empty where it has no name.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// What happened and what to do, for people.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Spaces of no width, and what sets the direction of writing.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_what_somebody_said_is_short_and_plain() {
        let said = Hindrance::new("KeyNotPinned", " no \"way\"\u{1b}[2J\u{202e}x\n").unwrap();
        assert_eq!((said.word(), said.text()), ("KeyNotPinned", "no 'way' [2J x"));
        let long = Hindrance::new(&"w".repeat(65), &"ä".repeat(400)).unwrap();
        assert_eq!((long.word(), long.text().len()), ("", Hindrance::TEXT_MAX));
        let nameless = Hindrance::new("not a word", "why").unwrap();
        assert_eq!((nameless.word(), nameless.text()), ("", "why"));
        assert_eq!(Hindrance::new("", " "), None);
        assert_eq!(Hindrance::new("NoLiqo", "").unwrap().word(), "NoLiqo");
    }
}
