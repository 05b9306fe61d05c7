//! The binary as people and scripts use it: real processes, their output and their exit status.

mod program;
#[path = "../cluster/word.rs"]
mod word;
mod broker;
mod certificates;
mod contexts;
mod folders;
mod shell;
mod borrowing;
mod operating;
mod demo;
mod fleet;
mod recount;
mod journal;
mod contention;
mod crash;
mod agents;
mod letters;
mod on_kubernetes;
