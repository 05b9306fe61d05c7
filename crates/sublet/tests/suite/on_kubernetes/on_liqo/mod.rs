//! Joined clusters, with nothing but programs as people run them. `cargo xtask test` knows such tests by
//! the name of this module, and leaves them out, by name, where Liqo cannot be had. They are begun in the order
//! of their names, a few at a time, so the longest is not called `whole`: everybody would wait for it at the end.

mod side;
mod dice;
mod changing;
mod draining;
mod losing;
mod entire;
mod by_liqoctl;
mod unpinned;
mod crowd;
mod killed;
