//! What those outside the broker know, while it is killed again and again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use sublet_core::instruction::Duty;
use sublet_wire::v1::Instruction;

use crate::journal::Journal;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    /// Answers that said yes.
    Granted,
    /// Answers that said that nobody has room.
    Refused,
    /// Releases that were acknowledged.
    Released,
    /// Requests that waited, and not in vain.
    Waited,
    /// Confirmations of use that were acknowledged.
    Activated,
    /// Changes of amounts that were acknowledged.
    Resized,
    /// Keys that were released before they were used, and stayed so.
    Buried,
    /// Calls without an answer, which were made again.
    Unanswered,
    /// Streams that began with a fresh list.
    Listed,
    /// Streams that were opened.
    Connected,
}

/// Everything that is known outside.
#[derive(Default)]
pub(super) struct Shared {
    journal: Mutex<Journal>,
    told: Mutex<Told>,
    counts: [AtomicU64; 10],
    stop: AtomicBool,
}

impl Shared {
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap()
    }

    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    pub(super) fn count(&self, what: Count) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What each cluster was told last about each reservation, as it would act on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(BTreeMap<String, BTreeMap<String, Instruction>>);

impl Told {
    /// A fresh list follows.
    pub(super) fn forget(&mut self, who: &str) {
        self.0.remove(who);
    }

    pub(super) fn tell(&mut self, who: &str, instruction: Instruction) {
        let known = self.0.entry(who.to_owned()).or_default();
        let id = instruction.reservation_id.clone();
        // A lower number never overrides a higher one.
        if known.get(&id).is_some_and(|last| last.generation > instruction.generation) {
            return;
        }
        if instruction.duty() == Some(Duty::Gone) {
            known.remove(&id);
        } else {
            known.insert(id, instruction);
        }
    }

    fn keeps(&self, who: &str, id: &str) -> bool {
        let told = self.0.get(who).and_then(|known| known.get(id));
        told.is_some_and(|told| told.duty() == Some(Duty::Keep))
    }

    /// What speaks against the streams: of what was `acknowledged`, whatever nobody has `sent` a
    /// release for must be known to both sides, and what was released to neither.
    pub(super) fn audit(&self, acknowledged: &Journal, sent: &Journal) -> Vec<String> {
        let mut objections = Vec::new();
        for (name, line) in &acknowledged.0 {
            // What ends by itself may be over at any time.
            let granted = line.granted.first().filter(|_| !line.ends);
            let Some((id, provider)) = granted else { continue };
            let id = id.to_string();
            for side in [provider, &name.0] {
                let keeps = self.keeps(side, &id);
                if keeps && line.released {
                    objections.push(format!("{side} keeps {id}, which was released"));
                }
                if !keeps && sent.0.get(name).is_none_or(|line| !line.releasing) {
                    objections.push(format!("{side} was not told to keep {id}"));
                }
            }
        }
        objections
    }
}
