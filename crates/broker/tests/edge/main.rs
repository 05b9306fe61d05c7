//! The edge of the broker over real mTLS on loopback: what the Go system's clients see, who may do
//! what, and what happens when certificates change.

#[path = "../gated/mod.rs"]
mod gated;
mod stage;
mod replay;
mod authorization;
mod certificates;
mod streams;
mod using;
mod messages;
mod numbers;
mod hindered;
mod input;
mod product;
mod framing;
mod rotation;
mod ports;
mod leaving;
mod overload;
mod uncooperative;
