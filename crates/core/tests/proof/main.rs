//! The proof that the books are right: one judge, and everything that can be thought of in front of it.
//!
//! `world` drives the books as the engine does and checks every rule at every step; `model` is an
//! independent account of what was promised. Before them pass random commands and events
//! (`properties`), the whole table of phases and commands (`lifecycle`), what a hostile world may send
//! (`hostile`) and the stories in `tests/scripts` (`scripts`). `objections` shows that the model objects.

mod model;
mod world;
mod objections;
mod properties;
mod lifecycle;
mod hindered;
mod hostile;
mod script;
mod scripts;
