//! Branches that must be reached by some seed: a simulator that never goes there proves nothing.

use std::collections::BTreeMap;

/// Every branch that a long run must reach.
pub const BRANCHES: [&str; 54] = [
    "granted at once",
    "granted where a label was asked for",
    "refused because nobody fits",
    "refused because only suspects fit",
    "waited",
    "waiting request granted",
    "wait was over",
    "nothing left to do while somebody waited",
    "passed one that did not fit",
    "repeat answered with the same reservation",
    "key reused for another request",
    "tombstone set",
    "tombstone hit",
    "activated",
    "never activated",
    "expired",
    "renewed",
    "grew",
    "growth refused",
    "shrunk",
    "shrink confirmed",
    "in use",
    "released",
    "confirmed by provider",
    "unconfirmed end on an old provider",
    "peering failed",
    "drained",
    "declared lost",
    "lost and returned",
    "ghost counted",
    "over-committed provider",
    "waited where less was than is held",
    "an extended resource granted",
    "cordoned",
    "revoked requester refused",
    "own batch recognised after a lost answer",
    "overtaken and planned again",
    "others' records followed",
    "planned while others' records were read",
    "batch planned while one was written",
    "planned again after a long write",
    "log was silent for too long",
    "disk failed",
    "restart from a snapshot",
    "restored",
    "adopted after a restore",
    "what ran at a restore was reported",
    "clock suspended",
    "clock confirmed",
    "memory of keys given up",
    "stream began with everything",
    "stream resumed",
    "stream told news",
    "swept without expiring",
];

/// How often each was reached.
#[derive(Clone, Debug, Default)]
pub struct Sometimes(BTreeMap<&'static str, u64>);

impl Sometimes {
    /// It was reached.
    pub fn hit(&mut self, branch: &'static str) {
        *self.0.entry(branch).or_default() += 1;
    }

    /// Adds what another run reached.
    pub fn add(&mut self, other: &Self) {
        for (branch, count) in &other.0 {
            *self.0.entry(branch).or_default() += count;
        }
    }

    /// How often a branch was reached.
    pub fn count(&self, branch: &str) -> u64 {
        self.0.get(branch).copied().unwrap_or(0)
    }

    /// The branches that nobody reached.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> {
        BRANCHES.into_iter().filter(|branch| self.count(branch) == 0)
    }
}
