//! A batch of planned work on its way to the disk.

use std::sync::Arc;

use sublet_core::books::Reversal;
use sublet_core::bugs::{Bug, planted};
use sublet_core::event::Event;
use sublet_core::id::ReservationId;
use sublet_core::ledger::Stamp;
use sublet_core::reservation::Reservation;
use sublet_log::Body;

use super::decided::Decided;
use super::handle::Revoked;
use super::work::{Answer, Deliver, Submitted};

/// Events that become durable together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its place and time.
    pub stamp: Stamp,
    /// The events, encoded.
    pub body: Body,
}

/// What a commit changed, for those who watch.
#[derive(Debug, Default)]
pub struct Changes {
    /// Up to here.
    pub at: Stamp,
    /// These reservations, as they are now.
    pub reservations: Vec<Arc<Reservation>>,
    /// Who is not believed any more, if that changed.
    pub revoked: Option<Revoked>,
    /// What was decided although no call asked for it.
    pub decided: Vec<Decided>,
}

/// Work that was taken in.
pub(super) struct Item<T> {
    pub(super) submitted: Submitted<T>,
    /// It is an advertisement that was planned before, and was news then: so it is again.
    pub(super) was_news: bool,
}

/// Work that was planned and waits for its batch to be durable.
pub(super) struct Planned<T> {
    pub(super) item: Item<T>,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    Answer(Box<Answer>),
    Seen(Deliver),
}

/// A batch in the making, or on its way to the disk.
pub(super) struct Flight<T> {
    pub(super) stamp: Stamp,
    pub(super) body: Body,
    pub(super) reversals: Vec<Reversal>,
    pub(super) planned: Vec<Planned<T>>,
    /// The reservations that it changes.
    pub(super) touched: Vec<ReservationId>,
    /// The same, as they are at its end.
    pub(super) changed: Vec<Arc<Reservation>>,
    /// Who is not believed any more at its end, if it changes that.
    pub(super) revoked: Option<Revoked>,
    /// Those of its events that no call asked for.
    pub(super) uncalled: Vec<Event>,
}

/// How large a batch was: the next is likely to be as large, and need not grow up to there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    bytes: usize,
    events: usize,
    planned: usize,
}

impl<T> Flight<T> {
    pub(super) fn new(stamp: Stamp, room: Room) -> Self {
        Self {
            stamp,
            body: Body::with_room(room.bytes, room.events),
            reversals: Vec::with_capacity(room.events),
            planned: Vec::with_capacity(room.planned),
            touched: vec![],
            changed: vec![],
            revoked: None,
            uncalled: vec![],
        }
    }

    /// What it took.
    pub(super) fn room(&self) -> Room {
        let (bytes, events) = (self.body.size(), self.body.events().len());
        Room { bytes, events, planned: self.planned.len() }
    }
}

/// Does it change who is believed?
pub(super) fn changes_belief(event: &Event) -> bool {
    matches!(event, Event::Revoked { .. } | Event::Reinstated { .. })
}

pub(super) fn tell<T>(all: Vec<Planned<T>>) -> Vec<(T, Answer)> {
    let mut answers = Vec::with_capacity(all.len());
    for planned in all {
        match planned.outcome {
            Outcome::Answer(answer) => answers.push((planned.item.submitted.ticket, *answer)),
            Outcome::Seen(deliver) => deliver(),
        }
    }
    answers
}

/// Nothing leaves before its batch is durable, unless a bug is planted.
pub(super) fn leave_early<T>(flight: &mut Flight<T>) -> Vec<Planned<T>> {
    let (all, looks) = (planted(Bug::AckBeforeDurable), planted(Bug::LooksEarly));
    let refusals = planted(Bug::RefusesEarly);
    if !(all || looks || refusals) {
        return vec![];
    }
    let leaves = |planned: &Planned<T>| match &planned.outcome {
        Outcome::Seen(_) => all || looks,
        Outcome::Answer(answer) => all || refusals && answer.is_err(),
    };
    let (early, rest) = std::mem::take(&mut flight.planned).into_iter().partition(leaves);
    flight.planned = rest;
    early
}
