//! What connected agents cost while nothing happens, and how soon a provider among them is told.

use anyhow::Result;

use crate::clock::f64_of;
use crate::ground::Ground;
use crate::order::Task;
use crate::process::Server;
use crate::report::{Report, Table, count, time};
use crate::reservations::percent;

const STREAMS: u64 = 10_000;
const KIB: f64 = 1024.0;

pub(crate) fn run(report: &mut Report, ground: &Ground) -> Result<()> {
    let columns = [
        "streams",
        "resident before",
        "after",
        "each",
        "of a core",
        "answered p50",
        "p99",
        "provider told p50",
        "p99",
    ];
    let mut table = Table::new("Idle streams, and a provider that is told", &columns);
    let wanted = if ground.quick { STREAMS / 10 } else { STREAMS };
    let most = ground.streams(wanted);
    if most < wanted {
        table.note(format!("Not {wanted} streams: this process may open no more files than that."));
    }
    let (mut each, mut slowest) = (0.0, 0.0_f64);
    for streams in [1, most] {
        let broker = Server::broker(ground, &format!("streams-{streams}"))?;
        // Longer than the time between two signs of life.
        let millis = if streams == 1 { 100 } else { 30_000 };
        let tells = if ground.quick { 200 } else { 2000 };
        let seen = broker.load(ground, Task::Streams { count: streams, millis, tells })?;
        each = (seen.after - seen.before) / f64_of(streams);
        let spread = |found: Option<crate::clock::Spread>| {
            found.map_or((f64::NAN, f64::NAN), |found| (found.p50, found.p99))
        };
        let (answered, told) = (spread(seen.waits), spread(seen.told));
        slowest = slowest.max(told.1);
        let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
        table.row([
            count(f64_of(streams)),
            megabytes(seen.before),
            megabytes(seen.after),
            if streams == 1 { "–".into() } else { format!("{:.1} KiB", each / KIB) },
            if streams == 1 { "–".into() } else { percent(seen.server / seen.seconds) },
            time(answered.0),
            time(answered.1),
            time(told.0),
            time(told.1),
        ]);
    }
    table.note(
        "Each stream is a cluster with a certificate of its own, has advertised, and is told every 15 s \
         that it lives. Told: from when the request leaves the requester until the provider has read \
         the line, so mTLS both ways, the decision and the fsync are in it.",
    );
    report.add(table);
    let found = format!("{:.1} KiB", each / KIB);
    report.target("an idle connected agent", "< 40 KiB".into(), found, each < 40.0 * KIB);
    report.target("provider told, p99", "< 5 ms".into(), time(slowest), slowest < 5e6);
    Ok(())
}
