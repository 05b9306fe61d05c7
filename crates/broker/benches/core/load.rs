//! Starting again: how long it takes until live reservations are back from the embedded log.

use std::path::Path;

use anyhow::{Result, ensure};
use sublet_core::books::Books;
use sublet_core::time::Time;
use sublet_log::{Embedded, Log, snapshot};

use crate::clock::timed;
use crate::history;
use crate::report::{Report, Table, time};

/// How the log came to be.
#[derive(Clone, Copy)]
struct Case {
    reservations: u64,
    /// A snapshot covers nine tenths; the rest is in records.
    snapshot: bool,
    /// The records that it covers are gone.
    compacted: bool,
}

impl Case {
    fn name(self) -> String {
        let made = match (self.snapshot, self.compacted) {
            (false, _) => "records only",
            (true, false) => "snapshot, tail of a tenth, history kept",
            (true, true) => "snapshot, tail of a tenth",
        };
        format!("{}: {made}", self.reservations)
    }
}

pub(crate) fn run(report: &mut Report, quick: bool) -> Result<()> {
    let columns = ["live reservations", "open and verify", "load", "together", "on disk"];
    let mut table =
        Table::new("Load: from the embedded log to books that can be planned on", &columns);
    let case = |reservations, snapshot, compacted| Case { reservations, snapshot, compacted };
    let mut cases = vec![
        case(100_000, false, false),
        case(100_000, true, false),
        case(100_000, true, true),
        case(1_000_000, true, true),
    ];
    cases.truncate(if quick { 3 } else { 4 });
    let mut slowest: f64 = 0.0;
    for case in cases {
        let (open, load, bytes) = measure(case)?;
        let both = open + load;
        let size = format!("{} MB", bytes / 1_000_000);
        table.row([case.name(), time(open), time(load), time(both), size]);
        if case.reservations == 100_000 {
            slowest = slowest.max(both);
        }
    }
    table.note("Opening reads everything that is kept and verifies its chain of checksums.");
    report.add(table);
    let what = "load of 10⁵ live reservations, slowest way";
    report.target(what, "< 2 s".into(), time(slowest), slowest < 2e9);
    Ok(())
}

fn measure(case: Case) -> Result<(f64, f64, u64)> {
    let scratch = history::scratch()?;
    let folder = scratch.path().join("log");
    prepare(case, &folder)?;
    let (opening, log) = timed(|| Embedded::open(&folder));
    let log = log?;
    let (loading, books) = timed(|| snapshot::load(&log).map(|loaded| Books::new(loaded.ledger)));
    let live = books?.ledger().reservations(None).count();
    ensure!(u64::try_from(live)? == case.reservations, "{live} came back");
    let mut bytes = 0;
    for file in std::fs::read_dir(&folder)? {
        bytes += file?.metadata()?.len();
    }
    Ok((opening.as_secs_f64() * 1e9, loading.as_secs_f64() * 1e9, bytes))
}

fn prepare(case: Case, folder: &Path) -> Result<()> {
    let log = Embedded::open(folder)?;
    let covered = if case.snapshot { case.reservations / 10 * 9 } else { 0 };
    history::write(&log, 0..covered)?;
    if case.snapshot {
        snapshot::take(&log)?;
    }
    if case.compacted {
        log.compact(Time::from_millis(u64::MAX))?;
    }
    history::write(&log, covered..case.reservations)
}
