//! What each event does to the ledger, and how it is taken back.

use alloc::{boxed::Box, vec, vec::Vec};

use super::{Bond, Change, Error, Ledger, Stamp, Standing, Undo};
use crate::event::Event;
use crate::id::{ClusterId, Generation, Key, ReservationId};
use crate::reservation::{Ask, Confirmation, Ending, Grant, Move, Reservation, State};

impl Ledger {
    /// Folds one event; on refusal nothing has changed.
    pub fn apply(&mut self, stamp: Stamp, event: &Event) -> Result<Change, Error> {
        if stamp.revision < self.stamp.revision || stamp.time < self.stamp.time {
            return Err(Error::Backwards);
        }
        let (before, arrivals) = (self.stamp, self.arrivals);
        let steps = self.fold(stamp, event)?;
        self.stamp = stamp;
        Ok(Change { before, arrivals, steps })
    }

    /// Moves on to a record that has been applied, or that held no event.
    pub fn advance(&mut self, stamp: Stamp) -> Result<(), Error> {
        if stamp.revision < self.stamp.revision || stamp.time < self.stamp.time {
            return Err(Error::Backwards);
        }
        self.stamp = stamp;
        Ok(())
    }

    /// Takes back the newest change that was not taken back yet.
    pub fn revert(&mut self, change: Change) -> Result<(), Error> {
        for step in change.steps.into_iter().rev() {
            match step {
                Undo::Reservation(id, old) => {
                    self.put(id, old.map(|old| *old))?;
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
            }
        }
        (self.stamp, self.arrivals) = (change.before, change.arrivals);
        Ok(())
    }

    fn fold(&mut self, stamp: Stamp, event: &Event) -> Result<Vec<Undo>, Error> {
        match event {
            Event::Requested { .. } => self.requested(stamp, event),
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
                let old = self.put(*id, Some(new))?;
                Ok(vec![Undo::Reservation(*id, old.map(Box::new))])
            }
            _ => Ok(vec![self.operated(stamp, event)]),
        }
    }

