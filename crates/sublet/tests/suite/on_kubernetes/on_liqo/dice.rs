//! Choices that can be made again: from a seed that a failed test shows.

/// The sample that is drawn where none is asked for. It is the same each time, so that a failure is
/// about the change and not about the dice; `SUBLET_SEED` draws another.
const SEED: u64 = 2;

/// A source of choices.
pub(super) struct Dice(u64);

impl Dice {
    /// From `$SUBLET_SEED`, if there is one.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test has no configuration but its environment"
    )]
    pub(super) fn new() -> Self {
        let given = std::env::var("SUBLET_SEED").ok();
        let given = given.map(|text| text.parse().expect("SUBLET_SEED is a number"));
        let seed = given.unwrap_or(SEED);
        eprintln!("SUBLET_SEED={seed}");
        Self(seed)
    }

    /// A number below `most`.
    pub(super) fn below(&mut self, most: usize) -> usize {
        // Steele, Lea and Flood: splitmix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % most as u64).unwrap()
    }

    /// All of them, in another order.
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }
}
