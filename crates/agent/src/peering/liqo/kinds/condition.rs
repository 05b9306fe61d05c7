//! What Liqo says to be true of an object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that is said. A list of them is written as a whole, so what others wrote into theirs is
/// kept, whatever it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// About what.
    #[serde(rename = "type")]
    pub type_: String,
    /// How it is: `Accepted`, `Denied`, `Established` …
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why.
    pub message: String,
    /// Everything else.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// How it is with something; none if nothing is said of it.
pub fn status<'a>(conditions: &'a [Condition], about: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == about)
}
