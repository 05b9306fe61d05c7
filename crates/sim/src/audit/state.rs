//! Brokers' books beside the auditor's own.

use std::collections::{BTreeMap, BTreeSet};

use sublet_broker::engine::Engine;
use sublet_core::books::Books;
use sublet_core::event::Subject;
use sublet_core::id::ClusterId;
use sublet_core::invariants;
use sublet_core::ledger::{self, Ledger};
use sublet_core::reservation::{Grant, Hindrance, Reservation, State};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::Writer;

use super::shadow::{Bond, Life};
use super::{Auditor, amounts, limits};
use crate::message::Ticket;
use crate::sometimes::Sometimes;

/// Books are compared in one of so many steps.
const COMPARE_EVERY: u64 = 16;
/// No batch is handed to the disk that was planned longer ago.
const PLANNED_WITHIN: Span = Span::from_secs(1);
/// The core's own recount is asked for in one of so many steps.
const RECOUNT_EVERY: u64 = 64;

impl Life {
    /// Does a ledger know the same of it?
    fn is(&self, known: &Reservation) -> bool {
        let grant = known.grant();
        let of = |amount: fn(&Grant) -> &Resources| {
            grant.map(|grant| amounts(amount(grant))).unwrap_or_default()
        };
        known.phase() == self.phase
            && known.requester == self.requester
            && known.key == self.key
            && known.ask == self.ask
            && grant.map(|grant| &grant.provider) == self.provider.as_ref()
            && of(|grant| &grant.amounts) == self.amounts
            && of(|grant| &grant.held) == self.held
            && grant.map_or(0, |grant| grant.generation.0) == self.generation
            && grant.map_or(0, |grant| grant.acknowledged.0) == self.acknowledged
            && grant.and_then(|grant| grant.expires_at) == self.expires
            && hindrance(known) == self.hindrance.as_deref()
    }
}

/// What kept its clusters apart.
fn hindrance(known: &Reservation) -> Option<&Hindrance> {
    match &known.state {
        State::Releasing(_, ending) | State::Ended { ending, .. } => ending.hindrance.as_deref(),
        _ => None,
    }
}

impl Auditor {
    /// A broker starts from the log.
    pub(crate) fn booted(&mut self, writer: Writer, grace_over: Time, books: &Books, now: Time) {
        let logged = books.ledger().stamp().time;
        self.expect(now >= logged, "I16", || format!("{writer:?} starts before what was logged"));
        self.graces.insert(writer, grace_over);
        self.clocks.insert(writer, now);
        self.born.insert(writer, now);
        self.listens(now);
        self.remembers(writer, books);
        self.compare(books, "I3");
    }

    /// From now on until then a broker lets nothing expire.
    pub(crate) fn spares(&mut self, writer: Writer, grace_over: Time) {
        self.graces.insert(writer, grace_over);
    }

    /// A broker planned something.
    pub(crate) fn stepped(
        &mut self,
        writer: Writer,
        engine: &Engine<Ticket>,
        now: Time,
        sometimes: &mut Sometimes,
    ) {
        let before = self.clocks.insert(writer, now);
        let back = before.is_some_and(|before| before > now);
        self.expect(!back, "I16", || format!("the time of {writer:?} went back to {now:?}"));
        self.judge_ears(writer, engine);
        self.planned(writer, engine);
        self.looks += 1;
        if self.looks.is_multiple_of(RECOUNT_EVERY) {
            let wrong = invariants::check_books(engine.books()).into_iter().next();
            self.expect(wrong.is_none(), "I2", || format!("the recount differs: {wrong:?}"));
        }
        if engine.is_done() && self.looks.is_multiple_of(COMPARE_EVERY) {
            self.compare(engine.books(), "I2");
            self.judge_providers(writer, engine.books(), sometimes);
        }
    }

    /// I7: what is handed to the disk was planned as of about now, so that nothing in it is over before
    /// it is written.
    pub(crate) fn hands_over(&mut self, planned: Time, now: Time) {
        let late = now.since(planned);
        self.expect(late <= PLANNED_WITHIN, "I7", || {
            format!("planned {late} before it is written")
        });
    }

    /// I12: a provider that says it has less than is held is flagged, and no other. I2: what is free
    /// follows from its newest word and from all that the log holds there.
    fn judge_providers(&mut self, writer: Writer, books: &Books, sometimes: &mut Sometimes) {
        if books.ledger().stamp().revision != self.revision {
            return;
        }
        let mut wrong = None;
        for ((_, cluster), ear) in self.ears.iter().filter(|((by, _), _)| *by == writer) {
            let Some(advert) = ear.newest.and_then(|(_, at)| self.adverts.get(at)) else {
                continue;
            };
            let advert = &if ear.heard { advert.clone() } else { advert.noted() };
            let over = self.owes_more_than_it_has(cluster, advert);
            if over {
                sometimes.hit("over-committed provider");
            }
            if over != books.is_overcommitted(cluster) {
                let found = format!("{cluster} is over-committed: {over}, which is not flagged so");
                wrong = Some(("I12", found));
            }
            let (free, counted) = (amounts(&books.room(cluster)), self.left_by(cluster, advert));
            if free != counted {
                let found = format!("{free:?} is free on {cluster}, counted {counted:?}");
                wrong = Some(("I2", found));
            }
        }
        if let Some((invariant, found)) = wrong {
            self.fail(invariant, found);
        }
    }

