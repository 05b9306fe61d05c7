//! Planted bugs: switches that exist only in builds with the feature `bugs`, to prove that the
//! simulator would notice. In every other build [`planted`] is a constant `false`.
//!
//! | switch | what it does | where |
//! |---|---|---|
//! | `AckBeforeDurable` | M1: answers leave before their batch is written | `engine::step` |
//! | `SkipsSync` | M2: some appends are not synced | the simulator's home |
//! | `SkipsFit` | M3: growth is not checked against what is free | `plan::live` |
//! | `LateSum` | M4: the index is not told of what was granted or given back | `books` |
//! | `OtherFits` | M5: the filter's room leaves out memory, the committer's does not | `books` |
//! | `CreditsTwice` | M6: an end is credited twice | `ledger` |
//! | `KeyApart` | M8: the key is not bound with its reservation | `ledger::apply` |
//! | `KeyOfAnybody` | M9: a key is not scoped to its requester | `plan::reserve` |
//! | `KeysGoEarly` | M10: keys are forgotten long before their time | `plan::sweep` |
//! | `AdvertOverwrites` | M11: an advertisement ends reservations | `plan::advertise` |
//! | `WallClock` | M13: broker time is the wall clock | `broker::clock` |
//! | `NoGrace` | M14: things expire right after a start | the simulator's broker |
//! | `ExpiryFrees` | M15: expiry frees capacity without the provider's word | `plan::end` |
//! | `NoGeneration` | M16: any acknowledgement counts as the newest | `plan::live` |
//! | `Leaks` | M17: instructions are listed for the wrong side too | `instruction` |
//! | `RevisionUnchecked` | M19: another's record is taken for one's own | `engine::commit` |
//! | `RetriesFatal` | M20: goes on after a failed sync | `engine::commit` |
//! | `Wraps` | M22: a sum wraps instead of being refused | `resources` |
//! | `GhostsIgnored` | S14: what a provider still keeps is lent again | `books` |
//! | `CountsTwice` | S18: pods inside a grant are counted twice | `books` |
//! | `OlderAdvertWins` | S3: an older advertisement replaces a newer one | `market` |
//! | `ForgetsTombstone` | S5: a released key can be used again | `plan::reserve` |
//! | `ShrinkFreesAtOnce` | a shrink returns capacity before it is confirmed | `ledger::moves` |
//! | `LosesSnapshotKeys` | a snapshot forgets tombstones | `ledger::image` |
//! | `NoBarrier` | answers without events leave without a look at others' records | `engine::step` |
//! | `NoReplan` | what was planned is not planned again when overtaken | `engine::step` |
//! | `CursorTooFar` | a list's cursor covers a batch that is still in the making | `broker::stream` |
//! | `OldNews` | news from before a list are told after it | `broker::stream` |
//! | `NoRetry` | what ends makes nobody who waits be tried again | `engine::step` |
//! | `FirstPieceOnly` | only the first of those who wait are tried | `engine::step` |
//! | `ForgetsLane` | who waits below the priority of a new request is not tried any more | `engine::retry` |
//! | `ByAgeOnly` | who waits is served by age alone | `ledger::derived` |
//! | `NewOnesPass` | a new request is planned before those who wait | `engine::step` |
//! | `PriorityUncapped` | a request has the priority that it claims | `plan::reserve` |
//! | `DropsOvertaken` | one of those to be planned again when overtaken is dropped | `engine::step` |
//! | `LooksEarly` | lists leave before the batch they were made in is written | `engine::step` |
//! | `RefusesEarly` | refusals leave before the batch they were decided in is written | `engine::step` |
//! | `ForgetsReleasing` | what is being taken down counts as free | `reservation` |
//! | `AdvertUncordons` | an advertisement lifts a cordon | `plan::advertise` |
//! | `BorrowsForever` | what a requester gave back still counts as borrowed | `ledger::derived` |
//! | `NewsUntold` | streams tell no news | `broker::stream` |
//! | `LendsShrunk` | a provider with less than is held on it lends what it still has | `decision::filter` |
//! | `LendsUnreported` | after a restore nobody is waited for | `ledger` |
//! | `NeverAdopts` | what a provider reports after a restore is not adopted | `plan::advertise` |
//! | `AllTooEarly` | who has not reported after a restore is told that this is all | `broker::stream` |

/// Which bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the table above says what each does")]
pub enum Bug {
    AckBeforeDurable = 1,
    SkipsSync,
    SkipsFit,
    LateSum,
    OtherFits,
    CreditsTwice,
    KeyApart,
    KeyOfAnybody,
    KeysGoEarly,
    AdvertOverwrites,
    WallClock,
    NoGrace,
    ExpiryFrees,
    NoGeneration,
    Leaks,
    RevisionUnchecked,
    RetriesFatal,
    Wraps,
    GhostsIgnored,
    CountsTwice,
    OlderAdvertWins,
    ForgetsTombstone,
    ShrinkFreesAtOnce,
    LosesSnapshotKeys,
    NoReplan,
    NoBarrier,
    CursorTooFar,
    OldNews,
    NoRetry,
    FirstPieceOnly,
    ForgetsLane,
    ByAgeOnly,
    NewOnesPass,
    PriorityUncapped,
    DropsOvertaken,
    LooksEarly,
    RefusesEarly,
    ForgetsReleasing,
    AdvertUncordons,
    BorrowsForever,
    NewsUntold,
    LendsUnreported,
    LendsShrunk,
    NeverAdopts,
    AllTooEarly,
}

#[cfg(feature = "bugs")]
static PLANTED: core::sync::atomic::AtomicU8 = core::sync::atomic::AtomicU8::new(0);

/// Is this bug there now?
#[cfg(feature = "bugs")]
pub fn planted(bug: Bug) -> bool {
    PLANTED.load(core::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Plants one bug in the whole process, or none.
#[cfg(feature = "bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), core::sync::atomic::Ordering::Relaxed);
}

/// Is this bug there now? Never, in this build.
#[cfg(not(feature = "bugs"))]
pub const fn planted(_: Bug) -> bool {
    false
}
