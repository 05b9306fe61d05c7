//! What our long-running processes have in common, so that the two shells behave alike without
//! knowing each other: how flags and addresses are written, how log lines look, how one is probed,
//! told to end, says where it serves, and with which certificates. Nothing here knows what a broker or an agent is.

pub mod address;
pub mod announce;
pub mod dashes;
pub mod end;
pub mod file;
pub mod go;
pub mod lines;
pub mod pages;
pub mod plain;
pub mod tls;
mod word;
mod writer;

pub use address::Address;
pub use lines::{Format, Level};
pub use pages::Ready;
pub use plain::Plain;
pub use tls::Tls;
pub use word::Word;
pub use writer::Writing;
