//! Any text is refused, or is a span that survives printing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sublet_core::time::Span;

fuzz_target!(|text: &str| check(text));

fn check(text: &str) {
    let Ok(span) = text.parse::<Span>() else {
        return;
    };
    assert_eq!(span.to_string().parse(), Ok(span));
}
