//! Sums that can be taken back exactly.
//!
//! A sum of 64-bit amounts is kept in 128 bits, where it cannot overflow; so what was added can always
//! be subtracted, in any order, and nothing is lost on the way. Only when it is read is it cut to what
//! 64 bits hold.

use std::collections::BTreeMap;

use sublet_core::resources::{Kind, Resources};

/// The sum of some resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally(BTreeMap<Kind, u128>);

impl Tally {
    pub(super) fn add(&mut self, amounts: &Resources) {
        for (kind, amount) in amounts.iter() {
            *self.0.entry(kind).or_default() += u128::from(amount);
        }
    }

    pub(super) fn take(&mut self, amounts: &Resources) {
        for (kind, amount) in amounts.iter() {
            self.lower(&kind, u128::from(amount));
        }
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (kind, amount) in &other.0 {
            *self.0.entry(kind.clone()).or_default() += amount;
        }
    }

    pub(super) fn take_all(&mut self, other: &Self) {
        for (kind, amount) in &other.0 {
            self.lower(kind, *amount);
        }
    }

    fn lower(&mut self, kind: &Kind, amount: u128) {
        let Some(sum) = self.0.get_mut(kind) else { return };
        *sum = sum.saturating_sub(amount);
        if *sum == 0 {
            self.0.remove(kind);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.0.keys()
    }

    /// The sum as a vector, of those kinds that are `wanted`.
    pub(super) fn resources(&self, wanted: impl Fn(&Kind) -> bool) -> Resources {
        let named = self.0.iter().filter(|(kind, _)| wanted(kind));
        named.fold(Resources::default(), |sum, (kind, amount)| {
            let amount = u64::try_from(*amount).unwrap_or(u64::MAX);
            // Whoever wants more kinds than a vector holds gets those that come first.
            sum.clone().with(kind.clone(), amount).unwrap_or(sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_can_be_taken_back_even_beyond_64_bits() {
        let mut tally = Tally::default();
        let much = Resources::new(u64::MAX, 1);
        tally.add(&much);
        tally.add(&much);
        assert_eq!(tally.resources(|_| true), Resources::new(u64::MAX, 2));
        tally.take(&much);
        assert_eq!(tally.resources(|_| true), much);
        tally.take(&much);
        assert!(tally.is_zero());
    }
}
