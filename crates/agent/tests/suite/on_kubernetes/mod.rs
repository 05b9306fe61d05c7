//! Everything in here starts clusters. `cargo xtask test` knows such tests by the name of this module.

mod acting;
mod measuring;
mod on_liqo;
mod logged;
mod until;
