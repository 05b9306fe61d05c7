//! The slice of a reservation, at both ends: what the requester asks for, what the provider grants,
//! and how both take it down.

mod amounts;
mod certificate;
mod deployed;
mod enforcement;
mod evict;
mod foreign;
mod ground;
mod guard;
mod hasten;
mod keeper;
mod lasting;
mod lost;
mod newcomers;
mod pages;
mod noted;
mod pods;
mod policy;
mod provider;
mod reclaim;
mod release;
mod renewal;
mod requester;
mod room;
mod strays;
mod sweep;
mod turns;
mod upheld;
mod visitors;
mod wakes;

pub use amounts::Extras;
pub use ground::Settings;
pub use keeper::Keeper;

pub(in crate::peering) use amounts::{List, asked, is_same, text};
pub(super) use foreign::Foreign;
pub(in crate::peering) use ground::Ground;
pub(super) use guard::Guard;
pub(super) use lasting::Lasting;
pub(super) use provider::Provider;
pub(super) use requester::Requester;
pub(super) use sweep::sweep;
pub(super) use wakes::Wakes;
