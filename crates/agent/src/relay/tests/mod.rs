//! Letters between two clusters of one authority, and what becomes of those that were meddled with.

mod hostile;
mod honest;
mod stage;
