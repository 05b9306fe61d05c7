//! Everything in here starts clusters. `cargo xtask test` knows such tests by the name of this module:
//! it runs them in a step of their own, and leaves them out, by name, where there are no programs to
//! make clusters of.

mod access;
mod crash;
mod discovered;
mod isolation;
mod mortality;
mod on_liqo;
mod population;
