//! The judge: recomputes everything naively from what it sees, and shares no code with the ledger.
//!
//! It sees every record of the log, every message that leaves a broker, what each cluster really
//! has and keeps, and which broker heard which advertisement when. It uses the core's plain values
//! (names, times, amounts, events, what an event is about), none of its rules: which phases count and
//! how things end is read anew in `phase`. All that the table names is judged by that alone. Beside
//! it the core is asked about itself, which can only find more: its recount (I2), and whether it
//! folds the whole log to what it loads from a snapshot (I20). And the engine judges each event before
//! it is written: one that it refuses never comes to the auditor, and is reported under the invariant
//! that it would have broken (see `named` in `world::broker`). Planted bugs that only loosen planning,
//! such as one that skips the fit, are found there.
//!
//! | invariant | how it is checked |
//! |---|---|
//! | I1 | each grant and growth: summed from zero over the provider's live reservations and what the basis' advertisement reported, within what that advertisement said; fresh, heard by that process, with the labels asked for, open, reported since the last restore, under the cap; who waited before a restore not before all had the time to report; no slice of a live reservation is larger than what is held |
//! | I2 | an idle engine's reservations, keys, standings and sums, and what is free by the newest word of each provider, equal the shadow's |
//! | I3 | an answer, a refusal, a list and every part of a stream leave only for what survives a power loss; a restarted broker knows all of it |
//! | I4 | a refused request never becomes a reservation, once no copy of it is on its way |
//! | I5 | one reservation per key; the same id for it; keys stay for their time |
//! | I6 | phases move along a table of the auditor's own; one end each |
//! | I7 | nothing ends before its time, nor within the grace of its writer; nor while its provider must report after a restore; a broker that nothing hinders ends what is due within a second (three, with several brokers) |
//! | I8 | capacity comes back only confirmed (and then the slice really is gone), lost, or from an old agent |
//! | I9 | only the two sides are told; nobody confirms what it has not done; who watches has been told, at every cursor, how each of its reservations stood there, also across cuts and brokers, and never something older than before; a minute after the last fault, both sides hear of their newest instruction within ten seconds |
//! | I10 | one in four steps that hear only advertisements: each reservation is what it was, but for who waited and is granted, and what an old agent ends unconfirmed; cordons and caps stay; only what was reported after a restore is adopted, and all that ran when it was restored, where it ran: once its provider has reported, it lives there until a reason to end is given |
//! | I11 | a broker's newest advertisement of a cluster never goes back; grants stand on it |
//! | I12 | a provider with less than is held on it is flagged, nothing is taken there, of whatever kind, and it loses nothing (I6, I7 know all reasons to end) |
//! | I13 | an answer about a reservation and its instructions go to its two sides and to operators only; what an explanation shows of others is cut at the edge, which is not part of this world |
//! | I14 | an answer equals the shadow at its revision, which is at least what anybody had been told when it was asked; so is what a refusal, a list and the beginning of a stream were decided on; a reservation told of is found |
//! | I16 | the time of records and of each broker never decreases |
//! | I20 | what is loaded from the newest snapshot equals the shadow, which has read every record; seeds run twice |
//! | I21 | per provider: granted less returned is what is held; an idle engine's sums of what each cluster lends and borrows are the auditor's own |
//! | I22 | after healing: nothing is stuck, every agent is heard, slices and reservations agree |
//! | I23 | each copy of a call that a process takes in is answered once, within five seconds in which nothing hinders it, or the process dies; after healing no requester is left trying for two minutes |
//! | I26 | in calm, a naive scan finds the same provider by headroom, fill or price, among those with the labels asked for, or that there is none; those who wait are no hindrance, because by W1 none of them fits then |
//! | W1 | a broker that has nothing left to do leaves nobody waiting who fits on a provider that it heard lately, which is open to them and has the room |
//! | W2 | each grant and growth, in the order of the log: nobody who waits, has a higher priority or has the same and is older, would have fitted there then |
//!
//! What a provider really keeps may exceed what it has in these cases only, which are legal: it has
//! shrunk, or its own pods grew, since the advertisement that a grant stands on; an old agent has
//! not yet noticed an end; a provider was declared lost while it still kept slices, and no
//! advertisement since has reported them.

mod advert;
mod amounts;
mod answer;
mod delivery;
mod grant;
mod market;
mod owed;
mod phase;
mod reference;
mod rest;
mod restored;
mod shadow;
mod state;
mod stream;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

