//! Reads whatever is written as text, without a copy of the text on the way.

use core::{fmt, marker::PhantomData, str::FromStr};

use serde::de::{self, Visitor};

/// Hands text to `FromStr`: millions of names are read at a start, and none of them is kept twice.
pub(crate) struct Parsed<T>(PhantomData<T>);

impl<T> Parsed<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Parsed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
