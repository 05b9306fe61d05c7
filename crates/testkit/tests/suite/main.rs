//! The testkit itself, on real control planes.

mod on_kubernetes;
