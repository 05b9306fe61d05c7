//! The contract with clients: what bytes mean, and what is said back.
//!
//! [`v1`] has the JSON types, a file per resource, with the ways from them into the core's types
//! and back. [`decode`] reads them as Go does, because the agents in the field are Go programs;
//! [`encode`] writes them as Go does. [`Code`] lists every error with its status, [`ROUTES`] every
//! route, [`limits`] every bound. The client of all this is behind the feature `client`, so that
//! one crate knows both ends of the wire.

pub mod limits;
pub mod decode;
mod encode;
mod timestamp;
mod code;
mod problem;
mod refusal;
mod routes;
pub mod v1;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "client")]
pub mod client;

pub use code::Code;
pub use encode::encode;
pub use problem::{Details, Invalid, Problem, Shape};
pub use refusal::{problem_of, problem_seen_by};
pub use routes::{Body, Method, Parameter, ROUTES, Route, paths};
pub use timestamp::Timestamp;

/// The description of the API as it is served at [`paths::OPENAPI`]; `cargo xtask gen` writes it.
pub const OPENAPI: &str = include_str!("../../../docs/openapi.json");
