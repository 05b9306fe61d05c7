//! Bytes per cluster and per reservation, as the system counts them: what a process that holds
//! nothing else grew by. Each figure comes from a process of its own, so that nothing freed before
//! hides any of it.
#![expect(
    clippy::print_stdout,
    reason = "a process that is asked for its memory answers on stdout"
)]

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sublet_core::books::Books;
use sublet_core::policy::Policy;
use sublet_core::time::Time;

use crate::fleet::{self, Dice, Kind};
use crate::history;
use crate::report::{Report, Table, count};

pub(crate) fn run(report: &mut Report, quick: bool) -> Result<()> {
    let columns = ["what", "how many", "bytes each", "in all"];
    let mut table = Table::new("Memory: growth of a process's resident set", &columns);
    let sizes: &[u32] = if quick { &[100_000] } else { &[100_000, 1_000_000] };
    for what in ["cluster", "reservation"] {
        for size in sizes {
            let bytes = ask(what, *size)?;
            let each = bytes / f64::from(*size);
            let all = format!("{} MB", count(bytes / 1e6));
            table.row([what.into(), count(f64::from(*size)), count(each), all]);
        }
    }
    table.note(
        "A cluster: its advertisement with three labels and a price, and its place in the index. A \
         reservation: with its key and everything derived from it; 1000 clusters share them.",
    );
    report.add(table);
    Ok(())
}

/// Asks a process of its own.
fn ask(what: &str, size: u32) -> Result<f64> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--probe", what, &size.to_string()]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// What that process does.
pub(crate) fn probe(what: &[String]) -> Result<()> {
    let [what, size] = what else { bail!("what, and how many") };
    let size = size.parse()?;
    let before = resident()?;
    let (mut books, mut ledger) = (None, None);
    match what.as_str() {
        "cluster" => books = Some(clusters(size)),
        "reservation" => ledger = Some(history::ledger(0..size)?),
        _ => bail!("a cluster or a reservation"),
    }
    println!("{}", resident()? - before);
    drop((books.take(), ledger.take()));
    Ok(())
}

fn clusters(size: u64) -> Books {
    let (mut books, mut dice) = (Books::default(), Dice::new(size));
    let silence = Policy::default().silence;
    for number in 0..size {
        let said = fleet::advertisement(Kind::Mixed, number, &mut dice);
        books.hear(said, Time::from_millis(1), &silence);
    }
    books
}

/// Bytes of this process that are in memory.
fn resident() -> Result<u64> {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").context("only Linux counts this")?;
    let pages: u64 = statm.split(' ').nth(1).context("a second field")?.parse()?;
    Ok(pages * PAGE_BYTES)
}
