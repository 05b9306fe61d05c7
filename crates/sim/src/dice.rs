//! All randomness of a run: `SplitMix64`, seeded once, forked by purpose.
//!
//! Forks make streams independent: a broker that draws once more does not change what the network
//! does. That keeps a history similar while it is being shortened.

/// A stream of numbers that is a function of its seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another stream, the same for the same seed and purpose.
    #[must_use]
    pub fn fork(&self, purpose: u64) -> Self {
        let mut other = Self(self.0 ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let seed = other.draw();
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// One of `0..limit`; 0 when the limit is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw().checked_rem(limit).unwrap_or(0)
    }

    /// One of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// An index of a list of that length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True in so many of a thousand cases.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_forks_differ() {
        let (mut one, mut other) = (Dice::new(7), Dice::new(7));
        assert_eq!(one.draw(), other.draw());
        assert_ne!(one.fork(1).draw(), one.fork(2).draw());
        assert!((0..100).all(|_| one.between(3, 5) >= 3));
    }
}
