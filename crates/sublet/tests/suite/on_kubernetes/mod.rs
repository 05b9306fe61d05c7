//! Everything in here starts clusters. `cargo xtask test` knows such tests by the name of this module.

mod member;
mod deployment;
mod foreign;
mod advertising;
mod alone;
mod rivals;
mod quickstart;
mod on_liqo;
