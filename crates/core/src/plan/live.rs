//! What happens to a reservation while it runs: use is confirmed, it is renewed or resized.

use alloc::vec::Vec;

use super::reserve::overflows;
use super::{Plan, Refusal, Scene};
use crate::advertisement::Backends;
use crate::bugs::{Bug, planted};
use crate::decision::explain;
use crate::decision::filter::{self, Filter, Question, Verdict};
use crate::event::Event;
use crate::id::{ClusterId, Generation, ReservationId};
use crate::reservation::{
    Actor, Ask, AskError, Confirmation, Grant, Move, Phase, Reservation, State,
};
use crate::resources::{Kind, Resources};
use crate::time::Span;

impl Scene<'_> {
    pub(super) fn activate(&self, by: &ClusterId, id: ReservationId) -> Result<Plan, Refusal> {
        let reservation = self.owned(&Actor::Cluster(by.clone()), id)?;
        match reservation.phase() {
            Phase::Reserved => Ok(Plan::about(id, [Event::Activated { id }])),
            Phase::Active => Ok(Plan::about(id, [])),
            phase => Err(Refusal::Phase(phase)),
        }
    }

    pub(super) fn renew(
        &self,
        by: &Actor,
        id: ReservationId,
        duration: Option<Span>,
    ) -> Result<Plan, Refusal> {
        let reservation = self.owned(by, id)?;
        let grant = running(reservation, Move::Renew)?;
        Ask { duration, ..reservation.ask.clone() }.check()?;
        self.check_duration(duration)?;
        let expires_at = self.expiry(duration);
        if expires_at == grant.expires_at {
            return Ok(Plan::about(id, []));
        }
        Ok(Plan::about(id, [Event::Renewed { id, expires_at }]))
    }

    pub(super) fn resize(
        &self,
        by: &Actor,
        id: ReservationId,
        resources: &Resources,
    ) -> Result<Plan, Refusal> {
        let reservation = self.owned(by, id)?;
        let grant = running(reservation, Move::Resize)?;
        if resources.cpu == 0 || resources.memory == 0 {
            let kind = if resources.cpu == 0 { Kind::Cpu } else { Kind::Memory };
            return Err(AskError::Nothing(kind).into());
        }
        if grant.amounts == *resources {
            return Ok(Plan::about(id, []));
        }
        if !grant.held.max(resources).is_bounded() {
            return Err(AskError::Kinds.into());
        }
        if !self.confirms(&grant.provider).unwrap_or(grant.confirms) {
            return Err(Refusal::ProviderIsOld);
        }
        let entry = self.books.market().entry(&grant.provider);
        let report = entry.and_then(|entry| entry.advertisement.grant(id));
        if let Some(report) = report.filter(|report| !report.used.fits_in(resources)) {
            return Err(Refusal::InUse(report.used.clone()));
        }
        let growth = resources.minus_floor(&grant.held);
        if !growth.is_zero() {
            self.check_growth(reservation, grant, growth)?;
        }
        let basis =
            self.books.basis(&grant.provider, self.policy, self.at.time).unwrap_or_default();
        Ok(Plan::about(id, [Event::Resized { id, amounts: resources.clone(), basis }]))
    }

    /// Growth is held first, so it is judged like a new request for that provider alone.
    fn check_growth(
        &self,
        reservation: &Reservation,
        grant: &Grant,
        growth: Resources,
    ) -> Result<(), Refusal> {
        let ask = Ask {
            resources: growth,
            target: Some(grant.provider.clone()),
            // The two are joined already, and where was chosen by labels once.
            constraints: Vec::new(),
            backends: Backends::default(),
            ..reservation.ask.clone()
        };
        let Self { books, policy, at } = *self;
        let (requester, now) = (&reservation.requester, at.time);
        let account = books.ledger().account(requester);
        let question = Question { books, requester, ask: &ask, policy, now, grows: true };
        let within = !overflows(account, &ask.resources)
            && filter::excess_of(account, requester, &ask, policy).is_none();
        let why_not = || explain::growth_refused(books, requester, &ask, policy, now).into();
        match question.verdict(&grant.provider) {
            Verdict::Fits if within => Ok(()),
            Verdict::Refused(Filter::Fit) if within && planted(Bug::SkipsFit) => Ok(()),
            Verdict::Refused(Filter::Suspect) if within => Err(Refusal::OnlySuspects(why_not())),
            _ => Err(Refusal::NobodyFits(why_not())),
        }
    }

    pub(super) fn acknowledge(
        &self,
        by: &ClusterId,
        id: ReservationId,
        generation: Generation,
    ) -> Result<Plan, Refusal> {
        let reservation = self.books.ledger().reservation(id).ok_or(Refusal::NotFound)?;
        let grant = reservation.grant().filter(|grant| grant.provider == *by);
        let grant = grant.ok_or(Refusal::NotFound)?;
        if generation > grant.generation {
            return Err(Refusal::Generation(grant.generation));
        }
        if generation <= grant.acknowledged || reservation.phase().is_terminal() {
            return Ok(Plan::about(id, []));
        }
        let acknowledged = Event::Acknowledged { id, generation };
        match &reservation.state {
            State::Releasing(_, ending)
                if generation == grant.generation || planted(Bug::NoGeneration) =>
            {
                let (reason, by) = (ending.reason, ending.by.clone());
                let confirmation = Confirmation::Confirmed;
                let ended = Event::Ended { id, reason, by, confirmation, hindrance: None };
                Ok(Plan::about(id, [acknowledged, ended]))
            }
            _ => Ok(Plan::about(id, [acknowledged])),
        }
    }
}

/// The grant of a reservation that runs. One that is due runs until its end is an event: after an
/// outage nothing is swept for a while, so that holders can renew.
fn running(reservation: &Reservation, step: Move) -> Result<&Grant, Refusal> {
    let phase = reservation.phase();
    match reservation.grant() {
        Some(grant) if step.is_legal_in(phase) => Ok(grant),
        _ => Err(Refusal::Phase(phase)),
    }
}
