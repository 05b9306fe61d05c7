//! The tests of the agent that need more than a function.

mod on_kubernetes;
