//! Borrowing: asking for capacity, keeping it, changing it, giving it back.

pub(crate) mod explain;
pub(crate) mod keep;
pub(crate) mod release;
pub(crate) mod request;
mod ask;

pub(crate) use ask::{Amount, Ask, Resources};
