//! What `append` promises.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use sublet_core::id::Revision;
use sublet_core::time::Time;

use super::{Case, Site, WRITER, ensure, event, fill, next, read_all, same, settle};
use crate::{AppendError, Body, Cause, Checksum, Head, Log, Record, Refusal, Writer, record};

pub(super) const CASES: &[Case] = &[
    Case { name: "an empty log stands at revision 0", check: empty },
    Case { name: "records come back in order and byte for byte", check: round_trip },
    Case { name: "each revision has exactly one winner, whoever tries", check: one_winner },
    Case { name: "who comes too late learns where the log is", check: taken },
    Case { name: "the same record again is harmless, also when others followed", check: again },
    Case {
        name: "a writer whose answer was lost finds its record by reading back",
        check: recognised,
    },
    Case { name: "a record beyond the next revision is refused and changes nothing", check: gap },
    Case {
        name: "a record that follows another one is refused and changes nothing",
        check: broken_chain,
    },
    Case {
        name: "a record older than the one before it is refused and changes nothing",
        check: backwards,
    },
    Case { name: "records up to the limit are kept, and beyond it there are none", check: sizes },
    Case { name: "a batch may hold no event, or a thousand", check: batches },
    Case { name: "what was appended is there when the log is opened again", check: reopened },
];

fn empty(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    same("head", log.head()?, Head::default())?;
    same("records", log.read(Revision(1), 10)?, vec![])
}

fn round_trip(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let records = fill(&*log, 20)?;
    same("records", read_all(&*log, Revision(1))?, records.clone())?;
    same("head", Some(log.head()?), records.last().map(Record::head))
}

/// Far more than a contender needs: one that uses them up can never win.
const ATTEMPTS_MAX: usize = 10_000;

/// What one contender was told is true.
type Acknowledged = Vec<(Revision, Checksum)>;

