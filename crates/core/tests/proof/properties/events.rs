//! Random events, most of them illegal: what a log from a broken or hostile broker could hold.

use proptest::prelude::*;
use proptest::sample::select;
use sublet_core::event::{Basis, Event, Note, Subject};
use sublet_core::id::{ClusterId, Generation, Key, ReservationId, Revision};
use sublet_core::ledger::Stamp;
use sublet_core::reservation::{Actor, Ask, Confirmation, Reason};
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Time;

/// Few enough that events meet.
pub(crate) fn id() -> impl Strategy<Value = ReservationId> {
    (0..4u64).prop_map(|n| {
        ReservationId::derive(&"x".parse().unwrap(), &"made-up".parse().unwrap(), Revision(n))
    })
}

pub(crate) fn cluster() -> impl Strategy<Value = ClusterId> {
    select(vec!["c1", "c2", "c3"]).prop_map(|name| name.parse().unwrap())
}

fn key() -> impl Strategy<Value = Key> {
    select(vec!["a", "b"]).prop_map(|name| name.parse().unwrap())
}

pub(crate) fn amounts() -> impl Strategy<Value = Resources> {
    let amount = || prop_oneof![8 => 0..9u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX / 2)];
    let fpga: Kind = "example.com/fpga".parse().unwrap();
    (amount(), amount(), 0..2u64, 0..2u64).prop_map(move |(cpu, memory, gpu, other)| {
        let base = Resources::new(cpu, memory).with(Kind::Gpu, gpu).unwrap();
        base.with(fpga.clone(), other).unwrap()
    })
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![9 => 0..50u64, 1 => Just(u64::MAX)].prop_map(Time::from_millis)
}

fn generation() -> impl Strategy<Value = Generation> {
    prop_oneof![9 => 0..5u32, 1 => Just(u32::MAX)].prop_map(Generation)
}

fn reason() -> impl Strategy<Value = Reason> {
    use Reason::{Drained, Expired, PeeringFailed, ProviderLost, ReleasedByRequester, WaitOver};
    select(vec![ReleasedByRequester, Expired, Drained, ProviderLost, PeeringFailed, WaitOver])
}

fn confirmation() -> impl Strategy<Value = Confirmation> {
    use Confirmation::{Confirmed, NothingHeld, ProviderLost, Unconfirmed};
    select(vec![Confirmed, Unconfirmed, ProviderLost, NothingHeld])
}

pub(crate) fn stamp() -> impl Strategy<Value = Stamp> {
    (0..6u64, 0..6u64)
        .prop_map(|(r, t)| Stamp { revision: Revision(r), time: Time::from_millis(t) })
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![6 => life(), 2 => birth_and_death(), 1 => operation()]
}

fn birth_and_death() -> impl Strategy<Value = Event> {
    let some = |cpu| Ask { resources: Resources::new(cpu, cpu), ..Ask::default() };
    let tombstones = proptest::collection::vec((cluster(), key()), 0..3);
    prop_oneof![
        4 => (id(), cluster(), key(), 1..9u64, 0..3i32, time()).prop_map(
            move |(id, requester, key, cpu, priority, until)| {
                Event::Requested { id, requester, key, ask: some(cpu), priority, until }
            }
        ),
        4 => reserved(),
        2 => (id(), cluster(), cluster(), amounts(), generation(), proptest::option::of(time())).prop_map(
            |(id, requester, provider, amounts, generation, expires_at)| {
                Event::Adopted { id, requester, provider, amounts, generation, expires_at }
            }
        ),
        1 => (cluster(), key()).prop_map(|(requester, key)| Event::KeyReleased { requester, key }),
        2 => (proptest::collection::vec(id(), 0..3), tombstones).prop_map(
            |(reservations, tombstones)| Event::Forgotten { reservations, tombstones }
        ),
    ]
}

pub(crate) fn reserved() -> impl Strategy<Value = Event> {
    let times = (proptest::option::of(time()), proptest::option::of(time()));
    (id(), cluster(), cluster(), key(), 1..9u64, times, any::<bool>()).prop_map(
        |(id, requester, provider, key, cpu, (expires_at, activate_by), confirms)| {
            let ask = Ask { resources: Resources::new(cpu, cpu), ..Ask::default() };
            let (priority, basis) = (0, Basis::default());
            Event::Reserved {
                id,
                requester,
                key,
                ask,
                priority,
                provider,
                expires_at,
                activate_by,
                confirms,
                basis,
            }
        },
    )
}

fn life() -> impl Strategy<Value = Event> {
    let by = Actor::Broker;
    let ended = by.clone();
    let maybe = || proptest::option::of(time());
    prop_oneof![
        4 => (id(), cluster(), amounts(), maybe(), maybe(), any::<bool>()).prop_map(
            |(id, provider, amounts, expires_at, activate_by, confirms)| {
                let basis = Basis::default();
                Event::Granted { id, provider, amounts, expires_at, activate_by, confirms, basis }
            }
        ),
        1 => id().prop_map(|id| Event::Activated { id }),
        1 => (id(), maybe()).prop_map(|(id, expires_at)| Event::Renewed { id, expires_at }),
        2 => (id(), amounts())
            .prop_map(|(id, amounts)| Event::Resized { id, amounts, basis: Basis::default() }),
        2 => (id(), generation()).prop_map(|(id, generation)| Event::Acknowledged { id, generation }),
        1 => (id(), reason()).prop_map(move |(id, reason)| Event::Ending { id, reason, by: by.clone(), hindrance: None }),
        2 => (id(), reason(), confirmation()).prop_map(move |(id, reason, confirmation)| {
            Event::Ended { id, reason, by: ended.clone(), confirmation, hindrance: None }
        }),
    ]
}

fn operation() -> impl Strategy<Value = Event> {
    let note = Note { by: Actor::Broker, why: String::new() };
    (cluster(), amounts(), 0..9u8).prop_map(move |(cluster, amounts, what)| {
        let note = note.clone();
        let subject = Subject::Cluster(cluster.clone());
        match what {
            0 => Event::Cordoned { cluster, drain: amounts.gpu > 0, note },
            1 => Event::Uncordoned { cluster, note },
            2 => Event::Capped { cluster, limits: Limits(amounts.iter().collect()), note },
            3 => Event::Revoked { subject, note },
            4 => Event::Reinstated { subject, note },
            5 => Event::Lost { cluster, note },
            6 => Event::Returned { cluster },
            7 => Event::Restored { note },
            _ => Event::Reconciled { cluster, note },
        }
    })
}
