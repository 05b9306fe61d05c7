//! From the wire into the core and back: what is meant arrives, and what is wrong is named.

mod advertisements;
mod requests;
mod refusals;
mod views;

use serde_json::Value;
use sublet_wire::decode::{Fill, decode};

/// Reads a value of the wire.
fn read<T: Fill + Default>(value: &Value) -> T {
    decode(value.to_string().as_bytes()).expect("it has the right types")
}

/// The value with the member at `pointer` set.
fn with(mut value: Value, pointer: &str, member: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    value.pointer_mut(parent).expect("it is there")[name] = member;
    value
}
