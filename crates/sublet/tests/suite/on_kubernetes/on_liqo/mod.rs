//! Joined clusters, with nothing but programs as people run them. `cargo xtask test` knows such tests by
//! the name of this module, and leaves them out, by name, where Liqo cannot be had.

mod side;
mod dice;
mod changing;
mod draining;
mod losing;
mod whole;
mod by_liqoctl;
mod crowd;
mod killed;
