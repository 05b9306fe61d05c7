//! What a hundred agents cost, as the Go agents ask and as ours do.

use anyhow::Result;

use crate::ground::Ground;
use crate::order::Task;
use crate::process::Server;
use crate::report::{Report, Table};
use crate::reservations::percent;

const AGENTS: u32 = 100;

pub(crate) fn run(report: &mut Report, ground: &Ground) -> Result<()> {
    let columns = ["agents", "of a core", "resident"];
    let mut table = Table::new("A hundred agents at the cadence of the Go agents", &columns);
    let millis = if ground.quick { 30_000 } else { 60_000 };
    let ways = [(true, "Go agents: ask every 5 s"), (false, "our agents: a stream")];
    for (as_go, name) in ways {
        let broker = Server::broker(ground, if as_go { "agents-go" } else { "agents" })?;
        let seen = broker.load(ground, Task::Agents { count: AGENTS, as_go, millis })?;
        let (part, megabytes) = (seen.server / seen.seconds, seen.after / 1e6);
        table.row([name.into(), percent(part), format!("{megabytes:.1} MB")]);
        let what = format!("{AGENTS} agents, CPU ({name})");
        report.target(&what, "< 1 % of a core".into(), percent(part), part < 0.01);
        let what = format!("{AGENTS} agents, memory ({name})");
        report.target(&what, "< 25 MB".into(), format!("{megabytes:.1} MB"), megabytes < 25.0);
    }
    table.note(
        "Both advertise every 30 s; the Go agents look at their advertisement before. Handshakes are \
         made before it is measured.",
    );
    report.add(table);
    Ok(())
}
