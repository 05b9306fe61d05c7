//! Brokers' books beside the auditor's own.

use std::collections::BTreeSet;

use sublet_broker::engine::Engine;
use sublet_core::books::Books;
use sublet_core::invariants;
use sublet_core::ledger;
use sublet_core::time::Time;
use sublet_log::Writer;

use super::shadow::Bond;
use super::{Amounts, Auditor, amounts, less};
use crate::message::Ticket;
use crate::sometimes::Sometimes;

/// Books are compared in one of so many steps.
const COMPARE_EVERY: u64 = 16;
/// The core's own recount is asked for in one of so many steps.
const RECOUNT_EVERY: u64 = 64;

impl Auditor {
    /// A broker starts from the log.
    pub(crate) fn booted(&mut self, writer: Writer, grace_over: Time, books: &Books, now: Time) {
        let logged = books.ledger().stamp().time;
        self.expect(now >= logged, "I16", || format!("{writer:?} starts before what was logged"));
        self.graces.insert(writer, grace_over);
        self.clocks.insert(writer, now);
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
            self.judge_flags(writer, engine.books(), sometimes);
        }
    }

    /// I12: a provider that says it has less than is taken is flagged, and no other.
    fn judge_flags(&mut self, writer: Writer, books: &Books, sometimes: &mut Sometimes) {
        if books.ledger().stamp().revision != self.revision {
            return;
        }
        let mut wrong = None;
        for ((_, cluster), ear) in self.ears.iter().filter(|((by, _), _)| *by == writer) {
            let Some(advert) = ear.newest.and_then(|(_, at)| self.adverts.get(at)) else {
                continue;
            };
            let (taken, _) = self.taken(cluster, advert);
            let over = less(taken, advert.allocatable) != Amounts::default();
            if over {
                sometimes.hit("over-committed provider");
            }
            if over != books.is_overcommitted(cluster) {
                wrong =
                    Some(format!("{cluster} is over-committed: {over}, which is not flagged so"));
            }
        }
        if let Some(wrong) = wrong {
            self.fail("I12", wrong);
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
        let wrong = self.difference(books);
        if let Some(wrong) = wrong {
            self.fail(invariant, wrong);
        }
        if let Some(wrong) = self.sums_differ(books) {
            self.fail("I21", wrong);
        }
    }

    fn difference(&self, books: &Books) -> Option<String> {
        let ledger = books.ledger();
        let count = ledger.reservations(None).count();
        if count != self.lives.len() {
            return Some(format!("{count} reservations, not {}", self.lives.len()));
        }
        for (id, life) in &self.lives {
            let known = ledger.reservation(*id)?;
            let grant = known.grant();
            let held = grant.map(|grant| amounts(&grant.held)).unwrap_or_default();
            let number = grant.map_or(0, |grant| grant.generation.0);
            let same = known.phase() == life.phase
                && held == life.held
                && number == life.generation
                && grant.and_then(|grant| grant.expires_at) == life.expires;
            if !same {
                return Some(format!("{id} is {known:?}, not {life:?}"));
            }
        }
        for ((requester, key), bond) in &self.keys {
            let same = match (ledger.bond(requester, key), bond) {
                (Some(ledger::Bond::Reservation(known)), Bond::Life(id)) => known == *id,
                (Some(ledger::Bond::Tombstone(known)), Bond::Tomb(at)) => known == *at,
                _ => false,
            };
            if !same {
                return Some(format!("{key} of {requester} is not {bond:?}"));
            }
        }
        None
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
        let mut overdue = lives.filter(|(_, life)| self.due(life).is_some_and(late));
        let overdue = overdue.next().map(|(id, life)| format!("{id} at {now:?}: {life:?}"));
        if let Some(overdue) = overdue {
            self.fail("I7", overdue);
        }
    }
}
