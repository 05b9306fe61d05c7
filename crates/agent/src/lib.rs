//! The shell in a cluster. So far its pure part: what is measured, what of it is offered, and the
//! advertisement that says so. Watches, controllers and transports go around it.

pub mod collect;
pub mod offer;
pub mod advertise;
pub mod transport;
pub mod peering;
pub mod controllers;
