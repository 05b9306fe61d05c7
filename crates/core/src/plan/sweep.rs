//! What time has made due: expiries, patience, silence, and what may be forgotten.

use alloc::{format, vec::Vec};

use super::{EVENTS_MAX, Plan, Reply, Scene};
use crate::bugs::{Bug, planted};
use crate::event::{Event, Note};
use crate::id::ClusterId;
use crate::reservation::{Actor, Confirmation, Reason, Reservation, State};
use crate::time::Time;

impl Scene<'_> {
    pub(super) fn sweep(&self, expire: bool) -> Plan {
        let mut events = Vec::new();
        // One more than fits is looked for, to know whether there is more.
        let mut take = |found: &mut dyn Iterator<Item = Event>| {
            events.extend(found.take((EVENTS_MAX + 1).saturating_sub(events.len())));
        };
        let ledger = self.books.ledger();
        if expire {
            take(&mut self.overdue().filter_map(|reservation| self.due(reservation)));
            take(&mut self.silent());
        }
        // What is due has its event already.
        let over = |r: &&Reservation| {
            let due = r.deadline().is_some_and(|time| time <= self.at.time);
            expire && due && !self.may_live_on(r)
        };
        let lent_by = |cluster| self.lent_by(cluster).filter(move |r| !over(r));
        for (cluster, standing) in ledger.standings() {
            if standing.lost.is_some() {
                take(&mut lent_by(cluster).filter_map(lost));
            } else if standing.draining {
                take(&mut lent_by(cluster).filter_map(|reservation| {
                    self.end(reservation, Reason::Drained, Actor::Broker)
                }));
            }
        }
        let mut more = events.len() > EVENTS_MAX;
        events.truncate(EVENTS_MAX);
        match self.forget().filter(|_| expire) {
            Some((forgotten, rest)) if events.len() < EVENTS_MAX => {
                events.push(forgotten);
                more |= rest;
            }
            Some(_) => more = true,
            None => {}
        }
        Plan::new(events, Reply::Swept { more })
    }

    /// What is past its time, as far as we know.
    fn overdue(&self) -> impl Iterator<Item = &Reservation> {
        let due = self.books.ledger().due(self.at.time);
        due.filter(|reservation| !self.may_live_on(reservation))
    }

    /// After a restore it may have been renewed, activated or granted since the backup: its provider
    /// knows, and until it has reported nothing that it lends is ended for its time.
    fn may_live_on(&self, reservation: &Reservation) -> bool {
        let holding = reservation.holding();
        holding.is_some_and(|grant| self.books.ledger().awaits_report(&grant.provider))
            || self.is_held_back(reservation)
    }

    fn due(&self, reservation: &Reservation) -> Option<Event> {
        let now = self.at.time;
        let reason = match &reservation.state {
            State::Pending { .. } => Reason::WaitOver,
            State::Reserved(grant) if grant.expires_at.is_none_or(|expiry| expiry > now) => {
                Reason::NeverActivated
            }
            _ => Reason::Expired,
        };
        self.end(reservation, reason, Actor::Broker)
    }

    /// Providers that have been silent for as long as the operator set, also those that this process
    /// never heard: after a restore nothing is known of a provider that is gone for good.
    fn silent(&self) -> impl Iterator<Item = Event> + '_ {
        let (ledger, market, now) = (self.books.ledger(), self.books.market(), self.at.time);
        let limit = self.policy.lost_after;
        let all =
            limit.into_iter().flat_map(|limit| ledger.accounts().map(move |one| (limit, one)));
        all.filter_map(move |(limit, (cluster, account))| {
            let lost = ledger.standing(cluster).is_some_and(|standing| standing.lost.is_some());
            let silent = || market.silent_for(cluster, now).is_some_and(|span| span >= limit);
            let why = || format!("silent for {} s", limit.as_millis() / 1000);
            (!account.lending.is_empty() && !lost && silent()).then(|| Event::Lost {
                cluster: cluster.clone(),
                note: Note { by: Actor::Broker, why: why() },
            })
        })
    }

    fn lent_by(&self, cluster: &ClusterId) -> impl Iterator<Item = &Reservation> {
        let ledger = self.books.ledger();
        let lending = ledger.account(cluster).map(|account| &account.lending);
        lending.into_iter().flatten().filter_map(|id| ledger.reservation(*id))
    }

    /// What may be forgotten, and whether there is more of it than one event should hold.
    fn forget(&self) -> Option<(Event, bool)> {
        let early = if planted(Bug::KeysGoEarly) { 24 } else { 1 };
        let retention = self.policy.key_retention.as_millis().checked_div(early)?;
        let before = self.at.time.as_millis().checked_sub(retention)?;
        let before = Time::from_millis(before);
        let ledger = self.books.ledger();
        let reservations: Vec<_> = ledger.ended_before(before).take(EVENTS_MAX).collect();
        let tombstones: Vec<_> = ledger.tombstones_before(before).take(EVENTS_MAX).collect();
        let most = reservations.len().max(tombstones.len());
        (most > 0).then_some((Event::Forgotten { reservations, tombstones }, most == EVENTS_MAX))
    }
}

fn lost(reservation: &Reservation) -> Option<Event> {
    let (reason, by) = match &reservation.state {
        State::Releasing(_, ending) => (ending.reason, ending.by.clone()),
        _ => (Reason::ProviderLost, Actor::Broker),
    };
    let confirmation = Confirmation::ProviderLost;
    reservation.holding()?;
    Some(Event::Ended { id: reservation.id, reason, by, confirmation, hindrance: None })
}