    /// I11: what a broker knows of a cluster is the newest that it heard.
    fn judge_ears(&mut self, writer: Writer, engine: &Engine<Ticket>) {
        let from = (writer, "0".parse().ok());
        let (writer, Some(first)) = from else { return };
        let ears = self.ears.range((writer, first)..).take_while(|((by, _), _)| *by == writer);
        let wrong = ears.filter_map(|((_, cluster), ear)| {
            let number = self.adverts.get(ear.newest?.1)?.number;
            let known = engine.books().market().entry(cluster)?.advertisement.number;
            (number != known)
                .then(|| format!("{cluster}: {known:?} is known, {number:?} was heard"))
        });
        let wrong = wrong.into_iter().next();
        if let Some(wrong) = wrong {
            self.fail("I11", wrong);
        }
    }

    /// The books hold exactly what the auditor's reading of the log says.
    pub(super) fn compare(&mut self, books: &Books, invariant: &'static str) {
        let ledger = books.ledger();
        if ledger.stamp().revision != self.revision {
            return;
        }
        let wrong = self.difference(ledger);
        if let Some(wrong) = wrong {
            self.fail(invariant, wrong);
        }
        if let Some(wrong) = self.sums_differ(books) {
            self.fail("I21", wrong);
        }
    }

    pub(super) fn difference(&self, ledger: &Ledger) -> Option<String> {
        let count = ledger.reservations(None).count();
        if count != self.lives.len() {
            return Some(format!("{count} reservations, not {}", self.lives.len()));
        }
        for (id, life) in &self.lives {
            let known = ledger.reservation(*id);
            if !known.is_some_and(|known| life.is(known)) {
                return Some(format!("{id} is {known:?}, not {life:?}"));
            }
        }
        self.keys_differ(ledger).or_else(|| self.standings_differ(ledger))
    }

    fn keys_differ(&self, ledger: &Ledger) -> Option<String> {
        let mut counts: BTreeMap<&ClusterId, usize> = BTreeMap::new();
        for ((requester, key), bond) in &self.keys {
            let same = match (ledger.bond(requester, key), bond) {
                (Some(ledger::Bond::Reservation(known)), Bond::Life(id)) => known == *id,
                (Some(ledger::Bond::Tombstone(known)), Bond::Tomb(at)) => known == *at,
                _ => false,
            };
            if !same {
                return Some(format!("{key} of {requester} is not {bond:?}"));
            }
            *counts.entry(requester).or_default() += 1;
        }
        let wrong =
            |(requester, count): &(&ClusterId, usize)| ledger.key_count(requester) != *count;
        let more = counts.into_iter().find(wrong);
        more.map(|(requester, count)| format!("{requester} has more than {count} keys"))
    }

    /// What operators decided, and who must report.
    fn standings_differ(&self, ledger: &Ledger) -> Option<String> {
        let revoked = ledger.revoked().keys().filter(|one| matches!(one, Subject::Cluster(_)));
        if revoked.count() != self.revoked.len() {
            return Some(format!("{:?} are revoked, not {:?}", ledger.revoked(), self.revoked));
        }
        let all = self.standings.keys().chain(ledger.standings().map(|(cluster, _)| cluster));
        let mut all = all.chain(&self.revoked).chain(self.granted.keys());
        all.find_map(|cluster| {
            let mine = self.standings.get(cluster).cloned().unwrap_or_default();
            let known = ledger.standing(cluster).cloned().unwrap_or_default();
            let same = known.cordon.is_some() == mine.cordoned
                && known.draining == mine.draining
                && known.lost.is_some() == mine.lost
                && limits(&known.cap) == mine.cap
                && ledger.awaits_report(cluster) == self.awaits(cluster)
                && ledger.revoked().contains_key(&Subject::Cluster(cluster.clone()))
                    == self.revoked.contains(cluster);
            (!same).then(|| format!("{cluster} is {known:?}, not {mine:?}"))
        })
    }

    fn sums_differ(&self, books: &Books) -> Option<String> {
        for provider in self.granted.keys() {
            let (known, counted) = (amounts(&books.held(provider)), self.held(provider));
            if known != counted {
                return Some(format!("{provider} holds {known:?}, counted {counted:?}"));
            }
        }
        let requesters: BTreeSet<_> = self.lives.values().map(|life| &life.requester).collect();
        for requester in requesters {
            let account = books.ledger().account(requester);
            let known = account.map(|account| amounts(&account.borrowed)).unwrap_or_default();
            let counted = self.borrowed(requester);
            if known != counted {
                return Some(format!("{requester} borrows {known:?}, counted {counted:?}"));
            }
        }
        None
    }

    /// I7: a broker that nothing hindered has ended what was due.
    pub(crate) fn expects_expiry(&mut self, healthy_since: Time, now: Time, bound_ms: u64) {
        let late = |deadline: Time| {
            let due = deadline.max(healthy_since).as_millis();
            due.saturating_add(bound_ms) < now.as_millis()
        };
        let lives = self.live.iter().filter_map(|id| Some((id, self.lives.get(id)?)));
        let mut overdue = lives.filter(|(id, life)| self.due(**id, life).is_some_and(late));
        let overdue = overdue.next().map(|(id, life)| format!("{id} at {now:?}: {life:?}"));
        if let Some(overdue) = overdue {
            self.fail("I7", overdue);
        }
    }
}
