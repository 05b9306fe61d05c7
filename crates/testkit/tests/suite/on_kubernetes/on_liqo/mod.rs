//! Everything in here wants Liqo on its clusters. `cargo xtask test` knows such tests by the name of
//! this module, and leaves them out, by name, where Liqo cannot be had.

mod by_hand;
mod nodes;
mod slices;