use sublet_core::id::{ClusterId, Key, ReservationId, Revision};
use sublet_core::policy::Policy;
use sublet_core::time::Time;
use sublet_log::{Checksum, Record, Writer};

use crate::dice::Dice;
use crate::message::Call;
use crate::sometimes::Sometimes;
use crate::world::Agent;
use amounts::{exceeds, larger, less, limits, plus};
use market::{Advert, Ear};
use owed::Debts;
use phase::counts;
use reference::Expected;
use shadow::{Bond, Life, Standing};
use stream::View;

pub(crate) use amounts::{Amounts, amounts};

/// Something that must hold and does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant.
    pub invariant: &'static str,
    /// What was found.
    pub found: String,
}

/// What surrounds an event: who wrote it, what clusters really keep, and what was reached.
struct Scene<'a> {
    writer: Writer,
    agents: &'a [Agent],
    sometimes: &'a mut Sometimes,
}

/// Who sent what under a key, as long as a copy is on its way.
type Attempts = BTreeMap<(ClusterId, Key), Vec<Weak<Call>>>;

/// The judge.
pub(crate) struct Auditor {
    policy: Policy,
    violation: Option<Violation>,
    revision: Revision,
    time: Time,
    checksum: Checksum,
    lives: BTreeMap<ReservationId, Life>,
    live: BTreeSet<ReservationId>,
    keys: BTreeMap<(ClusterId, Key), Bond>,
    standings: BTreeMap<ClusterId, Standing>,
    revoked: BTreeSet<ClusterId>,
    granted: BTreeMap<ClusterId, Amounts>,
    returned: BTreeMap<ClusterId, Amounts>,
    graces: BTreeMap<Writer, Time>,
    /// Since when each process listens.
    born: BTreeMap<Writer, Time>,
    clocks: BTreeMap<Writer, Time>,
    adverts: Vec<Advert>,
    ears: BTreeMap<(Writer, ClusterId), Ear>,
    expected: BTreeMap<u64, (Writer, Expected)>,
    told: Revision,
    attempts: Attempts,
    refused: BTreeSet<(ClusterId, Key)>,
    acked: BTreeMap<(ClusterId, Key), ReservationId>,
    looks: u64,
    /// How many requests there were.
    arrivals: u64,
    views: BTreeMap<ClusterId, View>,
    /// Virtual time.
    now_ms: u64,
    /// What processes owe.
    debts: Debts,
    looks_at_adverts: u64,
    /// The newest instruction of a reservation that a cluster heard of.
    delivered: BTreeMap<(ClusterId, ReservationId), u32>,
    /// Since the last restore, if there was one: who reported, or was vouched for, and when.
    reported: Option<BTreeMap<ClusterId, Time>>,
    /// When it was restored last, or its broker started on it, and who waited in the backup: they
    /// may have been granted since.
    listened: Time,
    doubted: BTreeSet<ReservationId>,
    /// What ran at the last restore, and where, and has not ended for a reason given since: it must
    /// be adopted there.
    promised: BTreeMap<ReservationId, ClusterId>,
    /// Who of them was only vouched for.
    vouched: BTreeSet<ClusterId>,
    /// When what faults broke must have mended.
    calm_from_ms: Option<u64>,
}

