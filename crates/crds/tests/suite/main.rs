//! The tests of the contract with Kubernetes.

mod definitions;
mod go_system;
mod on_kubernetes;
