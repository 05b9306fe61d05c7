//! Any log, with appends that go wrong on purpose: for tests and the simulator.
//!
//! A real implementation around a real home, not a mock. Which append goes wrong and how is said
//! by a [`Plan`], a plain function of the append's number, so that a run repeats exactly. Restarting
//! a broker is a new `Faulty` around the same home.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::time::Time;

use crate::{AppendError, Head, Log, ReadError, Record, Snapshot, StoreError};

/// How one append goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It never reaches the log, and the caller cannot tell.
    RequestLost,
    /// It is done, and the caller cannot tell.
    AnswerLost,
    /// The disk fails before anything is written; nothing more is acknowledged.
    FatalBefore,
    /// The disk fails after it was written; nothing more is acknowledged.
    FatalAfter,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::RequestLost, Self::AnswerLost, Self::FatalBefore, Self::FatalAfter];
}

/// Which appends of a handle go wrong; they are counted from 1.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    scripted: BTreeMap<u64, Fault>,
    seeded: Option<Seeded>,
}

#[derive(Clone, Debug)]
struct Seeded {
    seed: u64,
    per_mille: u64,
    among: Vec<Fault>,
}

impl Plan {
    /// Exactly these.
    pub fn scripted(faults: impl IntoIterator<Item = (u64, Fault)>) -> Self {
        Self { scripted: faults.into_iter().collect(), seeded: None }
    }

    /// About `per_mille` of all appends, each with one of `among`, always the same for one seed.
    pub fn seeded(seed: u64, per_mille: u16, among: &[Fault]) -> Self {
        Self {
            scripted: BTreeMap::new(),
            seeded: Some(Seeded { seed, per_mille: per_mille.into(), among: among.to_vec() }),
        }
    }

    /// What happens to append number `call`.
    pub fn fault(&self, call: u64) -> Option<Fault> {
        let scripted = self.scripted.get(&call).copied();
        scripted.or_else(|| self.seeded.as_ref()?.fault(call))
    }
}

impl Seeded {
    fn fault(&self, call: u64) -> Option<Fault> {
        let draw = mix(self.seed ^ mix(call));
        let choices = u64::try_from(self.among.len()).ok()?;
        let pick = (draw >> 32).checked_rem(choices)?;
        let hit = (draw & 0xffff_ffff) % 1000 < self.per_mille;
        hit.then_some(*self.among.get(usize::try_from(pick).ok()?)?)
    }
}

/// The finalizer of `SplitMix64`: every bit of the input reaches every bit of the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A log whose appends go wrong by plan.
#[derive(Debug)]
pub struct Faulty<L> {
    home: L,
    plan: Plan,
    calls: AtomicU64,
    dead: AtomicBool,
}

impl<L> Faulty<L> {
    /// A handle on `home` with this fate.
    pub fn new(home: L, plan: Plan) -> Self {
        Self { home, plan, calls: AtomicU64::new(0), dead: AtomicBool::new(false) }
    }

    /// The log behind it.
    pub fn home(&self) -> &L {
        &self.home
    }

    /// How many appends were tried.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

fn fatal() -> AppendError {
    AppendError::Fatal("the disk failed, as planned".into())
}

impl<L: Log> Log for Faulty<L> {
    fn append(&self, record: &Record) -> Result<(), AppendError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if self.dead.load(Ordering::SeqCst) {
            return Err(fatal());
        }
        let lost = |what: &str| Err(AppendError::Unknown(what.into()));
        match self.plan.fault(call) {
            None => self.home.append(record),
            Some(Fault::RequestLost) => lost("the request was lost, as planned"),
            Some(Fault::AnswerLost) => {
                self.home.append(record)?;
                lost("the answer was lost, as planned")
            }
            Some(Fault::FatalBefore) => {
                self.dead.store(true, Ordering::SeqCst);
                Err(fatal())
            }
            Some(Fault::FatalAfter) => {
                self.dead.store(true, Ordering::SeqCst);
                self.home.append(record)?;
                Err(fatal())
            }
        }
    }

    fn head(&self) -> Result<Head, ReadError> {
        self.home.head()
    }

    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        self.home.read(from, limit)
    }

    fn follow(
        &self,
        from: Revision,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<Record>, ReadError> {
        self.home.follow(from, limit, patience)
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        self.home.snapshot()
    }

    fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.home.put_snapshot(snapshot)
    }

    fn compact(&self, before: Time) -> Result<(), StoreError> {
        self.home.compact(before)
    }

    fn tend(&self) -> Result<bool, StoreError> {
        self.home.tend()
    }

    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        self.home.note(name)
    }

    fn put_note(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.home.put_note(name, bytes)
    }
}
