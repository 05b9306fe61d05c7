//! The broker: the shell around the core. Modules are listed in reading order: from the command line
//! to a connection, to a request, to the engine and back through the streams.

pub mod config;
pub mod limits;
pub mod policy;
pub mod metrics;
pub mod random;
pub mod identity;
pub mod revoked;
pub mod admission;
mod guard;
mod taking;
pub mod connection;
mod arrival;
mod sparing;
pub mod server;
pub mod authorize;
pub mod http;
pub mod mail;
mod reload;
mod census;
mod audit;
mod orphans;
pub mod clock;
pub mod engine;
pub mod stream;
mod listen;
mod run;

pub use listen::Addresses;
pub use run::{Broker, Error, run};
pub use sublet_process::tls;
