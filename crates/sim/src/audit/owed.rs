//! What brokers took in and owe an answer, and on what state each was decided.
//!
//! A process owes one answer for each copy of a call that it takes in, until it dies. A refusal does
//! not say on which revision it was decided, so the auditor keeps two bounds: the newest that the
//! books knew when the call was taken in, and the newest when it was surely planned.

use std::collections::BTreeMap;

use sublet_broker::engine::Engine;
use sublet_core::id::Revision;
use sublet_log::Writer;

use super::Auditor;
use crate::message::Ticket;

/// How long a broker that nothing hinders may take for an answer.
const ANSWER_MS: u64 = 5_000;

/// One call at one process.
#[derive(Clone, Debug)]
pub(super) struct Debt {
    /// Copies that were taken in and not answered.
    copies: u32,
    since_ms: u64,
    /// It was decided on this revision or a later one.
    pub(super) low: Revision,
    /// It was decided on this revision or an earlier one, if it was planned since.
    pub(super) high: Option<Revision>,
}

/// By process and call.
pub(super) type Debts = BTreeMap<(Writer, u64), Debt>;

impl Auditor {
    /// A process takes calls in.
    pub(super) fn owes(&mut self, writer: Writer, engine: &Engine<Ticket>, calls: &[Ticket]) {
        let (low, since_ms) = (engine.books().ledger().stamp().revision, self.now_ms);
        for call in calls {
            let new = || Debt { copies: 0, since_ms, low, high: None };
            let debt = self.debts.entry((writer, call.number)).or_insert_with(new);
            debt.copies += 1;
            debt.high = None;
        }
    }

    fn debts_of(&mut self, writer: Writer) -> impl Iterator<Item = &mut Debt> {
        self.debts.range_mut((writer, 0)..=(writer, u64::MAX)).map(|(_, debt)| debt)
    }

    /// A process planned; with nothing left of what it took in, all of it was.
    pub(super) fn planned(&mut self, writer: Writer, engine: &Engine<Ticket>) {
        let newest = engine.books().ledger().stamp().revision;
        for debt in self.debts_of(writer).filter(|debt| engine.is_planned() && debt.high.is_none())
        {
            debt.high = Some(newest);
        }
    }

    /// Others' records came in between: everything is decided anew, on these.
    pub(crate) fn replanned(&mut self, writer: Writer, engine: &Engine<Ticket>) {
        let low = engine.books().ledger().stamp().revision;
        for debt in self.debts_of(writer) {
            (debt.low, debt.high) = (low, None);
        }
    }

    /// Something leaves a process for a call: it must have been asked, and once per answer.
    pub(super) fn pays(&mut self, writer: Writer, call: &Ticket) -> Option<Debt> {
        let entry = (writer, call.number);
        let debt = self.debts.get_mut(&entry).map(|debt| {
            debt.copies -= 1;
            debt.clone()
        });
        if debt.as_ref().is_some_and(|debt| debt.copies == 0) {
            self.debts.remove(&entry);
        }
        self.expect(debt.is_some(), "I23", || format!("{:?} is answered twice", call.order));
        debt
    }

    /// I3, I14: what a refusal was decided on is durable, and nothing that the caller could know of
    /// was left out.
    pub(super) fn judge_decided(&mut self, call: &Ticket, debt: &Debt, durable: Revision) {
        let Debt { low, high, .. } = *debt;
        self.expect(low <= durable, "I3", || {
            format!("{:?} was refused on {low}, which is not durable", call.order)
        });
        if let Some(high) = high {
            self.judge_order(call, high);
        }
    }

    /// I23: what a process took in is answered within bounded time, but for what hindered it.
    pub(crate) fn expects_answers(&mut self, writer: Writer, free_since_ms: u64) {
        let now = self.now_ms;
        let late = |debt: &Debt| debt.since_ms.max(free_since_ms) + ANSWER_MS < now;
        let mut theirs = self.debts.range((writer, 0)..=(writer, u64::MAX));
        let silent = theirs.find(|(_, debt)| late(debt)).map(|((_, call), debt)| {
            format!("call {call} was taken in at {} ms and is not answered at {now}", debt.since_ms)
        });
        if let Some(silent) = silent {
            self.fail("I23", silent);
        }
    }

    /// A process is gone, and with it what it owed.
    pub(crate) fn died(&mut self, writer: Writer) {
        self.debts.retain(|(by, _), _| *by != writer);
    }
}
