//! Reservations per second through the running engine, beside plain appends of the same bytes.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use sublet_broker::engine::{self, Handle, Options};
use sublet_core::plan::Command;
use sublet_core::policy::Policy;
use sublet_log::snapshot::Loaded;
use sublet_log::{Embedded, Log, Memory, Writer};
use tokio::sync::oneshot;

use crate::callers::{self, Seen};
use crate::clock::median;
use crate::report::{Report, Table, count, ratio, time};
use crate::{fleet, history};

const CLUSTERS: u64 = 1000;
const CALLERS: [u64; 4] = [1, 16, 64, 256];
/// What surrounds the events of a record.
const ENVELOPE_BYTES: usize = 230;

/// What takes the requests.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Memory,
    Embedded,
    Plain,
}

pub(crate) fn run(report: &mut Report, quick: bool) -> Result<()> {
    let (turns, length) = if quick { (1, 300) } else { (11, 500) };
    let length = Duration::from_millis(length);
    let title = format!("Engine: durable reservations, {CLUSTERS} clusters");
    let columns = [
        "callers",
        "embedded log",
        "p50",
        "p99",
        "plain append",
        "p50",
        "p99",
        "embedded ÷ plain",
        "memory log",
        "p50",
        "p99",
    ];
    let mut table = Table::new(title, &columns);
    let mut at_64 = 0.0;
    for callers in CALLERS {
        let [embedded, plain, memory] = compare(callers, turns, length)?;
        let cells =
            |seen: &Seen| [format!("{}/s", count(seen.rate)), time(seen.p50), time(seen.p99)];
        let row = [callers.to_string()].into_iter().chain(cells(&embedded)).chain(cells(&plain));
        let row = row.chain([ratio(embedded.rate, plain.rate)]);
        table.row(row.chain(cells(&memory)));
        if callers == 64 {
            at_64 = embedded.rate / plain.rate;
        }
    }
    table.note(format!(
        "Plain append: the same callers and commands, one thread that writes what has arrived \
         ({} bytes for each reservation, as in the log) with one write and one fdatasync. Medians \
         of {turns} turns that take it in turns.",
        reservation_bytes()?
    ));
    report.add(table);
    let (reach, found) = ("≥ 0.50 of plain append".into(), format!("{at_64:.2}"));
    report.target("engine, embedded log, 64 callers", reach, found, at_64 >= 0.5);
    Ok(())
}

/// All three, one after the other in each turn, so that a noisy moment meets all of them.
fn compare(callers: u64, turns: usize, length: Duration) -> Result<[Seen; 3]> {
    let targets = [Target::Embedded, Target::Plain, Target::Memory];
    let mut seen = [const { Vec::new() }; 3];
    for _ in 0..turns {
        for (target, seen) in targets.into_iter().zip(&mut seen) {
            seen.push(one_turn(target, callers, length)?);
        }
    }
    Ok(seen.map(|turns| {
        let figure = |of: fn(&Seen) -> f64| median(&mut turns.iter().map(of).collect::<Vec<_>>());
        Seen { rate: figure(|s| s.rate), p50: figure(|s| s.p50), p99: figure(|s| s.p99) }
    }))
}

fn one_turn(target: Target, callers: u64, length: Duration) -> Result<Seen> {
    let folder = history::scratch()?;
    match target {
        Target::Memory => through_engine(Arc::new(Memory::new()), callers, length),
        Target::Embedded => {
            let log = Embedded::open(&folder.path().join("log"))?;
            through_engine(Arc::new(log), callers, length)
        }
        Target::Plain => through_plain(folder.path(), callers, length),
    }
}

fn through_engine(log: Arc<dyn Log>, callers: u64, length: Duration) -> Result<Seen> {
    let options = Options::alone(Writer(1));
    let running = engine::start(log, Loaded::default(), Arc::new(Policy::default()), &options)?;
    let handle = running.handle();
    for number in 0..CLUSTERS {
        let said = Command::Advertise(Box::new(fleet::vast(number)));
        handle.submit(said)?.wait().context("a cluster is heard")?;
    }
    let seen = callers::drive(callers, length, move |caller, number| {
        reserve(handle.clone(), fleet::reserve(caller, number))
    });
    running.stop()?;
    seen
}

async fn reserve(handle: Handle, command: Command) {
    let ticket = handle.submit(command).expect("there is room in the queue");
    ticket.answer().await.expect("it is granted");
}

/// What one caller hands to the thread that writes.
type Asked = (Command, oneshot::Sender<()>);

fn through_plain(folder: &Path, callers: u64, length: Duration) -> Result<Seen> {
    let file = File::options().append(true).create(true).open(folder.join("plain"))?;
    let payload = vec![b'x'; reservation_bytes()?];
    let (inbox, asked) = sync_channel::<Asked>(16_384);
    let writing = thread::spawn(move || append(file, &payload, &asked));
    let seen = callers::drive(callers, length, move |caller, number| {
        let (inbox, command) = (inbox.clone(), fleet::reserve(caller, number));
        async move {
            let (teller, ticket) = oneshot::channel();
            inbox.try_send((command, teller)).expect("there is room in the queue");
            ticket.await.expect("it is written");
        }
    });
    writing.join().expect("the writing thread ends")?;
    seen
}

/// Writes whatever has arrived with one write and one sync, and tells everybody.
fn append(mut file: File, payload: &[u8], asked: &Receiver<Asked>) -> Result<()> {
    let (mut bytes, mut told) = (Vec::new(), Vec::new());
    while let Ok(first) = asked.recv() {
        bytes.clear();
        bytes.resize(ENVELOPE_BYTES, b'e');
        for (command, teller) in [first].into_iter().chain(asked.try_iter()) {
            bytes.extend_from_slice(payload);
            told.push(teller);
            drop(command);
        }
        file.write_all(&bytes)?;
        file.sync_data()?;
        for teller in told.drain(..) {
            // A caller that gave up is no concern of ours.
            teller.send(()).ok();
        }
    }
    Ok(())
}

/// What one reservation takes in a record of the log.
fn reservation_bytes() -> Result<usize> {
    Ok(history::body(0..1)?.size())
}
