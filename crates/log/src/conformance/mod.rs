//! The contract of [`Log`] as checks: one suite over all homes.
//!
//! A home plugs in by implementing [`Site`] and calling [`run`]. The suite is written for a home
//! where an append may succeed although its caller saw an error, so it never takes an error for
//! proof that nothing was written: it appends the same record again until it knows.

mod append;
mod read;
mod keep;

use sublet_core::event::{Event, Note};
use sublet_core::id::Revision;
use sublet_core::reservation::Actor;
use sublet_core::time::Time;

use crate::{AppendError, Body, Cause, Head, Log, Record, Writer};

/// The place of one log.
pub trait Site {
    /// A handle on it. What was appended through earlier handles is there.
    fn open(&self) -> Result<Box<dyn Log>, Cause>;

    /// Whether several handles may be open at the same time.
    fn is_shared(&self) -> bool;
}

/// Makes a new site with an empty log for each check.
pub type NewSite<'a> = &'a dyn Fn() -> Result<Box<dyn Site>, Cause>;

/// One check; its name is the sentence that it proves.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is true when it passes.
    pub name: &'static str,
    check: fn(&dyn Site) -> Result<(), Cause>,
}

/// A home broke its contract.
#[derive(Debug, thiserror::Error)]
#[error("this is not true: {case}")]
pub struct Failure {
    /// The sentence that is not true.
    pub case: &'static str,
    /// What was seen instead.
    #[source]
    pub source: Cause,
}

/// All checks.
pub fn cases() -> impl Iterator<Item = Case> {
    [append::CASES, read::CASES, keep::CASES].into_iter().flatten().copied()
}

/// Runs all checks, each on a new site, and reports those that failed.
pub fn run(new_site: NewSite<'_>) -> Vec<Failure> {
    let check = |case: Case| {
        let verdict = new_site().and_then(|site| (case.check)(&*site));
        verdict.err().map(|source| Failure { case: case.name, source })
    };
    cases().filter_map(check).collect()
}

/// How often an append whose outcome is not known is tried again.
const SETTLE_ATTEMPTS: usize = 100;

/// Appends until the outcome is known, as every caller must.
fn settle(log: &dyn Log, record: &Record) -> Result<(), AppendError> {
    let mut last = log.append(record);
    for _ in 0..SETTLE_ATTEMPTS {
        match last {
            Err(AppendError::Unknown(_)) => last = log.append(record),
            known => return known,
        }
    }
    last
}

const WRITER: Writer = Writer(0x51);

/// An event that is legal on every ledger; `why` makes it unlike others.
fn event(why: impl Into<String>) -> Result<Event, Cause> {
    Ok(Event::Cordoned {
        cluster: "c1".parse()?,
        drain: false,
        note: Note { by: Actor::Broker, why: why.into() },
    })
}

/// The record after `head`, one second later.
fn next(head: &Head, writer: Writer, why: &str) -> Result<Record, Cause> {
    let time = Time::from_millis(head.time.as_millis() + 1000);
    Ok(Record::seal(head, writer, time, Body::of([event(why)?])?)?)
}

/// Appends `count` records after the head and returns them.
fn fill(log: &dyn Log, count: usize) -> Result<Vec<Record>, Cause> {
    let mut head = log.head()?;
    let mut records = Vec::new();
    for _ in 0..count {
        let record = next(&head, WRITER, "filler")?;
        settle(log, &record)?;
        head = record.head();
        records.push(record);
    }
    Ok(records)
}

/// Reads everything from `from` on, however few come at a time.
fn read_all(log: &dyn Log, from: Revision) -> Result<Vec<Record>, Cause> {
    let mut all: Vec<Record> = Vec::new();
    loop {
        let from = all.last().map_or(from, |last| last.revision().next());
        let more = log.read(from, 7)?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

/// Says what was expected and what was seen.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, expected: T) -> Result<(), Cause> {
    if seen == expected {
        Ok(())
    } else {
        Err(format!("{what}: saw {seen:?}, expected {expected:?}").into())
    }
}

/// Fails with `what` unless `truth`.
fn ensure(truth: bool, what: impl Into<String>) -> Result<(), Cause> {
    if truth { Ok(()) } else { Err(what.into().into()) }
}
