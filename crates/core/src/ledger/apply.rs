//! What each event does to the ledger, and how it is taken back.

use alloc::{sync::Arc, vec, vec::Vec};

use super::moves::{check, granted, moved};
use super::{Bond, Change, Error, Ledger, Stamp, Standing, Undo};
use crate::bugs::{Bug, planted};
use crate::event::Event;
use crate::id::{ClusterId, Generation, Key, ReservationId};
use crate::reservation::{Actor, Ask, Grant, Move, Reservation, State};

impl Ledger {
    /// Folds one event; on refusal nothing has changed.
    pub fn apply(&mut self, stamp: Stamp, event: &Event) -> Result<Change, Error> {
        if stamp.revision < self.stamp.revision || stamp.time < self.stamp.time {
            return Err(Error::Backwards);
        }
        let (before, arrivals) = (self.stamp, self.arrivals);
        let steps = self.fold(stamp, event)?;
        self.go_to(stamp);
        Ok(Change { before, arrivals, steps })
    }

    /// Moves on to a record that has been applied, or that held no event.
    pub fn advance(&mut self, stamp: Stamp) -> Result<(), Error> {
        if stamp.revision < self.stamp.revision || stamp.time < self.stamp.time {
            return Err(Error::Backwards);
        }
        self.go_to(stamp);
        Ok(())
    }

    fn go_to(&mut self, stamp: Stamp) {
        if self.stamp == Stamp::default() {
            self.horizon.time = stamp.time;
        }
        self.stamp = stamp;
    }

    /// Takes back the newest change that was not taken back yet.
    pub fn revert(&mut self, change: Change) -> Result<(), Error> {
        for step in change.steps.into_iter().rev() {
            match step {
                Undo::Reservation(id, old) => {
                    self.put(id, old)?;
                }
                Undo::Key(requester, key, old) => {
                    self.put_bond(&requester, &key, old);
                }
                Undo::Standing(cluster, old) => {
                    match old {
                        Some(old) => self.standings.insert(cluster, old),
                        None => self.standings.remove(&cluster),
                    };
                }
                Undo::Revoked(subject, old) => {
                    match old {
                        Some(old) => self.revoked.insert(subject, old),
                        None => self.revoked.remove(&subject),
                    };
                }
                Undo::Restored(old) => self.restored = old,
                Undo::Horizon(old) => self.horizon = old,
            }
        }
        if change.before == Stamp::default() {
            self.horizon = Stamp::default();
        }
        (self.stamp, self.arrivals) = (change.before, change.arrivals);
        Ok(())
    }

    fn fold(&mut self, stamp: Stamp, event: &Event) -> Result<Vec<Undo>, Error> {
        match event {
            Event::Requested { id, requester, key, ask, priority, until } => {
                let state = State::Pending { until: *until };
                let (ask, priority) = (ask.clone(), *priority);
                let born = self.newborn(*id, requester, stamp);
                self.born(key, Reservation { ask, priority, state, ..born })
            }
            Event::Reserved { id, requester, key, ask, priority, .. } => {
                let state = granted(stamp, event).map(State::Reserved);
                let (ask, priority) = (ask.clone(), *priority);
                let born = self.newborn(*id, requester, stamp);
                let state = state.unwrap_or(born.state);
                self.born(key, Reservation { ask, priority, state, ..born })
            }
            Event::Adopted { .. } => self.adopted(stamp, event),
            Event::Forgotten { reservations, tombstones } => {
                self.forgotten(reservations, tombstones)
            }
            Event::KeyReleased { requester, key } => {
                if self.bond(requester, key).is_some() {
                    return Err(Error::KeyTaken(requester.clone(), key.clone()));
                }
                Ok(vec![self.bind(requester, key, Some(Bond::Tombstone(stamp.time)))])
            }
            Event::Granted { id, .. }
            | Event::Activated { id }
            | Event::Renewed { id, .. }
            | Event::Resized { id, .. }
            | Event::Acknowledged { id, .. }
            | Event::Ending { id, .. }
            | Event::Ended { id, .. } => {
                let old = self.reservation(*id).ok_or(Error::Unknown(*id))?;
                let mut new = moved(old, stamp, event)?;
                new.changed = stamp.revision;
                let old = self.put(*id, Some(Arc::new(new)))?;
                Ok(vec![Undo::Reservation(*id, old)])
            }
            _ => Ok(vec![self.operated(stamp, event)]),
        }
    }

    /// A reservation comes into being under its key.
    fn born(&mut self, key: &Key, new: Reservation) -> Result<Vec<Undo>, Error> {
        let (id, requester) = (new.id, new.requester.clone());
        if self.reservation(id).is_some() {
            return Err(Error::Exists(id));
        }
        if self.bond(&requester, key).is_some() {
            return Err(Error::KeyTaken(requester, key.clone()));
        }
        let new = Reservation { key: Some(key.clone()), ..new };
        self.add(Arc::new(new))?;
        self.arrivals = self.arrivals.saturating_add(1);
        let kept = (!planted(Bug::KeyApart)).then_some(Bond::Reservation(id));
        let bound = self.bind(&requester, key, kept);
        Ok(vec![Undo::Reservation(id, None), bound])
    }

