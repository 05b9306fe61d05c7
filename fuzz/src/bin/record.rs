//! Any text is refused, or is a record that survives being written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sublet_core::id::Revision;
use sublet_log::{Body, Checksum, Head, Record};

fuzz_target!(|text: &str| {
    check(text);
    // No fuzzer guesses a checksum, so what follows it is tried with the right one as well.
    let checksum = Checksum::of(text.as_bytes());
    check(&format!("{text},\"checksum\":\"{checksum}\"}}"));
});

fn check(text: &str) {
    let Ok(record) = Record::decode(text) else {
        return;
    };
    assert_eq!(record.text(), text);
    let Some(before) = record.revision().0.checked_sub(1) else {
        return;
    };
    let time = record.time();
    let after = Head { revision: Revision(before), checksum: record.previous(), time };
    let body = Body::of(record.events().to_vec()).expect("what was read can be written");
    // What is shorter in some other spelling may be too long in ours.
    if let Ok(again) = Record::seal(&after, record.writer(), time, body) {
        let again = Record::decode(again.text()).expect("what was written can be read");
        assert_eq!(again.events(), record.events());
        assert_eq!(again.revision(), record.revision());
        assert_eq!(again.writer(), record.writer());
    }
}
