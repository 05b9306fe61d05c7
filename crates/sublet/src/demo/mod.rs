//! The life of some reservations, played on the real engine and a real log and explained on the
//! way: the scenarios that the Go system was evaluated with, and what it did not try.
//!
//! Everything is checked while it is played, so a demo that ends well has shown what it says.

mod stage;

use std::io::{self, IsTerminal};
use std::thread;

use anyhow::{Context, Result, ensure};
use sublet_core::reservation::Phase;
use sublet_core::time::Span;

use stage::{Stage, Wish};

/// How the demo is played.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Do not pause for the reader.
    #[arg(long)]
    fast: bool,
}

/// Plays it from beginning to end.
pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = tempfile::tempdir().context("no scratch folder could be made")?;
    let pause = !args.fast && io::stdout().is_terminal();
    let mut stage = Stage::open(folder.path(), pause)?;
    advertise(&mut stage)?;
    decide(&mut stage)?;
    refuse(&mut stage)?;
    instruct(&mut stage)?;
    contend(&mut stage)?;
    retry(&mut stage)?;
    wait(&mut stage)?;
    expire(&mut stage)?;
    restart(stage, folder.path(), pause)
}

fn advertise(stage: &mut Stage) -> Result<()> {
    stage.title("Three clusters say what they have; edge-1 is the busiest, edge-3 is idle")?;
    stage.advertise("edge-1", (8_000, 16), (3_000, 1_536))?;
    stage.advertise("edge-2", (8_000, 16), (1_500, 768))?;
    stage.advertise("edge-3", (8_000, 16), (0, 0))
}

fn decide(stage: &mut Stage) -> Result<()> {
    stage.title("A fourth cluster asks; the one that keeps the largest share free lends")?;
    for (key, cpu, memory) in [("small", 200, 128), ("medium", 1_000, 512), ("large", 2_000, 1_024)]
    {
        let reservation = stage.request(&Wish::new("shop", key, cpu, memory))?.granted()?;
        let provider = reservation.grant().map(|grant| grant.provider.as_str());
        ensure!(provider == Some("edge-3"), "{key} should be lent by edge-3");
    }
    stage.say("The Go system published edge-2 for the third: it had counted the first two twice.")
}

fn refuse(stage: &mut Stage) -> Result<()> {
    stage.title("What nobody has is refused, with the smallest changes that would do")?;
    stage.request(&Wish::new("shop", "giant", 100_000, 512_000))?.refused()?;
    let gpu = Wish { gpu: 1, ..Wish::new("shop", "gpu", 500, 256) };
    stage.request(&gpu)?.refused()
}

fn instruct(stage: &mut Stage) -> Result<()> {
    stage.title("Both sides are told; the provider confirms, the requester uses it")?;
    stage.show_instructions("edge-3")?;
    stage.show_instructions("shop")?;
    let reservation = stage.find("shop", "medium")?;
    stage.acknowledge(&reservation)?;
    let reservation = stage.activate(&reservation)?;
    ensure!(reservation.phase() == Phase::Active, "it should be Active");
    Ok(())
}

fn contend(stage: &mut Stage) -> Result<()> {
    stage.title("A hundred callers at once want one core each of what is left")?;
    let free = stage.free_cores(&["edge-1", "edge-2", "edge-3"])?;
    let granted = stage.stampede("fleet", 100)?;
    stage.say(&format!("{granted} were granted, and {free} whole cores were free."))?;
    ensure!(granted == free, "{granted} grants for {free} free cores");
    let left = stage.free_cores(&["edge-1", "edge-2", "edge-3"])?;
    ensure!(left == 0, "{left} cores are left");
    Ok(())
}

fn retry(stage: &mut Stage) -> Result<()> {
    stage.title("The answer was lost on the way: the same key brings the same reservation")?;
    let first = stage.find("shop", "small")?;
    let again = stage.request(&Wish::new("shop", "small", 200, 128))?.granted()?;
    ensure!(first.id == again.id, "a repeat made another reservation");
    stage.request(&Wish::new("shop", "small", 300, 128))?.refused()
}

fn wait(stage: &mut Stage) -> Result<()> {
    stage.title("Nothing is free: a patient request waits until something comes back")?;
    let patient =
        Wish { wait: Some(Span::from_secs(600)), ..Wish::new("shop", "patient", 2_000, 512) };
    let waiting = stage.request(&patient)?.granted()?;
    ensure!(waiting.phase() == Phase::Pending, "it should wait");
    let large = stage.find("shop", "large")?;
    stage.release(&large)?;
    ensure!(stage.look(&waiting)?.phase() == Phase::Pending, "nothing may come back so early");
    stage.say("edge-3 has not confirmed yet, so nothing has come back.")?;
    stage.acknowledge(&large)?;
    ensure!(stage.look(&waiting)?.phase() == Phase::Reserved, "it should be granted now");
    stage.show(&stage.look(&waiting)?)
}

fn expire(stage: &mut Stage) -> Result<()> {
    stage.title(
        "A reservation for a moment ends by itself, and its capacity when it is confirmed",
    )?;
    let medium = stage.find("shop", "medium")?;
    stage.release(&medium)?;
    stage.acknowledge(&medium)?;
    let brief =
        Wish { duration: Some(Span::from_millis(300)), ..Wish::new("shop", "brief", 500, 256) };
    let brief = stage.request(&brief)?.granted()?;
    stage.await_phase(&brief, Phase::Releasing)?;
    stage.acknowledge(&brief)?;
    let brief = stage.look(&brief)?;
    ensure!(brief.phase() == Phase::Released, "it should be over");
    stage.show(&brief)
}

fn restart(mut stage: Stage, folder: &std::path::Path, pause: bool) -> Result<()> {
    stage.title("The broker is stopped; another one opens the same log")?;
    let before = stage.summary()?;
    stage.close()?;
    let mut stage = Stage::open(folder, pause)?;
    let after = stage.summary()?;
    ensure!(before == after, "before: {before}; after: {after}");
    stage.say(&format!("Nothing is lost: {after}"))?;
    stage.audit()?;
    stage.close()
}

/// Gives the reader time for a line.
fn breathe() {
    thread::sleep(std::time::Duration::from_millis(600));
}
