//! What must always hold, recounted from zero.
//!
//! [`check`] looks at a ledger and knows nothing of how it was kept; [`check_books`] does the same
//! for what follows from ledger and market together; [`judge`] looks at one event before it is
//! applied and says whether a grant was justified by its basis. Used by tests, by the simulator, by
//! fsck, and by the engine on every event before it is written.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{format, string::String, vec::Vec};
use core::fmt::Debug;

use crate::advertisement::Advertisement;
use crate::books::Books;
use crate::bugs::{Bug, planted};
use crate::decision::labels::Labels;
use crate::event::{Basis, Event};
use crate::id::{ClusterId, ReservationId};
use crate::ledger::{Account, Bond, Ledger, Stamp};
use crate::reservation::{Confirmation, Phase, Reservation, State};
use crate::resources::Resources;

/// Something that must hold and does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule, as a stable code.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
}

fn violation(rule: &'static str, found: String) -> Violation {
    Violation { rule, found }
}

/// Everything that a ledger must fulfil, whatever led to it.
pub fn check(ledger: &Ledger) -> Vec<Violation> {
    let mut found = Vec::new();
    for reservation in ledger.reservations(None) {
        check_reservation(ledger, reservation, &mut found);
    }
    check_keys(ledger, &mut found);
    check_accounts(ledger, &mut found);
    check_queues(ledger, &mut found);
    found
}

fn check_reservation(ledger: &Ledger, reservation: &Reservation, found: &mut Vec<Violation>) {
    let id = reservation.id;
    let mut expect = |rule, holds: bool| {
        if !holds {
            found.push(violation(rule, format!("{id}: {reservation:?}")));
        }
    };
    let stamp = ledger.stamp();
    expect("changed-in-future", reservation.changed <= stamp.revision);
    expect("requested-in-future", reservation.requested_at <= stamp.time);
    if let Some(key) = &reservation.key {
        let bond = ledger.bond(&reservation.requester, key);
        expect("key-lost", bond == Some(Bond::Reservation(id)));
    }
    let Some(grant) = reservation.grant() else { return };
    expect("lends-to-itself", grant.provider != reservation.requester);
    expect("acknowledged-too-much", grant.acknowledged <= grant.generation);
    expect("granted-before-requested", reservation.requested_at <= grant.granted_at);
    expect("holds-less-than-promised", grant.amounts.fits_in(&grant.held));
    let deadline = reservation.phase() == Phase::Reserved || grant.activate_by.is_none();
    expect("active-with-deadline", deadline || reservation.phase() != Phase::Active);
}

/// Every key stands for a reservation that was made under it, or for a tombstone that time will find.
fn check_keys(ledger: &Ledger, found: &mut Vec<Violation>) {
    let mut tombstones = BTreeSet::new();
    for (requester, key, bond) in ledger.bonds() {
        match bond {
            Bond::Tombstone(_) => {
                tombstones.insert((requester.clone(), key.clone()));
            }
            Bond::Reservation(id) => {
                let made = ledger.reservation(id);
                let under =
                    |r: &Reservation| r.requester == *requester && r.key.as_ref() == Some(key);
                if !made.is_some_and(under) {
                    found.push(violation("key-dangles", format!("{key} of {requester}: {id}")));
                }
            }
        }
    }
    let far = crate::time::Time::from_millis(u64::MAX);
    compare("tombstones", tombstones, ledger.tombstones_before(far).collect(), found);
}

