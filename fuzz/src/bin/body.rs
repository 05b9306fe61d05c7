//! Any bytes are refused as a body, or are one that survives being written, and that becomes either
//! a command within all limits or a refusal that names a field.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use sublet_wire::decode::{Error, Fill, decode};
use sublet_wire::limits::{MESSAGE_CONTENT_MAX, MESSAGE_TTL_MAX};
use sublet_wire::v1::{Advertisement, Message, Reservation, ReservationRequest, WatchEvent};
use sublet_wire::{Problem, encode};

fuzz_target!(|bytes: &[u8]| check(bytes));

fn check(bytes: &[u8]) {
    if let Some(request) = survives::<ReservationRequest>(bytes) {
        match request.to_core() {
            Ok(ask) => assert!(ask.resources.cpu > 0 && ask.resources.memory > 0),
            Err(invalid) => assert!(!invalid.field.is_empty() && !invalid.message.is_empty()),
        }
    }
    if let Some(word) = survives::<Advertisement>(bytes) {
        match word.to_core("c1".parse().expect("a name")) {
            Ok(known) => drop(known.validated().expect("what was checked stays right")),
            Err(invalid) => assert!(!invalid.field.is_empty() && !invalid.message.is_empty()),
        }
    }
    if let Some(message) = survives::<Message>(bytes) {
        match message.to_post() {
            Ok(post) => {
                assert!(!post.content.is_empty() && post.content.len() <= MESSAGE_CONTENT_MAX);
                assert!(!post.ttl.is_zero() && post.ttl <= MESSAGE_TTL_MAX);
            }
            Err(problem) => assert!(matches!(problem.status(), 400 | 413)),
        }
    }
    // What a hostile broker may say to the client.
    survives::<Reservation>(bytes);
    survives::<WatchEvent>(bytes);
    survives::<Problem>(bytes);
}

/// What is read is the same when it is written and read again, with something after it.
fn survives<T>(bytes: &[u8]) -> Option<T>
where
    T: Fill + Default + Serialize + PartialEq + core::fmt::Debug,
{
    match decode::<T>(bytes) {
        Ok(value) => {
            let mut written = encode(&value);
            assert_eq!(decode::<T>(&written).as_ref(), Ok(&value));
            written.extend_from_slice(b"and more");
            assert_eq!(decode::<T>(&written).as_ref(), Ok(&value));
            Some(value)
        }
        Err(error) => {
            let (Error::Malformed { what: said, .. } | Error::TooMany { path: said, .. }) = &error
            else {
                return None;
            };
            assert!(!said.is_empty());
            assert_eq!(Problem::from(error).status(), 400);
            None
        }
    }
}