    /// What a provider reports names no key, so what is adopted has none: its requester finds it
    /// by its id, not by the key that it had asked under.
    fn adopted(&mut self, stamp: Stamp, event: &Event) -> Result<Vec<Undo>, Error> {
        let Event::Adopted { id, requester, provider, amounts, generation, expires_at } = event
        else {
            return Ok(Vec::new());
        };
        let mut grant = Grant {
            provider: provider.clone(),
            amounts: amounts.clone(),
            held: amounts.clone(),
            granted_at: stamp.time,
            expires_at: *expires_at,
            activate_by: None,
            generation: *generation,
            acknowledged: Generation::default(),
            confirms: true,
        };
        let new = match self.reservation(*id) {
            None => Reservation {
                ask: Ask { resources: amounts.clone(), ..Ask::default() },
                state: State::Active(grant),
                ..self.newborn(*id, requester, stamp)
            },
            Some(known) if known.requester == *requester => {
                match &known.state {
                    // It was granted after the backup had been made.
                    State::Pending { .. } => {}
                    // Nothing that either side may still count on is given back by adopting.
                    State::Reserved(older) | State::Active(older)
                        if older.provider == *provider && older.generation < *generation =>
                    {
                        grant.held = older.held.max(amounts);
                        grant.granted_at = older.granted_at;
                    }
                    _ => return Err(Error::Exists(*id)),
                }
                let state = State::Active(grant);
                Reservation { state, changed: stamp.revision, ..known.clone() }
            }
            Some(_) => return Err(Error::Exists(*id)),
        };
        let old = self.put(*id, Some(Arc::new(new)))?;
        self.arrivals = self.arrivals.saturating_add(1);
        Ok(vec![Undo::Reservation(*id, old)])
    }

    /// A reservation without a key and of no priority.
    fn newborn(&self, id: ReservationId, requester: &ClusterId, stamp: Stamp) -> Reservation {
        Reservation {
            id,
            requester: requester.clone(),
            key: None,
            ask: Ask::default(),
            priority: 0,
            requested_at: stamp.time,
            arrival: self.arrivals,
            state: State::Pending { until: stamp.time },
            changed: stamp.revision,
        }
    }

    fn forgotten(
        &mut self,
        reservations: &[ReservationId],
        tombstones: &[(ClusterId, Key)],
    ) -> Result<Vec<Undo>, Error> {
        // All checks come before the first change.
        for id in reservations {
            let known = self.reservation(*id).ok_or(Error::Unknown(*id))?;
            check(known, Move::Forget)?;
        }
        for (requester, key) in tombstones {
            if !matches!(self.bond(requester, key), Some(Bond::Tombstone(_))) {
                return Err(Error::NoTombstone(requester.clone(), key.clone()));
            }
        }
        let mut steps = vec![Undo::Horizon(self.horizon)];
        for id in reservations {
            let Some(old) = self.put(*id, None)? else {
                continue;
            };
            self.horizon.revision = self.horizon.revision.max(old.changed);
            if let Some(key) = &old.key {
                steps.push(self.bind(&old.requester, key, None));
            }
            steps.push(Undo::Reservation(*id, Some(old)));
        }
        for (requester, key) in tombstones {
            steps.push(self.bind(requester, key, None));
        }
        Ok(steps)
    }

    fn bind(&mut self, requester: &ClusterId, key: &Key, new: Option<Bond>) -> Undo {
        let old = self.put_bond(requester, key, new);
        Undo::Key(requester.clone(), key.clone(), old)
    }

    /// What operators and recovery decide; none of it can be refused.
    fn operated(&mut self, stamp: Stamp, event: &Event) -> Undo {
        match event {
            Event::Cordoned { cluster, drain, note } => self.stand(cluster, |standing| {
                standing.cordon = Some(note.clone());
                standing.draining = *drain;
            }),
            Event::Uncordoned { cluster, .. } => self.stand(cluster, |standing| {
                standing.cordon = None;
                standing.draining = false;
            }),
            Event::Capped { cluster, limits, .. } => {
                self.stand(cluster, |standing| standing.cap = limits.clone())
            }
            Event::Lost { cluster, note } => {
                self.stand(cluster, |standing| standing.lost = Some(note.clone()))
            }
            Event::Returned { cluster } => self.stand(cluster, |standing| standing.lost = None),
            Event::Reconciled { cluster, note } => {
                let reported = matches!(note.by, Actor::Cluster(_)) || self.has_reported(cluster);
                self.stand(cluster, |standing| {
                    (standing.reconciled, standing.vouched) = (Some(stamp.revision), !reported);
                })
            }
            Event::Revoked { subject, note } => {
                let old = self.revoked.insert(subject.clone(), note.clone());
                Undo::Revoked(subject.clone(), old)
            }
            Event::Reinstated { subject, .. } => {
                Undo::Revoked(subject.clone(), self.revoked.remove(subject))
            }
            Event::Restored { .. } => Undo::Restored(self.restored.replace(stamp)),
            // `ClockConfirmed` is remembered by the log; everything else is folded above.
            _ => Undo::Restored(self.restored),
        }
    }

    fn stand(&mut self, cluster: &ClusterId, edit: impl FnOnce(&mut Standing)) -> Undo {
        let old = self.standings.get(cluster).cloned();
        let standing = self.standings.entry(cluster.clone()).or_default();
        edit(standing);
        if *standing == Standing::default() {
            self.standings.remove(cluster);
        }
        Undo::Standing(cluster.clone(), old)
    }
}