/// What each cluster lends and borrows, summed up from zero.
fn check_accounts(ledger: &Ledger, found: &mut Vec<Violation>) {
    let mut counted: BTreeMap<&ClusterId, Account> = BTreeMap::new();
    for reservation in ledger.reservations(None) {
        let id = reservation.id;
        for side in reservation.sides() {
            let account = counted.entry(side).or_default();
            account.changes.insert((reservation.changed, id));
            let lends = reservation.holding().is_some_and(|grant| grant.provider == *side);
            let borrows = reservation.requester == *side && !reservation.phase().is_terminal();
            if !lends && !borrows {
                account.over.insert(id);
            }
            for peer in reservation.sides().filter(|peer| *peer != side) {
                let count = account.peers.entry(peer.clone()).or_default();
                *count = count.saturating_add(1);
            }
        }
        if !reservation.phase().is_terminal() {
            let requester = counted.entry(&reservation.requester).or_default();
            requester.borrowing.insert(id);
            let waits = u32::from(matches!(reservation.state, State::Pending { .. }));
            requester.waiting = requester.waiting.saturating_add(waits);
        }
        let Some(grant) = reservation.holding() else { continue };
        let provider = counted.entry(&grant.provider).or_default();
        provider.lending.insert(id);
        add(&mut provider.lent, &grant.held, found);
        let requester = counted.entry(&reservation.requester).or_default();
        add(&mut requester.borrowed, &grant.held, found);
    }
    compare("account", counted, ledger.accounts().map(|(k, v)| (k, v.clone())).collect(), found);
    for (_, account) in ledger.accounts() {
        let by_name: BTreeSet<_> = account.changes.iter().map(|(_, id)| *id).collect();
        let listed: Vec<_> = account.remembered(ReservationId::FIRST).collect();
        compare("remembered", by_name.into_iter().collect(), listed, found);
    }
}

fn add(sum: &mut Resources, more: &Resources, found: &mut Vec<Violation>) {
    match sum.checked_add(more) {
        Ok(total) => *sum = total,
        Err(error) => found.push(violation("sum-overflows", format!("{error}"))),
    }
}

/// Deadlines, waiting and ended reservations, counted from zero.
fn check_queues(ledger: &Ledger, found: &mut Vec<Violation>) {
    let far = crate::time::Time::from_millis(u64::MAX);
    let all = || ledger.reservations(None);
    let due: BTreeSet<_> = all().filter(|r| r.deadline().is_some()).map(|r| r.id).collect();
    compare("deadlines", due, ledger.due(far).map(|r| r.id).collect(), found);
    let waits = |r: &&Reservation| matches!(r.state, State::Pending { .. });
    let waiting: BTreeSet<_> = all().filter(waits).map(|r| r.id).collect();
    compare("waiting", waiting, ledger.waiting(None).map(|(place, _)| place.2).collect(), found);
    for phase in Phase::ALL {
        let counted = all().filter(|r| r.phase() == phase).count();
        compare(
            "phases",
            counted,
            usize::try_from(ledger.count(phase)).unwrap_or(usize::MAX),
            found,
        );
    }
    let over = |r: &&Reservation| r.phase().is_terminal();
    let ended: BTreeSet<_> = all().filter(over).map(|r| r.id).collect();
    compare("ended", ended, ledger.ended_before(far).collect(), found);
}

fn compare<T: PartialEq + Debug>(
    rule: &'static str,
    counted: T,
    kept: T,
    found: &mut Vec<Violation>,
) {
    if counted != kept {
        found.push(violation(rule, format!("counted {counted:?}, kept {kept:?}")));
    }
}

/// What follows from ledger and market together, counted from zero; the ledger's own checks first.
pub fn check_books(books: &Books) -> Vec<Violation> {
    let (mut found, mut labels) = (check(books.ledger()), Labels::default());
    for (cluster, entry) in books.market().entries() {
        compare("overlap", books.overlap_from_zero(cluster), books.overlap(cluster), &mut found);
        if let Some(row) = books.index().row(cluster) {
            compare("indexed-room", books.room(cluster), row.room.clone(), &mut found);
            compare("indexed-note", books.note(&books.lender(entry)), row.note, &mut found);
        } else {
            found.push(violation("not-indexed", format!("{cluster}")));
        }
        labels.replace(cluster, None, &entry.advertisement.labels);
    }
    compare("labels", &labels, books.labels(), &mut found);
    found
}

