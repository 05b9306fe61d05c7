//! Reads JSON as Go's `encoding/json` does, because that is what the existing agents rely on.
//!
//! Names of members match in any case. Unknown members are ignored, and so is whatever follows the
//! first value. A member that comes twice is read twice into the same place: the last text wins,
//! and objects are merged. `null` leaves a plain value as it is, and empties an optional one.
//!
//! serde's derived readers can do none of this, so a type lists its members with `object!` and is
//! filled in place, straight from the text: nothing is read into a tree first. The reader knows
//! where it is, so that an error names the member: `requestedResources.cpu`.
//!
//! Where we are stricter: text must be UTF-8 and surrogates come in pairs (Go replaces what is
//! wrong), values are at most 128 deep (Go: 10 000), a document has a longest length, and a list and
//! an object with free names have a most that is read of them.

mod fill;
mod trail;

use std::cell::RefCell;

use crate::limits::DOCUMENT_MAX;

pub use fill::Fill;
pub(crate) use fill::{Object, Place, add_named, fill_object, leaf, object};
use trail::Failed;
pub use trail::Trail;

/// Why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not JSON, or a member of another type.
    #[error("{}{what}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
    Malformed {
        /// The member, as in `requestedResources.cpu`; empty when it is the document itself.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// A list or an object with more in it than is read.
    #[error("{path}: more than the {most} that are read: leave some out")]
    TooMany {
        /// The member, as in `grants`.
        path: String,
        /// How many there may be.
        most: usize,
    },
    /// Longer than [`DOCUMENT_MAX`].
    #[error("the document has {length} bytes, more than the {DOCUMENT_MAX} that are read")]
    TooLong {
        /// How long it is.
        length: usize,
    },
}

/// Reads the first JSON value of `bytes` as Go does.
pub fn decode<T: Fill + Default>(bytes: &[u8]) -> Result<T, Error> {
    if bytes.len() > DOCUMENT_MAX {
        return Err(Error::TooLong { length: bytes.len() });
    }
    let failed = RefCell::new(Failed::default());
    let mut value = T::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let Err(error) = value.fill(&mut reader, &Trail::new(&failed)) else { return Ok(value) };
    let Failed { path, most } = failed.into_inner();
    let path = path.unwrap_or_default();
    Err(match most {
        Some(most) => Error::TooMany { path, most },
        None => Error::Malformed { path, what: error.to_string() },
    })
}

#[cfg(test)]
mod tests;
