//! Any text after the host is refused, or is parts and parameters that are read as one thing or not
//! at all: a name, a key, an id, a cursor that is read is the same when it is written and read again.

#![no_main]

use core::fmt::Display;
use core::str::FromStr;

use axum::extract::Query;
use axum::http::Uri;
use libfuzzer_sys::fuzz_target;
use sublet_broker::stream::Cursor;
use sublet_core::id::{ClusterId, Key, ReservationId};
use sublet_wire::{Timestamp, v1};

fuzz_target!(|text: &str| {
    check(text);
    let Ok(uri) = text.parse::<Uri>() else { return };
    for part in uri.path().split('/') {
        check(part);
    }
    // As the broker reads it.
    let Ok(Query(parameters)) = Query::<Vec<(String, String)>>::try_from_uri(&uri) else { return };
    for (name, value) in parameters {
        check(&name);
        check(&value);
    }
});

fn check(text: &str) {
    survives::<ClusterId>(text, |read| assert!((1..=50).contains(&read.as_str().len())));
    survives::<Key>(text, |read| assert!(read.to_string().bytes().all(|b| b.is_ascii_graphic())));
    survives::<ReservationId>(text, |read| assert_eq!(read.to_string(), text));
    survives::<Cursor>(text, |_| ());
    survives::<v1::Cursor>(text, |_| ());
    survives::<Timestamp>(text, |_| ());
    survives::<u32>(text, |_| ());
}

/// What is read is the same when it is written and read again.
fn survives<T>(text: &str, holds: impl FnOnce(&T))
where
    T: FromStr + Display + PartialEq + core::fmt::Debug,
{
    if let Ok(read) = text.parse::<T>() {
        holds(&read);
        assert_eq!(read.to_string().parse::<T>().ok().as_ref(), Some(&read));
    }
}