fn contend(log: &dyn Log, writer: Writer, wins: usize) -> Result<Acknowledged, Cause> {
    let mut acknowledged = Vec::new();
    for _ in 0..ATTEMPTS_MAX {
        if acknowledged.len() == wins {
            return Ok(acknowledged);
        }
        let record = next(&log.head()?, writer, "contender")?;
        match settle(log, &record) {
            Ok(()) => acknowledged.push((record.revision(), record.checksum())),
            Err(AppendError::Taken { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(format!("only {} wins after {ATTEMPTS_MAX} attempts", acknowledged.len()).into())
}

fn one_winner(site: &dyn Site) -> Result<(), Cause> {
    const CONTENDERS: u128 = 4;
    const WINS: usize = 25;
    let first: Arc<dyn Log> = site.open()?.into();
    let mut handles = Vec::new();
    for _ in 0..CONTENDERS {
        handles.push(if site.is_shared() { site.open()?.into() } else { Arc::clone(&first) });
    }
    let told: Vec<Result<Acknowledged, Cause>> = thread::scope(|scope| {
        let contenders: Vec<_> = (1..=CONTENDERS)
            .zip(&handles)
            .map(|(number, log)| scope.spawn(move || contend(&**log, Writer(number), WINS)))
            .collect();
        let joined = contenders.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|told| told.unwrap_or_else(|_| Err("a contender panicked".into()))).collect()
    });
    let mut winners = BTreeMap::new();
    for (revision, checksum) in told.into_iter().collect::<Result<Vec<_>, _>>()?.concat() {
        let other = winners.insert(revision, checksum);
        ensure(other.is_none(), format!("revision {revision} was won twice"))?;
    }
    let kept = read_all(&*first, Revision(1))?;
    let kept: Vec<_> = kept.iter().map(|r| (r.revision(), r.checksum())).collect();
    same("records", kept, winners.into_iter().collect())
}

fn taken(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let records = fill(&*log, 3)?;
    let late = next(&Head::default(), Writer(2), "late")?;
    match settle(&*log, &late) {
        Err(AppendError::Taken { head }) => same("head", head, log.head()?)?,
        other => return Err(format!("not told that it is taken: {other:?}").into()),
    }
    same("records", read_all(&*log, Revision(1))?, records)
}

fn again(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let records = fill(&*log, 3)?;
    for record in &records {
        settle(&*log, record)?;
    }
    same("records", read_all(&*log, Revision(1))?, records)
}

fn recognised(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let mut head = Head::default();
    for _ in 0..30 {
        let mine = next(&head, WRITER, "mine")?;
        // Whatever is answered, reading back tells what is true.
        let answer = log.append(&mine);
        let found = log.read(mine.revision(), 1)?;
        match (answer, found.first()) {
            (_, Some(found)) => same("record", found, &mine)?,
            (Err(AppendError::Unknown(_)), None) => settle(&*log, &mine)?,
            (answer, None) => return Err(format!("gone after {answer:?}").into()),
        }
        head = mine.head();
    }
    same("head", log.head()?, head)
}

fn refused(
    log: &dyn Log,
    record: &Record,
    is_expected: impl Fn(&Refusal) -> bool,
) -> Result<(), Cause> {
    let before = log.head()?;
    match settle(log, record) {
        Err(AppendError::Refused(why)) if is_expected(&why) => {}
        other => return Err(format!("not refused as it should be: {other:?}").into()),
    }
    same("head", log.head()?, before)?;
    fill(log, 1).map(|_| ())
}

fn gap(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let last = next(&log.head()?, WRITER, "not appended")?;
    let record = next(&last.head(), WRITER, "too far")?;
    refused(&*log, &record, |why| matches!(why, Refusal::Gap { .. }))
}

fn broken_chain(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 2)?;
    let head = Head { checksum: Checksum::of(b"another"), ..log.head()? };
    let record = next(&head, WRITER, "follows another")?;
    refused(&*log, &record, |why| matches!(why, Refusal::Chain { .. }))
}

fn backwards(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 2)?;
    let head = Head { time: Time::default(), ..log.head()? };
    let record = Record::seal(&head, WRITER, Time::default(), Body::of([event("early")?])?)?;
    refused(&*log, &record, |why| matches!(why, Refusal::Backwards { .. }))
}

fn sizes(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let empty = next(&log.head()?, WRITER, "")?.text().len();
    for size in [Record::BYTES_MAX - 1, Record::BYTES_MAX] {
        // The digits of revision and time stay as many as in the record that was measured.
        let record = next(&log.head()?, WRITER, &"x".repeat(size - empty))?;
        same("bytes", record.text().len(), size)?;
        settle(&*log, &record)?;
        same("record", log.read(record.revision(), 1)?, vec![record])?;
    }
    let why = "x".repeat(Record::BYTES_MAX + 1 - empty);
    let events = Body::of([event(why)?])?;
    let beyond = Record::seal(&log.head()?, WRITER, log.head()?.time, events);
    let too_large = matches!(beyond, Err(record::Error::TooLarge(_)));
    ensure(too_large, "a record beyond the limit was made")
}

fn batches(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    for count in [0, 1, 1000] {
        let head = log.head()?;
        let events: Result<Vec<_>, _> =
            (0..count).map(|n| event(format!("{n} \"\n\u{e9}"))).collect();
        let record = Record::seal(&head, WRITER, head.time, Body::of(events?)?)?;
        settle(&*log, &record)?;
        let found = log.read(record.revision(), 1)?;
        same("events", found.first().map(Record::events), Some(record.events()))?;
    }
    Ok(())
}

fn reopened(site: &dyn Site) -> Result<(), Cause> {
    let mut records = Vec::new();
    for _ in 0..3 {
        let log = site.open()?;
        records.extend(fill(&*log, 4)?);
        drop(log);
        let log = site.open()?;
        same("records", read_all(&*log, Revision(1))?, records.clone())?;
        same("head", Some(log.head()?), records.last().map(Record::head))?;
    }
    Ok(())
}
