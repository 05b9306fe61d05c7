//! The broker: the shell around the core. So far its engine, its clock and the streams of instructions.

pub mod clock;
pub mod engine;
pub mod stream;
