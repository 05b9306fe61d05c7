//! The pure core of Sublet: what capacity is, who holds it, and what may happen to it next.
//!
//! Nothing here reads a clock, touches a file or draws a random number, and no number is a float, so
//! that the same inputs give the same decision on every machine.

#![cfg_attr(not(test), no_std)]
// A panic in the core would stop a broker in the middle of a decision, so what could panic is refused
// by the compiler. Tests may panic; that is how they fail.
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

pub mod quantity;
pub mod time;
