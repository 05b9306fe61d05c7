//! From a batch to a durable record, as a plain function over the log.
//!
//! A lost answer is the hard case: the record may be there or not. The same record is offered
//! again; if its place is taken, we look who took it, and when it was ourselves, all is well.

use sublet_core::bugs::{Bug, planted};
use sublet_core::ledger::Stamp;
use sublet_log::{Admission, AppendError, Cause, Head, Log, ReadError, Record, Writer, record};

use super::Batch;

/// How many of others' records are read at once.
const READ_LIMIT: usize = 1024;

/// What became of a batch.
#[derive(Debug)]
pub enum Commit {
    /// It is durable, and so is everything before it; others' records may follow it already.
    Done {
        /// What others wrote after it.
        then: Vec<Record>,
    },
    /// Others wrote these in its place.
    Overtaken(Vec<Record>),
    /// Not known yet: call [`Committer::retry`] soon.
    Unknown(Cause),
    /// The log cannot be written by this process any more.
    Dead(Dead),
}

/// Why nothing is acknowledged any more.
#[derive(Debug, thiserror::Error)]
pub enum Dead {
    /// The log says so.
    #[error("the log failed")]
    Log(#[from] AppendError),
    /// What others wrote cannot be read.
    #[error("the log cannot be read")]
    Read(#[from] ReadError),
    /// The batch is not one that a record can hold.
    #[error("the batch cannot be written")]
    Seal(#[from] record::Error),
}

/// Who appends, and after what.
#[derive(Debug)]
pub struct Committer {
    writer: Writer,
    head: Head,
    offered: Option<Record>,
}

impl Committer {
    /// A committer that goes on after `head`.
    pub fn new(writer: Writer, head: Head) -> Self {
        Self { writer, head, offered: None }
    }

    /// The last record that is known.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Offers a batch to the log.
    pub fn commit(&mut self, log: &dyn Log, batch: Batch) -> Commit {
        let Stamp { revision, time } = batch.stamp;
        if revision != self.head.revision.next() {
            // We have read on since it was planned: it was planned on what is no longer true.
            return Commit::Overtaken(vec![]);
        }
        if batch.body.events().is_empty() {
            return self.confirm(log);
        }
        match Record::seal(&self.head, self.writer, time, batch.body) {
            Ok(record) => {
                self.offered = Some(record);
                self.retry(log)
            }
            Err(error) => Commit::Dead(error.into()),
        }
    }

    /// Nothing is to be written: makes sure that nobody wrote since.
    fn confirm(&mut self, log: &dyn Log) -> Commit {
        match self.catch_up(log) {
            Ok(records) if records.is_empty() => Commit::Done { then: vec![] },
            Ok(records) => Commit::Overtaken(records),
            Err(ReadError::Unavailable(cause)) => Commit::Unknown(cause),
            Err(error) => Commit::Dead(error.into()),
        }
    }

    /// Offers the same record again.
    pub fn retry(&mut self, log: &dyn Log) -> Commit {
        let Some(record) = self.offered.clone() else { return self.confirm(log) };
        match log.append(&record) {
            Ok(()) => {
                self.head = record.head();
                self.offered = None;
                Commit::Done { then: vec![] }
            }
            Err(AppendError::Unknown(cause)) => Commit::Unknown(cause),
            Err(AppendError::Fatal(cause)) if planted(Bug::RetriesFatal) => Commit::Unknown(cause),
            Err(AppendError::Taken { .. }) => self.look(log, &record),
            Err(error @ (AppendError::Refused(_) | AppendError::Fatal(_))) => {
                Commit::Dead(error.into())
            }
        }
    }

    /// What others wrote since; nothing when nobody did.
    pub fn catch_up(&mut self, log: &dyn Log) -> Result<Vec<Record>, ReadError> {
        let records = log.read(self.head.revision.next(), READ_LIMIT)?;
        if let Some(first) = records.first() {
            self.check_follows(first)?;
        }
        if let Some(last) = records.last() {
            self.head = last.head();
        }
        Ok(records)
    }

    /// A home checks what it reads against itself, not against what we have read of it before: one
    /// that was replaced under us by another history must not be folded into ours.
    fn check_follows(&self, first: &Record) -> Result<(), ReadError> {
        let corrupt =
            |why: Cause| ReadError::corrupt(format!("revision {}", first.revision()), why);
        match self.head.admit(first) {
            Ok(Admission::Next) => Ok(()),
            Ok(Admission::Behind) => Err(corrupt("it repeats an earlier one".into())),
            Err(error) => Err(corrupt(error.into())),
        }
    }

    /// The place is taken: by whom?
    fn look(&mut self, log: &dyn Log, record: &Record) -> Commit {
        let mut records = match self.catch_up(log) {
            Ok(records) => records,
            Err(ReadError::Unavailable(cause)) => return Commit::Unknown(cause),
            Err(error) => return Commit::Dead(error.into()),
        };
        self.offered = None;
        if records.first() == Some(record) || planted(Bug::RevisionUnchecked) {
            Commit::Done { then: records.split_off(1) }
        } else {
            Commit::Overtaken(records)
        }
    }
}

#[cfg(test)]
mod tests {
    use sublet_core::event::{Event, Note};
    use sublet_core::id::Revision;
    use sublet_core::reservation::Actor;
    use sublet_core::time::Time;
    use sublet_log::{Body, Memory};

    use super::*;

    fn batch(revision: u64, events: impl IntoIterator<Item = Event>) -> Batch {
        let stamp = Stamp { revision: Revision(revision), time: Time::from_millis(1) };
        Batch { stamp, body: Body::of(events).unwrap() }
    }

    #[test]
    fn an_answer_without_events_stands_only_when_nobody_wrote_since_it_was_decided() {
        let log = Memory::new();
        let mut one = Committer::new(Writer(1), Head::default());
        let mut other = Committer::new(Writer(2), Head::default());
        let note = Note { by: Actor::Broker, why: String::new() };
        let written = one.commit(&log, batch(1, [Event::ClockConfirmed { note }]));
        assert!(matches!(written, Commit::Done { .. }));
        let early = other.commit(&log, batch(1, []));
        assert!(matches!(early, Commit::Overtaken(records) if records.len() == 1));
        let now = other.commit(&log, batch(2, []));
        assert!(matches!(now, Commit::Done { then } if then.is_empty()));
        assert_eq!(log.head().unwrap().revision, Revision(1));
        // What was planned before it read on is not even offered.
        let note = Note { by: Actor::Broker, why: String::new() };
        let late = other.commit(&log, batch(1, [Event::ClockConfirmed { note }]));
        assert!(matches!(late, Commit::Overtaken(records) if records.is_empty()));
        assert_eq!(log.head().unwrap().revision, Revision(1));
    }

    #[test]
    fn a_log_that_goes_on_from_another_history_is_not_followed() {
        let event = |why: &str| {
            let note = Note { by: Actor::Broker, why: why.into() };
            Event::ClockConfirmed { note }
        };
        let mut ours = Committer::new(Writer(1), Head::default());
        assert!(matches!(
            ours.commit(&Memory::new(), batch(1, [event("ours")])),
            Commit::Done { .. }
        ));
        let replaced = Memory::new();
        let mut other = Committer::new(Writer(2), Head::default());
        for (revision, why) in [(1, "another"), (2, "after it")] {
            let done = other.commit(&replaced, batch(revision, [event(why)]));
            assert!(matches!(done, Commit::Done { .. }));
        }
        let read = ours.catch_up(&replaced);
        assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{read:?}");
        let dead = ours.commit(&replaced, batch(2, []));
        assert!(matches!(dead, Commit::Dead(Dead::Read(_))), "{dead:?}");
    }
}
