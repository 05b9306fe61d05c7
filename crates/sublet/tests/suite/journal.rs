//! What clients wrote down while they asked, and what speaks against the broker because of it.
//!
//! A client writes what it is about to send before it sends it, and what it was answered before it
//! does anything else. So what the journal calls acknowledged was acknowledged, whatever happened to
//! the broker since.

use std::collections::BTreeMap;

use sublet_core::id::ReservationId;
use sublet_core::reservation::Reason;
use sublet_wire::v1::Reservation;

use crate::recount::{Amounts, Grant, Name, Recount, Stand, Wait};

/// What happened to one request.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are written down as they happen")]
pub(crate) struct Line {
    /// What was asked for, and every size that was asked for after that.
    pub(crate) sizes: Vec<Amounts>,
    /// Which of the sizes was acknowledged last.
    pub(crate) sized: usize,
    /// Whether it was to end by itself.
    pub(crate) ends: bool,
    /// Whether it might wait.
    pub(crate) waits: bool,
    /// Every answer that said that it waits.
    pub(crate) pending: Vec<ReservationId>,
    /// Every answer that said it was granted, and where.
    pub(crate) granted: Vec<(ReservationId, String)>,
    /// Whether use was confirmed, and that acknowledged.
    pub(crate) activated: bool,
    /// Whether its release was sent, which it may or may not have survived.
    pub(crate) releasing: bool,
    /// Whether its release was acknowledged.
    pub(crate) released: bool,
    /// Its client will not ask about it any more.
    pub(crate) done: bool,
}

/// What happened to every request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(pub(crate) BTreeMap<Name, Line>);

impl Journal {
    /// Somebody is about to ask.
    pub(crate) fn asks(&mut self, name: &Name, asked: Amounts) -> &mut Line {
        let line = Line { sizes: vec![asked], ..Line::default() };
        assert!(self.0.insert(name.clone(), line).is_none(), "{name:?} is used twice");
        self.line(name)
    }

    /// The line of a request that was asked.
    pub(crate) fn line(&mut self, name: &Name) -> &mut Line {
        self.0.get_mut(name).expect("it was asked before")
    }

    /// Somebody was told that he has it.
    pub(crate) fn granted(&mut self, name: &Name, answer: &Reservation) -> ReservationId {
        let id = answer.id.parse().unwrap();
        self.line(name).granted.push((id, answer.target_cluster_id.clone()));
        id
    }
}

impl Line {
    /// Its id and provider are those of every answer.
    fn id(&self) -> Option<ReservationId> {
        self.granted.first().map(|(id, _)| *id).or(self.pending.first().copied())
    }

    fn has_several_answers(&self) -> bool {
        let id = self.id();
        self.granted.iter().any(|answer| answer != &self.granted[0] || Some(answer.0) != id)
            || self.pending.iter().any(|pending| Some(*pending) != id)
    }

    /// What speaks against a grant that was acknowledged; `sent` is the same line later.
    fn audit(&self, id: ReservationId, sent: &Self, grant: &Grant) -> Option<&'static str> {
        let provider = self.granted.first().map(|(_, provider)| provider);
        let same = grant.id == id && provider.is_none_or(|at| grant.provider == *at);
        let sizes = sent.sizes.get(self.sized..).unwrap_or_default();
        if !same || !sizes.contains(&grant.amounts) {
            return Some("was acknowledged and is lost");
        }
        if self.activated && !grant.active {
            return Some("was activated and is not");
        }
        let again = self.released && grant.stand == Stand::Held;
        again.then_some("was released and is held again")
    }

    /// What speaks against a request that is not granted; `sent` is the same line later.
    fn audit_wait(&self, id: ReservationId, wait: &Wait) -> Option<&'static str> {
        if wait.id != id || !self.granted.is_empty() {
            return Some("was acknowledged and is lost");
        }
        let again = self.released && wait.over.is_none();
        again.then_some("was released and waits again")
    }

    fn may_end(&self, reason: Option<Reason>) -> bool {
        match reason {
            None => true,
            Some(Reason::ReleasedByRequester) => self.releasing,
            Some(Reason::Expired) => self.ends,
            Some(Reason::WaitOver) => self.waits,
            Some(_) => false,
        }
    }
}

/// What speaks against the broker.
///
/// `acknowledged` is the journal from before the log was read: all of it must be there. `sent` is
/// the journal from after: nothing else may be there.
pub(crate) fn audit(acknowledged: &Journal, sent: &Journal, recount: &Recount) -> Vec<String> {
    let mut objections = recount.objections.clone();
    for (name, line) in &acknowledged.0 {
        if line.has_several_answers() {
            objections.push(format!("{name:?} has several answers: {line:?}"));
        }
        if line.released && line.id().is_none() && !recount.buried.contains(name) {
            objections.push(format!("{name:?} was buried and is not"));
        }
        let Some(id) = line.id() else { continue };
        let later = sent.0.get(name).unwrap_or(line);
        let wrong = match (recount.grants.get(name), recount.waits.get(name)) {
            (Some(grant), _) => line.audit(id, later, grant),
            (None, Some(wait)) => line.audit_wait(id, wait),
            (None, None) => Some("was acknowledged and is lost"),
        };
        objections.extend(wrong.map(|wrong| format!("{id} of {name:?} {wrong}")));
    }
    for (name, grant) in &recount.grants {
        match sent.0.get(name) {
            Some(line) if line.sizes.contains(&grant.amounts) => {
                if !line.may_end(grant.reason) {
                    objections.push(format!("{} ended and nobody released it", grant.id));
                }
            }
            _ => objections.push(format!("{} was granted and nobody asked so", grant.id)),
        }
    }
    for (name, wait) in &recount.waits {
        let right = sent.0.get(name).is_some_and(|line| line.waits && line.may_end(wait.over));
        if !right {
            objections.push(format!("{} waits, or waited, and nobody asked so", wait.id));
        }
    }
    objections
}

/// What is still open although everybody was answered: a grant that its client does not know of.
pub(crate) fn unsettled(journal: &Journal, recount: &Recount) -> Vec<String> {
    let unknown = |name: &&Name| journal.0.get(*name).is_none_or(|line| line.id().is_none());
    let found = recount.grants.keys().filter(unknown);
    found.map(|name| format!("{name:?} was granted and its client was told no")).collect()
}
