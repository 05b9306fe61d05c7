//! How values that have a text are printed.

use std::fmt::Display;

use serde::Serializer;

#[expect(clippy::ref_option, reason = "serde passes the field")]
pub(super) fn some_text<S: Serializer>(
    value: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

pub(super) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
