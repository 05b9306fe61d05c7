//! What the log promises, on real files, real processes and real faults.

mod scene;
mod child;
mod record;
mod conformance;
mod tools;
mod mutation;
mod process;
mod faults;
