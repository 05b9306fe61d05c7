//! The whole system in one thread from one seed, with an independent auditor.
//!
//! The real core, the real engine step and the real clock run in a world of virtual time: several
//! brokers on one log, agents and requesters, a network and disks that misbehave. A run is a
//! function of its seed and of a list of steps from outside, so a failure repeats and can be
//! shortened. Modules are listed in reading order.

pub mod dice;
pub mod setup;
pub mod script;
pub mod home;
pub mod message;
pub mod sometimes;
pub mod trace;
pub mod world;
mod audit;
pub mod run;
pub mod shrink;
#[cfg(feature = "bugs")]
pub mod bugs;

pub use audit::Violation;
