//! What an event of its own does to one reservation.

use alloc::boxed::Box;

use super::{Error, Stamp};
use crate::bugs::{Bug, planted};
use crate::event::Event;
use crate::id::Generation;
use crate::reservation::{
    Actor, Confirmation, Ending, Grant, Hindrance, Move, Reason, Reservation, State,
};

pub(super) fn check(reservation: &Reservation, step: Move) -> Result<(), Error> {
    let phase = reservation.phase();
    if step.is_legal_in(phase) {
        Ok(())
    } else {
        Err(Error::Illegal { id: reservation.id, phase, step })
    }
}

/// The reservation after an event of its own.
pub(super) fn moved(old: &Reservation, stamp: Stamp, event: &Event) -> Result<Reservation, Error> {
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
                if planted(Bug::ShrinkFreesAtOnce) {
                    grant.held = amounts.clone();
                }
                grant.amounts = amounts.clone();
                grant.generation = grant.generation.next();
            });
        }
        Event::Acknowledged { generation, .. } => {
            check(old, Move::Acknowledge)?;
            acknowledged(&mut new, *generation)?;
        }
        Event::Ending { reason, by, hindrance, .. } => {
            check(old, Move::BeginEnd)?;
            let ending = began(*reason, by, hindrance.as_deref(), stamp);
            if let State::Reserved(grant) | State::Active(grant) = new.state {
                let generation = grant.generation.next();
                new.state = State::Releasing(Grant { generation, ..grant }, ending);
            }
        }
        Event::Ended { reason, by, hindrance, confirmation, .. } => {
            check(old, Move::End)?;
            let ending = began(*reason, by, hindrance.as_deref(), stamp);
            new.state = ended(new.state, ending, stamp, *confirmation);
        }
        _ => {}
    }
    Ok(new)
}

/// What a grant gives.
pub(super) fn granted(stamp: Stamp, event: &Event) -> Option<Grant> {
    let (provider, amounts, (expires_at, activate_by), confirms) = match event {
        Event::Granted { provider, amounts, expires_at, activate_by, confirms, .. } => {
            (provider, amounts, (expires_at, activate_by), confirms)
        }
        Event::Reserved { provider, ask, expires_at, activate_by, confirms, .. } => {
            (provider, &ask.resources, (expires_at, activate_by), confirms)
        }
        _ => return None,
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

fn began(reason: Reason, by: &Actor, why: Option<&Hindrance>, stamp: Stamp) -> Ending {
    Ending { reason, by: by.clone(), at: stamp.time, hindrance: why.cloned().map(Box::new) }
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