/// Was capacity taken only where it was free, and does it come back only when it is safe? Looks at an
/// event before it is applied.
pub fn judge(ledger: &Ledger, at: Stamp, event: &Event) -> Option<Violation> {
    match event {
        Event::Reserved { id, requester, provider, ask, basis, .. } => {
            if requester == provider {
                return Some(violation("lends-to-itself", format!("{id} on {provider}")));
            }
            judge_grant(ledger, provider)
                .or_else(|| judge_taking(ledger, at, provider, &ask.resources, basis))
        }
        Event::Granted { id, provider, amounts, basis, .. } => {
            let requester = ledger.reservation(*id).map(|reservation| &reservation.requester);
            if requester == Some(provider) {
                return Some(violation("lends-to-itself", format!("{id} on {provider}")));
            }
            judge_grant(ledger, provider)
                .or_else(|| judge_taking(ledger, at, provider, amounts, basis))
        }
        Event::Resized { id, amounts, basis } => {
            let grant = ledger.reservation(*id).and_then(Reservation::holding)?;
            let growth = amounts.minus_floor(&grant.held);
            if growth.is_zero() {
                return None;
            }
            judge_taking(ledger, at, &grant.provider, &growth, basis)
        }
        Event::Ended { id, confirmation, .. } => {
            judge_return(ledger, ledger.reservation(*id)?, *confirmation)
        }
        _ => None,
    }
}

/// Does capacity come back only as its provider's word, silence or loss allows? (That an agent is
/// too old to confirm is known to the market alone, so `Unconfirmed` is believed.)
fn judge_return(
    ledger: &Ledger,
    reservation: &Reservation,
    confirmation: Confirmation,
) -> Option<Violation> {
    let confirmed = matches!(&reservation.state, State::Releasing(grant, _)
        if grant.acknowledged == grant.generation);
    let standing = || ledger.standing(&reservation.grant()?.provider);
    let safe = match confirmation {
        Confirmation::Confirmed => confirmed,
        Confirmation::NothingHeld => reservation.holding().is_none(),
        Confirmation::ProviderLost => standing().is_some_and(|standing| standing.lost.is_some()),
        Confirmation::Unconfirmed => true,
    };
    (!safe).then(|| violation("returns-unconfirmed", format!("{confirmation:?}: {reservation:?}")))
}

/// Can its provider report on one more? What grows is no further grant.
fn judge_grant(ledger: &Ledger, provider: &ClusterId) -> Option<Violation> {
    let lending = ledger.account(provider).map_or(0, |account| account.lending.len());
    let full = lending >= Advertisement::GRANTS_MAX;
    full.then(|| violation("more-grants-than-can-be-reported", format!("{lending} on {provider}")))
}

fn judge_taking(
    ledger: &Ledger,
    at: Stamp,
    provider: &ClusterId,
    more: &Resources,
    basis: &Basis,
) -> Option<Violation> {
    let (none, account) = (Resources::default(), ledger.account(provider));
    let held = account.map_or(&none, |account| &account.lent);
    let age = at.time.since(basis.received_at);
    let standing = ledger.standing(provider);
    let rules = [
        ("takes-more-than-free", more.fits_in(&basis.room(held))),
        ("provider-overcommitted", planted(Bug::LendsShrunk) || basis.shortage(held).is_zero()),
        ("covers-more-than-held", basis.covered.fits_in(held)),
        ("advertisement-too-old", age < basis.suspect_after),
        ("provider-cordoned", standing.is_none_or(|standing| standing.cordon.is_none())),
        ("provider-lost", standing.is_none_or(|standing| standing.lost.is_none())),
        ("provider-must-report", !ledger.awaits_report(provider)),
        ("provider-revoked", !ledger.is_revoked(provider)),
        ("sum-overflows", held.checked_add(more).is_ok()),
        // Of what is not taken now, more may be lent than a later cap allows.
        ("above-cap", standing.is_none_or(|s| s.cap.room(more, held) == *more)),
    ];
    let broken = rules.into_iter().find(|(_, holds)| !holds);
    broken.map(|(rule, _)| {
        violation(rule, format!("{more:?} on {provider} holding {held:?}, {basis:?}"))
    })
}
