//! The decisions about a link, without a cluster.

mod borrowing;
mod ending;
mod lending;
mod stage;
