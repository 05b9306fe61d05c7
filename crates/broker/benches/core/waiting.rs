//! What it costs to try those who wait again, and to take work in while much is waiting for its turn.

use std::sync::Arc;

use sublet_broker::engine::{Engine, Submitted, Work};
use sublet_core::books::Books;
use sublet_core::decision::{Constraint, Match};
use sublet_core::plan::Command;
use sublet_core::policy::{Allowance, Policy};
use sublet_core::reservation::Ask;
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};

use crate::clock::{median, timed};
use crate::fleet::{self, Dice, Kind};
use crate::report::{Report, Table, time};

const CLUSTERS: u64 = 10_000;
const WAITING: u64 = 4000;
/// As many as may wait where the policy says nothing.
const WAITING_AT_MOST: u64 = 1000;
/// A region that one in eight is in, and nobody there has anything left.
const FULL: &str = "region-0";
const NOW: Time = Time::from_millis(1_800_000_000_000);

/// An engine on a fleet, with many that ask for something that nobody has.
fn crowded(ask: &Ask, waiting: u64) -> Engine<()> {
    let allowance = Allowance { waiting_max: u32::MAX, ..Allowance::default() };
    let policy = Policy { waiting_max: u32::MAX, allowance, ..Policy::default() };
    let (mut books, mut dice) = (Books::default(), Dice::new(1));
    for number in 0..CLUSTERS {
        let mut said = fleet::advertisement(Kind::Mixed, number, &mut dice);
        if said.labels.get("region").is_some_and(|region| region == FULL) {
            said.allocated = said.allocatable.clone();
        }
        books.hear(said, NOW, &policy.silence);
    }
    let mut engine = Engine::new(books, Arc::new(policy));
    for number in 0..waiting {
        let Command::Reserve { requester, key, .. } = fleet::reserve(number % 100, number) else {
            continue;
        };
        let ask = Ask { wait: Some(Span::from_secs(3600)), ..ask.clone() };
        let work = Work::Command(Command::Reserve { requester, key, ask, explain: false });
        step(&mut engine, [work]);
        while engine.is_behind() {
            step(&mut engine, []);
        }
    }
    engine
}

fn step(engine: &mut Engine<()>, work: impl IntoIterator<Item = Work>) {
    let work = work.into_iter().map(|work| Submitted { work, ticket: () });
    engine.step(work, NOW).expect("no contradiction");
    if engine.close().0.is_some() {
        engine.committed();
    }
}

/// Nanoseconds of a whole pass over those who wait, and of its longest step.
fn pass(engine: &mut Engine<()>, sequence: u64) -> (f64, f64) {
    let said = fleet::vast(CLUSTERS + sequence);
    let mut work = vec![Work::Command(Command::Advertise(Box::new(said)))];
    let (mut sum, mut longest) = (0.0, 0.0_f64);
    loop {
        let (took, ()) = timed(|| step(engine, work.drain(..)));
        let nanos = took.as_secs_f64() * 1e9;
        (sum, longest) = (sum + nanos, longest.max(nanos));
        if !engine.is_behind() {
            return (sum, longest);
        }
    }
}

pub(crate) fn run(report: &mut Report, quick: bool) {
    let columns =
        ["10⁴ clusters; who waits for", "how many", "all tried again", "for each", "longest step"];
    let mut table = Table::new("Waiting: somebody new has room, and nobody fits there", &columns);
    let gpu = Resources::new(500, 1 << 30).with(sublet_core::resources::Kind::Gpu, 1 << 20);
    let label = |values: Vec<String>| Constraint { label: "region".into(), is: Match::In(values) };
    let labelled =
        |value: &str| Ask { constraints: vec![label(vec![value.into()])], ..fleet::ask() };
    let asks = [
        (
            "more than anybody has",
            Ask { resources: gpu.expect("a bounded amount"), ..fleet::ask() },
            WAITING,
        ),
        ("a label that nobody has", labelled("nowhere"), WAITING),
        // Each of them is tried on everybody with room.
        ("a common label, all full", labelled(FULL), WAITING_AT_MOST),
    ];
    for (name, ask, waiting) in asks {
        let mut engine = crowded(&ask, waiting);
        let rounds = if quick { 3 } else { 9 };
        let (mut sums, mut longest): (Vec<_>, Vec<_>) =
            (0..rounds).map(|round| pass(&mut engine, round)).unzip();
        let (sum, longest) = (median(&mut sums), median(&mut longest));
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let each = sum / waiting as f64;
        let many = waiting.to_string();
        table.row([name.to_owned(), many, time(sum), time(each), time(longest)]);
    }
    table.note("Between two steps the disk, callers and watchers are served.");
    report.add(table);
}
