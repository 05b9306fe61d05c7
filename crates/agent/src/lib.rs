//! The agent: the shell in a cluster. Modules are listed in reading order: from the command line to
//! the cluster, from what is measured to what is published, and what the broker wants done.

pub mod config;
mod clock;
pub mod identity;
pub mod cluster;
pub mod metrics;
mod secure;
mod kinds;
mod restraint;
pub mod collect;
pub mod watch;
pub mod offer;
pub mod advertise;
pub mod transport;
pub mod publish;
pub mod relay;
pub mod peering;
pub mod controllers;
pub mod leader;
mod error;
mod join;
mod work;
mod run;

pub use error::Error;
pub use run::{Addresses, run};
