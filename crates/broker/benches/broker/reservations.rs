//! Durable reservations over mTLS, beside the null handler and one fsync.

use std::time::Duration;

use anyhow::Result;

use crate::clock::{Spread, median};
use crate::disk;
use crate::ground::Ground;
use crate::null;
use crate::order::{Flood, Seen, Task};
use crate::process::Server;
use crate::report::{Report, Table, count, ratio, time};
use crate::requests::What;

/// Clusters that lend; those that borrow are among them.
const CLUSTERS: u64 = 100;
/// More than any turn asks for, so that no key comes twice.
const NUMBERS_PER_TURN: u64 = 1_000_000_000;
const MANY: u64 = 64;

/// Both servers, and the same requests to them in turn.
pub(crate) struct Pair<'a> {
    ground: &'a Ground,
    what: What,
    data: &'a str,
    null: Server,
    turns: u64,
}

/// What both did with the same load.
pub(crate) struct Both {
    pub(crate) null: Row,
    pub(crate) broker: Row,
}

/// The medians of some turns.
pub(crate) struct Row {
    pub(crate) rate: f64,
    pub(crate) waits: Spread,
    /// Nanoseconds of a processor for each request.
    pub(crate) each: f64,
    /// The part of one processor that the generator took.
    pub(crate) generator: f64,
}

impl Row {
    fn of(turns: &[Seen]) -> Self {
        let waits: Vec<_> = turns.iter().filter_map(|turn| turn.waits).collect();
        let each = |turn: &Seen| turn.server * 1e9 / (turn.rate() * turn.seconds);
        Self {
            rate: median(turns.iter().map(Seen::rate)),
            waits: Spread::median(&waits),
            each: median(turns.iter().map(each)),
            generator: median(turns.iter().map(|turn| turn.generator / turn.seconds)),
        }
    }
}

impl<'a> Pair<'a> {
    /// Starts both; the null handler answers what the broker did.
    pub(crate) fn start(ground: &'a Ground, what: What, data: &'a str) -> Result<Self> {
        let broker = Server::broker(ground, data)?;
        broker.load(ground, Task::Everybody { clusters: CLUSTERS, first: 1 })?;
        let seen = broker.load(ground, Task::One(what, 0, 2))?;
        null::teach(ground, what, &seen.answer)?;
        Ok(Self { ground, what, data, null: Server::null(ground)?, turns: 1 })
    }

    /// Some turns of this load; each of the two has its turn after the other. The broker begins with
    /// an empty log: what an earlier load left there is not to be measured with this one.
    pub(crate) fn turns(&mut self, connections: u64, rate: Option<f64>) -> Result<Both> {
        let (turns, millis) = if self.ground.quick { (3, 500) } else { (5, 1500) };
        let (mut null, mut broker) = (Vec::new(), Vec::new());
        let server = Server::broker(self.ground, &format!("{}-{}", self.data, self.turns))?;
        for _ in 0..turns {
            let first = self.turns * NUMBERS_PER_TURN;
            self.turns += 1;
            let load = || Task::Flood(Flood { what: self.what, connections, millis, first, rate });
            null.push(self.null.load(self.ground, load())?);
            if matches!(self.what, What::Reserve) {
                // Only what was heard of lately is lent.
                let everybody = Task::Everybody { clusters: CLUSTERS, first };
                server.load(self.ground, everybody)?;
            }
            broker.push(server.load(self.ground, load())?);
        }
        Ok(Both { null: Row::of(&null), broker: Row::of(&broker) })
    }
}

pub(crate) const COLUMNS: [&str; 10] = [
    "connections",
    "broker",
    "p50",
    "p99",
    "CPU each",
    "null handler",
    "p50",
    "p99",
    "CPU each",
    "broker ÷ null",
];

pub(crate) fn row(table: &mut Table, name: String, both: &Both) {
    let half = |row: &Row| {
        let rate = format!("{}/s", count(row.rate));
        [rate, time(row.waits.p50), time(row.waits.p99), time(row.each)]
    };
    let share = ratio(both.broker.rate, both.null.rate);
    let (broker, null) = (half(&both.broker), half(&both.null));
    table.row([name].into_iter().chain(broker).chain(null).chain([share]));
}

pub(crate) fn run(report: &mut Report, ground: &Ground) -> Result<()> {
    let mut table = Table::new("Durable reservations over mTLS", &COLUMNS);
    let mut pair = Pair::start(ground, What::Reserve, "reservations")?;
    let length = Duration::from_millis(if ground.quick { 300 } else { 1000 });
    let mut fsyncs = vec![disk::fsync(ground, length)?];
    let alone = pair.turns(1, None)?;
    row(&mut table, "1".into(), &alone);
    fsyncs.push(disk::fsync(ground, length)?);
    if !ground.quick {
        row(&mut table, "16".into(), &pair.turns(16, None)?);
    }
    let many = pair.turns(MANY, None)?;
    row(&mut table, MANY.to_string(), &many);
    let half_rate = many.broker.rate / 2.0;
    let half = pair.turns(MANY, Some(half_rate))?;
    row(&mut table, format!("{MANY}, at half the broker's rate"), &half);
    fsyncs.push(disk::fsync(ground, length)?);
    let fsync = Spread::median(&fsyncs);
    table.note(format!(
        "One write of 1 KiB with its fdatasync: p50 {}, p99 {}. The generator took {} (broker) and {} \
         (null handler) of a processor at {MANY} connections. CPU each: the server's, for one request.",
        time(fsync.p50),
        time(fsync.p99),
        percent(many.broker.generator),
        percent(many.null.generator),
    ));
    report.add(table);
    judge(report, &many, &alone, &half, fsync);
    Ok(())
}

fn judge(report: &mut Report, many: &Both, alone: &Both, half: &Both, fsync: Spread) {
    let share = many.broker.rate / many.null.rate;
    let reach = "≥ 0.50 of null".to_owned();
    report.target("reservations/s, 64 connections", reach, format!("{share:.2}"), share >= 0.5);
    let p50 = alone.broker.waits.p50 / (alone.null.waits.p50 + fsync.p50);
    let reach = "≤ 2.00 of null + fsync".to_owned();
    report.target("reservation alone, p50", reach, format!("{p50:.2}"), p50 <= 2.0);
    let p99 = half.broker.waits.p99 / (half.null.waits.p99 + fsync.p99);
    let reach = "≤ 3.00 of null + fsync".to_owned();
    report.target("reservation at half load, p99", reach, format!("{p99:.2}"), p99 <= 3.0);
}

/// A part of a whole.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}