    fn requested(&mut self, stamp: Stamp, event: &Event) -> Result<Vec<Undo>, Error> {
        let Event::Requested { id, requester, key, ask, priority, until } = event else {
            return Ok(Vec::new());
        };
        if self.reservation(*id).is_some() {
            return Err(Error::Exists(*id));
        }
        if self.bond(requester, key).is_some() {
            return Err(Error::KeyTaken(requester.clone(), key.clone()));
        }
        let state = State::Pending { until: *until };
        let new = self.newborn(*id, requester, ask.clone(), state, stamp);
        self.put(*id, Some(Reservation { key: Some(key.clone()), priority: *priority, ..new }))?;
        self.arrivals = self.arrivals.saturating_add(1);
        let bound = self.bind(requester, key, Some(Bond::Reservation(*id)));
        Ok(vec![Undo::Reservation(*id, None), bound])
    }

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
            None => {
                let ask = Ask { resources: amounts.clone(), ..Ask::default() };
                self.newborn(*id, requester, ask, State::Active(grant), stamp)
            }
            Some(known) => {
                let older = known
                    .holding()
                    .filter(|old| old.provider == *provider && old.generation < *generation);
                let older = older.ok_or(Error::Exists(*id))?;
                // Nothing that either side may still count on is given back by adopting.
                grant.held = older.held.max(amounts);
                grant.granted_at = older.granted_at;
                let state = State::Active(grant);
                Reservation { state, changed: stamp.revision, ..known.clone() }
            }
        };
        let old = self.put(*id, Some(new))?;
        self.arrivals = self.arrivals.saturating_add(1);
        Ok(vec![Undo::Reservation(*id, old.map(Box::new))])
    }

    fn newborn(
        &self,
        id: ReservationId,
        requester: &ClusterId,
        ask: Ask,
        state: State,
        stamp: Stamp,
    ) -> Reservation {
        Reservation {
            id,
            requester: requester.clone(),
            key: None,
            ask,
            priority: 0,
            requested_at: stamp.time,
            arrival: self.arrivals,
            state,
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
        let mut steps = Vec::new();
        for id in reservations {
            let Some(old) = self.put(*id, None)? else {
                continue;
            };
            if let Some(key) = &old.key {
                steps.push(self.bind(&old.requester, key, None));
            }
            steps.push(Undo::Reservation(*id, Some(Box::new(old))));
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
            Event::Reconciled { cluster, .. } => self.stand(cluster, |standing| {
                standing.reconciled = Some(stamp.revision);
            }),
            Event::Revoked { subject, note } => {
                let old = self.revoked.insert(subject.clone(), note.clone());
                Undo::Revoked(subject.clone(), old)
            }
            Event::Reinstated { subject, .. } => {
                Undo::Revoked(subject.clone(), self.revoked.remove(subject))
            }
            Event::Restored { .. } => Undo::Restored(self.restored.replace(stamp.revision)),
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

fn check(reservation: &Reservation, step: Move) -> Result<(), Error> {
    let phase = reservation.phase();
    if step.is_legal_in(phase) {
        Ok(())
    } else {
        Err(Error::Illegal { id: reservation.id, phase, step })
    }
}

/// The reservation after an event of its own.
fn moved(old: &Reservation, stamp: Stamp, event: &Event) -> Result<Reservation, Error> {
    let mut new = old.clone();
    match event {
        Event::Granted { .. } => {
            check(old, Move::Grant)?;
            new.state = granted(stamp, event).map_or(new.state, State::Reserved);
        }
        Event::Activated { .. } => {
            check(old, Move::Activate)?;
            if let State::Reserved(grant) = new.state {
                new.state = State::Active(Grant { activate_by: None, ..grant });
            }
        }
        Event::Renewed { expires_at, .. } => {
            check(old, Move::Renew)?;
            edit_grant(&mut new, |grant| {
                grant.expires_at = *expires_at;
                grant.generation = grant.generation.next();
            });
        }
        Event::Resized { amounts, .. } => {
            check(old, Move::Resize)?;
            edit_grant(&mut new, |grant| {
                grant.held = grant.held.max(amounts);
                grant.amounts = amounts.clone();
                grant.generation = grant.generation.next();
            });
        }
        Event::Acknowledged { generation, .. } => {
            check(old, Move::Acknowledge)?;
            acknowledged(&mut new, *generation)?;
        }
        Event::Ending { reason, by, .. } => {
            check(old, Move::BeginEnd)?;
            let ending = Ending { reason: *reason, by: by.clone(), at: stamp.time };
            if let State::Reserved(grant) | State::Active(grant) = new.state {
                let generation = grant.generation.next();
                new.state = State::Releasing(Grant { generation, ..grant }, ending);
            }
        }
        Event::Ended { reason, by, confirmation, .. } => {
            check(old, Move::End)?;
            let ending = Ending { reason: *reason, by: by.clone(), at: stamp.time };
            new.state = ended(new.state, ending, stamp, *confirmation);
        }
        _ => {}
    }
    Ok(new)
}

fn granted(stamp: Stamp, event: &Event) -> Option<Grant> {
    let Event::Granted { provider, amounts, expires_at, activate_by, confirms, .. } = event else {
        return None;
    };
    Some(Grant {
        provider: provider.clone(),
        amounts: amounts.clone(),
        held: amounts.clone(),
        granted_at: stamp.time,
        expires_at: *expires_at,
        activate_by: *activate_by,
        generation: Generation::default().next(),
        acknowledged: Generation::default(),
        confirms: *confirms,
    })
}

fn edit_grant(reservation: &mut Reservation, edit: impl FnOnce(&mut Grant)) {
    if let State::Reserved(grant) | State::Active(grant) | State::Releasing(grant, _) =
        &mut reservation.state
    {
        edit(grant);
    }
}

fn acknowledged(new: &mut Reservation, generation: Generation) -> Result<(), Error> {
    let unexpected =
        |grant: &Grant| generation <= grant.acknowledged || generation > grant.generation;
    if new.grant().is_none_or(unexpected) {
        return Err(Error::Generation(new.id));
    }
    let ends = matches!(new.state, State::Releasing(..));
    edit_grant(new, |grant| {
        grant.acknowledged = generation;
        // Only the newest instruction says how little is enough.
        if generation == grant.generation && !ends {
            grant.held = grant.amounts.clone();
        }
    });
    Ok(())
}

fn ended(old: State, ending: Ending, stamp: Stamp, confirmation: Confirmation) -> State {
    let at = stamp.time;
    match old {
        State::Pending { .. } => State::Ended { grant: None, ending, at, confirmation },
        State::Reserved(grant) | State::Active(grant) => {
            State::Ended { grant: Some(grant), ending, at, confirmation }
        }
        // Why it ends was decided when it began to.
        State::Releasing(grant, ending) => {
            State::Ended { grant: Some(grant), ending, at, confirmation }
        }
        over @ State::Ended { .. } => over,
    }
}
