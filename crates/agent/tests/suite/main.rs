//! The tests of the agent that need more than a function.

mod authority;
mod old_broker;
mod degrading;
mod recorded;
mod on_kubernetes;
