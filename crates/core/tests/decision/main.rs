//! The decision: its scenarios, its index against the plain scan, and whether its words are true.

mod fleet;
mod scenarios;
mod index;
mod explain;
mod said;
mod shrunk;
mod truth;
