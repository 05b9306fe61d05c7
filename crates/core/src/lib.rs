//! The heart of Sublet: a pure ledger and the decisions on it.
//!
//! No clock, no I/O, no randomness, no float: `now` is an argument, ties end at a name, and the
//! same input gives the same output on every machine. `no_std` lets the compiler keep that promise.
//! Modules are listed in reading order.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::float_arithmetic,
        clippy::arithmetic_side_effects
    )
)]

extern crate alloc;

mod text;
pub mod bugs;
pub mod id;
pub mod time;
pub mod quantity;
pub mod resources;
pub mod advertisement;
pub mod reservation;
pub mod event;
pub mod policy;
pub mod ledger;
pub mod market;
pub mod books;
pub mod decision;
pub mod plan;
pub mod instruction;
pub mod invariants;
