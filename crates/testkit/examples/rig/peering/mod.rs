//! `cargo xtask bench peering`: from a request to a node of another cluster, and back, beside `liqoctl
//! peer` in the same clusters; and what an agent takes that borrows much.
//!
//! Real Liqo, a real broker and real agents, each a process. Times run from before the request is sent
//! to the API server until watches of the API servers show what came of it. It never fails because a
//! figure is high; it says what was to be reached.

mod figures;
mod life;
mod memory;
mod rival;
mod sight;
mod stage;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use sublet_testkit::wait::wall;

use crate::broker::program;
use figures::{Figures, print_count, print_head};
use life::Trial;
use sight::Eyes;
use stage::Stage;

/// What everybody asks for.
const CPU: &str = "3";
const MEMORY: &str = "5Gi";
const PODS: &str = "110";
/// How long a link is kept where it is to go.
const IDLE: Duration = Duration::from_secs(1);

const WITH_A_LINK: Duration = Duration::from_millis(1500);
const WITHOUT_A_LINK: Duration = Duration::from_millis(2500);
const RELEASE: Duration = Duration::from_secs(1);

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program to measure; without it, the one beside this program
    #[arg(long)]
    sublet: Option<PathBuf>,
    /// How many reservations of each kind; `liqoctl`, which takes long, does a third of it
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=1000))]
    trials: u16,
    /// Five of each
    #[arg(long, conflicts_with = "trials")]
    quick: bool,
    /// One part alone
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Has the agents log everything, and copies the logs of all processes into this folder
    #[arg(long)]
    logs: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// `liqoctl peer`
    Liqoctl,
    /// Where the two clusters have no link yet
    Unlinked,
    /// Where they have one
    Linked,
    /// An agent with three links and twenty slices
    Memory,
}

/// Measures, and prints tables.
pub(crate) fn run(args: Args) -> Result<()> {
    let sublet = args.sublet.clone().map_or_else(program, Ok)?;
    println!("starting two clusters with Liqo …");
    let mut stage = Stage::build(sublet)?;
    let measured = measure(&args, &mut stage);
    if let Some(folder) = &args.logs {
        stage.copy_logs(folder)?;
    }
    measured
}

fn measure(args: &Args, stage: &mut Stage) -> Result<()> {
    let trials = if args.quick { 5 } else { usize::from(args.trials) };
    let is_wanted = |part| args.only.is_none_or(|only| only == part);
    print_head();
    if is_wanted(Part::Liqoctl) {
        // Before there are agents: their policies refuse the class that liqoctl uses.
        let (peer, unpeer) = rival::measure(stage, trials.div_ceil(3))?;
        peer.print("liqoctl peer", &[]);
        unpeer.print("liqoctl unpeer", &[]);
    }
    stage.start_broker()?;
    let more: &[&str] = if args.logs.is_some() { &["--log-level=debug"] } else { &[] };
    if is_wanted(Part::Unlinked) {
        unlinked(stage, trials, more)?;
    }
    if is_wanted(Part::Linked) {
        linked(stage, trials, more)?;
    }
    if is_wanted(Part::Memory) {
        memory::measure(stage)?;
    }
    Ok(())
}

/// Each reservation needs a link, which goes after it.
fn unlinked(stage: &mut Stage, trials: usize, more: &[&str]) -> Result<()> {
    let idle = format!("--link-idle={}s", IDLE.as_secs());
    stage.start_agents(&[&[idle.as_str()], more].concat())?;
    let before = stage.inventory()?;
    let mut eyes = Eyes::open(stage.requester()?, stage.provider()?);
    let (mut coming, mut going) = (Figures::default(), Figures::default());
    // The first one fills caches, and does not count.
    for number in 0..=trials {
        let (mut come, mut go) = (Figures::default(), Figures::default());
        let (come, go) = if number == 0 { (&mut come, &mut go) } else { (&mut coming, &mut going) };
        let trial = Trial::begin(number, stage.requester()?, &mut eyes, come)?;
        trial.end(stage.requester()?, &mut eyes, go)?;
        let since = wall();
        let took = life::wait_until_unlinked(&mut eyes, since)?;
        go.add("the link is gone, after its idle time", took.saturating_sub(IDLE));
    }
    let left = stage.leftovers(&before)?;
    coming.print("without a link", &[(life::USABLE, WITHOUT_A_LINK)]);
    going.print("release, and the link", &[(life::GONE, RELEASE)]);
    print_leftovers("without a link", &left);
    Ok(())
}

/// The link is there before each reservation, and stays.
fn linked(stage: &mut Stage, trials: usize, more: &[&str]) -> Result<()> {
    stage.start_agents(more)?;
    let mut eyes = Eyes::open(stage.requester()?, stage.provider()?);
    let mut warm = Figures::default();
    let first = Trial::begin(0, stage.requester()?, &mut eyes, &mut warm)?;
    first.end(stage.requester()?, &mut eyes, &mut warm)?;
    let before = stage.inventory()?;
    let (mut coming, mut going) = (Figures::default(), Figures::default());
    for number in 1..=trials {
        let trial = Trial::begin(number, stage.requester()?, &mut eyes, &mut coming)?;
        trial.end(stage.requester()?, &mut eyes, &mut going)?;
    }
    let left = stage.leftovers(&before)?;
    coming.print("with a link", &[(life::USABLE, WITH_A_LINK)]);
    going.print("release", &[(life::GONE, RELEASE)]);
    print_leftovers("with a link", &left);
    Ok(())
}

fn print_leftovers(what: &str, left: &[String]) {
    print_count(&format!("{what}: leftovers"), &left.len().to_string(), "0", left.is_empty());
    for one in left {
        println!("left: {one}");
    }
}
