//! Placeholder until the decision folder lands.
use crate::{books::Books, id::ClusterId, policy::Policy, reservation::Ask, resources::Resources};
/// How much above its allowance.
pub fn allowance_excess(
    books: &Books,
    requester: &ClusterId,
    ask: &Ask,
    policy: &Policy,
) -> Option<Resources> {
    let none = Resources::default();
    let held = books.ledger().account(requester).map_or(&none, |a| &a.borrowed);
    let total = held.checked_add(&ask.resources).ok()?;
    let excess = policy.allowance(requester).held.excess(&total);
    (!excess.is_zero()).then_some(excess)
}
