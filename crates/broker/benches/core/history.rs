//! Records of live reservations, made without planning, to fill a log or a ledger with.

use std::ops::Range;

use anyhow::Result;
use sublet_core::event::{Basis, Event};
use sublet_core::id::{ReservationId, Revision};
use sublet_core::ledger::{Ledger, Stamp};
use sublet_core::plan::Command;
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::{Body, Head, Log, Record, Writer};
use tempfile::TempDir;

use crate::fleet;

/// Clusters that lend and borrow.
const CLUSTERS: u64 = 1000;
/// Reservations in one record: as under heavy load, and few enough records to be written quickly.
const BATCH: u64 = 256;
const NOW: Time = Time::from_millis(1_800_000_000_000);

/// A folder on the disk that the build is on, which is no memory in disguise.
pub(crate) fn scratch() -> Result<TempDir> {
    Ok(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?)
}

/// What happened when reservation `number` was made.
pub(crate) fn event(number: u64) -> Event {
    let caller = number % CLUSTERS;
    let Command::Reserve { requester, key, ask, .. } = fleet::reserve(caller, number) else {
        unreachable!("it is a reservation");
    };
    let id = ReservationId::derive(&requester, &key, Revision(number / BATCH));
    let said = fleet::vast((number * 7 + 1) % CLUSTERS);
    Event::Reserved {
        id,
        provider: if said.cluster == requester { fleet::name(CLUSTERS) } else { said.cluster },
        requester,
        key,
        ask,
        priority: 0,
        expires_at: NOW.checked_add(Span::from_secs(3600)),
        activate_by: NOW.checked_add(Span::from_secs(900)),
        confirms: true,
        basis: Basis {
            number: said.number,
            received_at: NOW,
            suspect_after: Span::from_secs(90),
            allocatable: said.allocatable,
            allocated: said.allocated,
            covered: Resources::default(),
            ghosts: Resources::default(),
            unreported: false,
        },
    }
}

/// The body of a record with these reservations.
pub(crate) fn body(numbers: Range<u64>) -> Result<Body> {
    Ok(Body::of(numbers.map(event))?)
}

/// Appends these reservations to a log.
pub(crate) fn write(log: &dyn Log, numbers: Range<u64>) -> Result<()> {
    let mut head = log.head()?;
    let mut from = numbers.start;
    while from < numbers.end {
        let to = (from + BATCH).min(numbers.end);
        let record = sealed(&head, from..to)?;
        log.append(&record)?;
        (head, from) = (record.head(), to);
    }
    Ok(())
}

/// A record with these reservations.
pub(crate) fn sealed(head: &Head, numbers: Range<u64>) -> Result<Record> {
    Ok(Record::seal(head, Writer(1), NOW, body(numbers)?)?)
}

/// A ledger with these reservations.
pub(crate) fn ledger(numbers: Range<u64>) -> Result<Ledger> {
    let mut ledger = Ledger::default();
    for number in numbers {
        let stamp = Stamp { revision: Revision(number / BATCH + 1), time: NOW };
        ledger.apply(stamp, &event(number))?;
    }
    Ok(ledger)
}
