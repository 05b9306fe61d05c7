//! The broker: the shell around the core. So far its engine and its clock.

pub mod clock;
pub mod engine;