impl Auditor {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            policy: policy.clone(),
            violation: None,
            revision: Revision::default(),
            time: Time::default(),
            checksum: Checksum::default(),
            lives: BTreeMap::new(),
            live: BTreeSet::new(),
            keys: BTreeMap::new(),
            standings: BTreeMap::new(),
            revoked: BTreeSet::new(),
            granted: BTreeMap::new(),
            returned: BTreeMap::new(),
            graces: BTreeMap::new(),
            born: BTreeMap::new(),
            clocks: BTreeMap::new(),
            adverts: Vec::new(),
            ears: BTreeMap::new(),
            expected: BTreeMap::new(),
            told: Revision::default(),
            attempts: BTreeMap::new(),
            refused: BTreeSet::new(),
            acked: BTreeMap::new(),
            looks: 0,
            arrivals: 0,
            views: BTreeMap::new(),
            now_ms: 0,
            debts: Debts::new(),
            looks_at_adverts: 0,
            delivered: BTreeMap::new(),
            calm_from_ms: None,
            reported: None,
            listened: Time::default(),
            doubted: BTreeSet::new(),
            promised: BTreeMap::new(),
            vouched: BTreeSet::new(),
        }
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The first violation counts.
    pub(crate) fn fail(&mut self, invariant: &'static str, found: String) {
        self.violation.get_or_insert(Violation { invariant, found });
    }

    fn expect(&mut self, holds: bool, invariant: &'static str, found: impl FnOnce() -> String) {
        if !holds {
            self.fail(invariant, found());
        }
    }

    /// So late is it.
    pub(crate) fn at(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// The newest revision that anybody was told of.
    pub(crate) fn told(&self) -> Revision {
        self.told
    }

    /// A record became visible.
    pub(crate) fn record(&mut self, record: &Record, agents: &[Agent], sometimes: &mut Sometimes) {
        let (revision, time) = (record.revision(), record.time());
        self.expect(revision == self.revision.next(), "I14", || {
            format!("revision {revision} is not the next one")
        });
        let follows = record.previous() == self.checksum;
        self.expect(follows, "I14", || format!("revision {revision} does not follow"));
        let (last, writer) = (self.time, record.writer());
        self.expect(time >= last, "I16", || format!("time went back from {last:?} to {time:?}"));
        (self.revision, self.time, self.checksum) = (revision, time, record.checksum());
        let mut scene = Scene { writer, agents, sometimes };
        for event in record.events().iter().flat_map(|event| event.steps(time)) {
            self.fold(&event, &mut scene);
        }
        self.check_conservation();
    }

    /// Some records were never durable and are gone: begins again with the rest.
    pub(crate) fn truncated(&mut self, records: &[Record]) {
        let rest = Revision(records.len() as u64);
        if rest == self.revision {
            return;
        }
        let (told, was) = (self.told, self.revision);
        self.expect(told <= rest, "I3", || {
            format!("revision {told} was acknowledged, and {rest} of {was} are left")
        });
        let fresh = Self::new(&self.policy);
        let kept = std::mem::replace(self, fresh);
        (self.now_ms, self.calm_from_ms) = (kept.now_ms, kept.calm_from_ms);
        (self.debts, self.delivered) = (kept.debts, kept.delivered);
        let agents = [];
        let mut ignored = Sometimes::default();
        for record in records {
            self.record(record, &agents, &mut ignored);
        }
        // What was judged before is not judged again.
        self.violation = kept.violation;
        (self.graces, self.born, self.clocks) = (kept.graces, kept.born, kept.clocks);
        (self.adverts, self.ears) = (kept.adverts, kept.ears);
        (self.told, self.attempts, self.acked) = (kept.told, kept.attempts, kept.acked);
        (self.refused, self.views) = (kept.refused, kept.views);
        (self.listened, self.promised) = (self.listened.max(kept.listened), kept.promised);
    }

    /// One of the live reservations.
    pub(crate) fn some_live(&self, dice: &mut Dice) -> Option<ReservationId> {
        self.live.iter().nth(dice.index(self.live.len())).copied()
    }

    /// What is held on a provider, from zero.
    fn held(&self, provider: &ClusterId) -> Amounts {
        let lives = self.live.iter().filter_map(|id| self.lives.get(id));
        let here =
            lives.filter(|life| counts(life.phase) && life.provider.as_ref() == Some(provider));
        here.fold(Amounts::default(), |sum, life| plus(sum, life.held))
    }

    /// Double entry: what was granted less what came back is what is held.
    fn check_conservation(&mut self) {
        let none = Amounts::default();
        let lives =
            || self.live.iter().filter_map(|id| self.lives.get(id)).filter(|l| counts(l.phase));
        let mut held: BTreeMap<&ClusterId, Amounts> = BTreeMap::new();
        for life in lives() {
            if let Some(provider) = &life.provider {
                let sum = held.entry(provider).or_default();
                *sum = plus(*sum, life.held);
            }
        }
        let wrong = self.granted.iter().find(|(provider, granted)| {
            let returned = self.returned.get(*provider).copied().unwrap_or(none);
            let now = held.get(*provider).copied().unwrap_or(none);
            **granted != plus(returned, now)
        });
        let wrong = wrong.map(|(provider, granted)| format!("{provider}: {granted:?} granted"));
        if let Some(wrong) = wrong {
            self.fail("I21", wrong);
        }
    }
}
