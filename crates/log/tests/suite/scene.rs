//! Logs with something in them.

use std::path::Path;

use sublet_core::event::{Basis, Event, Note};
use sublet_core::id::{ClusterId, Key, ReservationId, Revision};
use sublet_core::reservation::{Actor, Ask, Confirmation, Reason};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::snapshot::{self, Loaded};
use sublet_log::{Body, Head, Log, Record, Writer, dump};

pub(crate) const WRITER: Writer = Writer(0xabc);
/// Later than every record.
pub(crate) const FOREVER: Time = Time::from_millis(u64::MAX);

pub(crate) fn cluster(number: u64) -> ClusterId {
    format!("c{number}").parse().unwrap()
}

pub(crate) fn note(why: &str) -> Note {
    Note { by: Actor::Operator("anna".into()), why: why.into() }
}

/// What a provider with plenty of room said a second ago.
pub(crate) fn basis(now: Time) -> Basis {
    Basis {
        received_at: Time::from_millis(now.as_millis().saturating_sub(1000)),
        suspect_after: Span::from_secs(90),
        allocatable: Resources::new(1_000_000, 1 << 50),
        ..Basis::default()
    }
}

/// A request of cluster 1 and its grant on cluster 2.
pub(crate) fn reservation(number: u64, now: Time) -> (ReservationId, [Event; 2]) {
    let key: Key = format!("key-{number}").parse().unwrap();
    let id = ReservationId::derive(&cluster(1), &key, Revision(number));
    let resources = Resources::new(100 + number % 7, 1 << 20);
    let ask = Ask { resources: resources.clone(), ..Ask::default() };
    let requested =
        Event::Requested { id, requester: cluster(1), key, ask, priority: 0, until: now };
    let granted = Event::Granted {
        id,
        provider: cluster(2),
        amounts: resources,
        expires_at: None,
        activate_by: None,
        confirms: true,
        basis: basis(now),
    };
    (id, [requested, granted])
}

/// Record number `n` of a legal history: a reservation that is made, used, and half the time ended.
pub(crate) fn record(after: &Head, number: u64) -> Record {
    let now = Time::from_millis(after.time.as_millis() + 1000);
    let (id, events) = reservation(number, now);
    let mut events = events.to_vec();
    events.push(Event::Activated { id });
    if number.is_multiple_of(2) {
        let (reason, by) = (Reason::ReleasedByRequester, Actor::Cluster(cluster(1)));
        let confirmation = Confirmation::Unconfirmed;
        events.push(Event::Ending { id, reason, by: by.clone(), hindrance: None });
        events.push(Event::Ended { id, reason, by, confirmation, hindrance: None });
    }
    // Some records are longer than a page, as batches are.
    for extra in 0..number % 5 * 3 {
        events.extend(reservation(number * 1_000_000 + extra, now).1);
    }
    seal(after, now, events)
}

pub(crate) fn seal(after: &Head, now: Time, events: Vec<Event>) -> Record {
    Record::seal(after, WRITER, now, Body::of(events).unwrap()).unwrap()
}

/// Appends `count` records of the history.
pub(crate) fn grow(log: &dyn Log, count: u64) -> Vec<Record> {
    let mut head = log.head().unwrap();
    let first = head.revision.0 + 1;
    let append = |number| {
        let record = record(&head, number);
        log.append(&record).unwrap();
        head = record.head();
        record
    };
    (first..first + count).map(append).collect()
}

/// Everything that can be asked of a log.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    pub(crate) head: Head,
    pub(crate) records: Vec<Record>,
    pub(crate) loaded: Loaded,
}

pub(crate) fn contents(log: &dyn Log) -> Contents {
    let mut records: Vec<Record> = Vec::new();
    let mut next = dump::oldest(log).unwrap();
    loop {
        let more = log.read(next, 1000).unwrap();
        let Some(last) = more.last() else { break };
        next = last.revision().next();
        records.extend(more);
    }
    Contents { head: log.head().unwrap(), records, loaded: snapshot::load(log).unwrap() }
}

/// A scratch folder in memory where there is one: these tests sync a lot, and prove it elsewhere.
pub(crate) fn quick_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory } else { &std::env::temp_dir() };
    tempfile::tempdir_in(place).unwrap()
}
