//! What an agent takes that borrows from three clusters, twenty reservations at once.

use std::fs;

use anyhow::{Context, Result, ensure};
use sublet_testkit::wait::{PATIENCE, Stopwatch};
use sublet_testkit::{Process, wait_for};

use super::figures::Table;
use super::life;
use super::stage::Stage;

const SLICES: usize = 20;
const LIMIT_KIB: u64 = 25 * 1024;

/// Measures, and prints rows.
pub(super) fn measure(stage: &mut Stage, table: &mut Table) -> Result<()> {
    stage.add_others()?;
    stage.start_agents(&[])?;
    let requester = stage.requester()?;
    let providers = stage.providers();
    let before = resident(stage.agent()?)?;
    let clock = Stopwatch::start();
    for number in 0..SLICES {
        let provider = providers.get(number % providers.len()).context("somebody lends")?;
        let request = life::request(&format!("many-{number}"), provider, ("1", "1Gi"));
        life::ask(requester, &request)?;
    }
    wait_for("all of them to be usable", PATIENCE, || {
        life::usable(requester).ok().filter(|found| *found == (SLICES, SLICES))
    })?;
    let took = clock.elapsed().as_secs_f64();
    let held = resident(stage.agent()?)?;
    let links = requester.api().get("/apis/authentication.liqo.io/v1beta1/identities")?;
    let is_link = |one: &&serde_json::Value| one["spec"]["type"] == "ControlPlane";
    let links = links["items"].as_array().map_or(0, |all| all.iter().filter(is_link).count());
    ensure!(links == providers.len(), "{links} links instead of {}", providers.len());
    life::take_all_back(requester)?;
    wait_for("all of them to be gone", PATIENCE, || {
        life::usable(requester).ok().filter(|found| *found == (0, 0))
    })?;
    let after = resident(stage.agent()?)?;
    let text = |kib: u64| format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024);
    table.count("agent, nothing borrowed: resident", &text(before), None);
    let what = format!("agent, {links} links and {SLICES} slices: resident");
    table.count(&what, &text(held), Some(("< 25 MiB", held < LIMIT_KIB)));
    table.count("agent, all given back: resident", &text(after), None);
    table.count(&format!("{SLICES} at once until all are Active"), &format!("{took:.1} s"), None);
    Ok(())
}

/// What it has in memory, in KiB, by the kernel's count.
fn resident(process: &Process) -> Result<u64> {
    let pid = process.pid().context("it has ended")?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim_matches(|c: char| !c.is_ascii_digit()).parse()?)
}
