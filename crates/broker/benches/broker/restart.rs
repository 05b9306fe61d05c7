//! How long a broker with many live reservations needs from its start until it answers, after it was
//! killed.

use anyhow::{Result, ensure};

use crate::clock::{self, f64_of};
use crate::ground::Ground;
use crate::order::{Flood, Task};
use crate::process::Server;
use crate::report::{Report, Table, count, time};
use crate::requests::What;

const RESERVATIONS: f64 = 1e5;
const FIRST: u64 = 7;

pub(crate) fn run(report: &mut Report, ground: &Ground) -> Result<()> {
    let columns = ["live reservations", "until it serves", "on disk"];
    let mut table = Table::new("Start after a kill, on the embedded log", &columns);
    let name = "restart";
    let broker = Server::broker(ground, name)?;
    let wanted = if ground.quick { RESERVATIONS / 10.0 } else { RESERVATIONS };
    let (mut made, mut first) = (0.0, FIRST);
    let mut answer = String::new();
    while made < wanted {
        broker.load(ground, Task::Everybody { clusters: 100, first })?;
        // One at a known number, whose answer is compared afterwards.
        let one = broker.load(ground, Task::One(What::Reserve, 0, FIRST))?;
        if answer.is_empty() {
            answer.clone_from(&one.answer);
        }
        first += 1_000_000_000;
        let flood = Flood { what: What::Reserve, connections: 64, millis: 1000, first, rate: None };
        let seen = broker.load(ground, Task::Flood(flood))?;
        // The ones that warmed it up are not counted, and are there besides.
        made += seen.rate() * seen.seconds;
    }
    broker.kill()?;
    let bytes = on_disk(ground, name)?;
    let began = clock::now();
    let broker = Server::broker(ground, name)?;
    let took = began.elapsed().as_secs_f64() * 1e9;
    let again = broker.load(ground, Task::One(What::Reserve, 0, FIRST))?;
    ensure!(again.answer == answer, "the same key, another answer: {} {answer}", again.answer);
    let size = format!("{} MB", count(f64_of(bytes) / 1e6));
    table.row([format!("more than {}", count(made)), time(took), size]);
    table.note(
        "From the start of the process until it serves. The key of the first is then sent again.",
    );
    report.add(table);
    Ok(())
}

fn on_disk(ground: &Ground, name: &str) -> Result<u64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(ground.folder().join(name))? {
        bytes += file?.metadata()?.len();
    }
    Ok(bytes)
}
