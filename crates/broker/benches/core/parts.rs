//! What the steps of one reservation cost, each alone.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context, Result};
use sublet_broker::engine::{Engine, Submitted, Work};
use sublet_core::books::Books;
use sublet_core::id::Revision;
use sublet_core::invariants;
use sublet_core::ledger::Stamp;
use sublet_core::plan::{self, Plan};
use sublet_core::policy::Policy;
use sublet_core::time::Time;
use sublet_log::{Checksum, Head, Record, Snapshot, Writer};

use crate::clock::{Rounds, timed};
use crate::report::{Report, Table, time};
use crate::{fleet, history};

const NOW: Time = Time::from_millis(1_800_000_000_000);
const BATCH: u64 = 64;

fn books() -> Books {
    let mut books = Books::default();
    for number in 0..1000 {
        books.hear(fleet::vast(number), NOW, &Policy::default().silence);
    }
    books
}

pub(crate) fn run(report: &mut Report, quick: bool) -> Result<()> {
    let rounds = Rounds::new(quick);
    let mut table = Table::new("Parts of one reservation, 1000 clusters", &["step", "time"]);
    planning(&mut table, rounds)?;
    writing(&mut table, rounds)?;
    stepping(&mut table, rounds);
    snapshots(&mut table)?;
    report.add(table);
    Ok(())
}

fn planning(table: &mut Table, rounds: Rounds) -> Result<()> {
    let (mut books, policy) = (books(), Policy::default());
    let at = Stamp { revision: Revision(1), time: NOW };
    let mut number = 0;
    let command = rounds.nanos(|| {
        number += 1;
        fleet::reserve(number % 64, number)
    });
    table.row(["making a command (the callers' share)".into(), time(command)]);
    let command = fleet::reserve(7, 0);
    let planned = rounds.nanos(|| plan::plan(&books, black_box(&command), &policy, at));
    table.row(["plan: decide, make the event".into(), time(planned)]);
    let Plan { events, .. } = plan::plan(&books, &command, &policy, at)?;
    let applied = rounds.nanos(|| -> Result<()> {
        let applied = books.apply(at, &events[0])?;
        Ok(books.revert(applied)?)
    });
    table.row(["apply the event, and take it back".into(), time(applied)]);
    let mut grown = books.clone();
    let mut number = 0;
    let planned = rounds.nanos(|| -> Result<()> {
        number += 1;
        let plan = plan::plan(&grown, &fleet::reserve(number % 64, number), &policy, at)?;
        for event in &plan.events {
            drop(black_box(invariants::judge(grown.ledger(), at, event)));
            drop(black_box(grown.apply(at, event)?));
        }
        Ok(())
    });
    table.row(["plan, judge and apply, command included".into(), time(planned)]);
    Ok(())
}

fn writing(table: &mut Table, rounds: Rounds) -> Result<()> {
    let event = history::event(1);
    let encoded = rounds.nanos(|| serde_json::to_string(black_box(&event)).map(|text| text.len()));
    table.row(["encode the event".into(), time(encoded)]);
    let text = serde_json::to_string(&event)?;
    let decoded = rounds
        .nanos(|| serde_json::from_str::<sublet_core::event::Event>(black_box(&text)).is_ok());
    table.row(["decode the event".into(), time(decoded)]);
    let body = history::body(0..BATCH)?;
    let copied = rounds.nanos(|| body.clone());
    let sealed = rounds.nanos(|| Record::seal(&Head::default(), Writer(1), NOW, body.clone()));
    table.row([format!("seal a record of {BATCH}, for each"), time((sealed - copied) / 64.0)]);
    let bytes = vec![7; 1 << 20];
    let hashed = rounds.nanos(|| Checksum::of(black_box(&bytes)));
    table.row(["sha-256 of 1 MiB".into(), time(hashed)]);
    Ok(())
}

/// The engine's own step, without threads and without a log.
fn stepping(table: &mut Table, rounds: Rounds) {
    let mut engine = Engine::new(books(), Arc::new(Policy::default()));
    let mut number = 0;
    let step = rounds.nanos(|| -> Result<usize> {
        let work = (0..BATCH).map(|caller| {
            let work = Work::Command(fleet::reserve(caller, number));
            Submitted { work, ticket: () }
        });
        engine.step(work.collect::<Vec<_>>(), NOW)?;
        while engine.is_behind() {
            engine.step([], NOW)?;
        }
        number += 1;
        let (batch, _) = engine.close();
        drop(batch.context("there is something to write")?);
        Ok(engine.committed().len())
    });
    let what = format!("engine's step with {BATCH} commands, for each, command included");
    table.row([what, time(step / 64.0)]);
}

fn snapshots(table: &mut Table) -> Result<()> {
    let ledger = history::ledger(0..100_000)?;
    let head = Head { revision: ledger.stamp().revision, time: NOW, checksum: Checksum::NONE };
    let (made, snapshot) = timed(|| Snapshot::of(head, &ledger));
    let snapshot = snapshot?;
    table.row(["snapshot of 10⁵ reservations: encode".into(), time(made.as_secs_f64() * 1e9)]);
    let (read, back) = timed(|| snapshot.ledger());
    drop(back?);
    table.row(["snapshot of 10⁵ reservations: decode".into(), time(read.as_secs_f64() * 1e9)]);
    let megabytes = snapshot.text().len() / 1_000_000;
    table.row(["snapshot of 10⁵ reservations: size".into(), format!("{megabytes} MB")]);
    Ok(())
}
