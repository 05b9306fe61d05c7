//! `cargo xtask bench peering`: from a request to a node of another cluster, and back, beside `liqoctl
//! peer` in the same clusters; and what an agent takes that borrows much.
//!
//! Real Liqo, a real broker and real agents, each a process. Times run from before the request is sent
//! to the API server until watches of the API servers show what came of it. It says what was to be
//! reached, and fails where that was missed only if it is told to be strict.

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
use figures::{Figures, Table};
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
    /// How many reservations of each kind; `liqoctl`, which takes long, does a third of them
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=1000))]
    trials: u16,
    /// Five of each
    #[arg(long, conflicts_with = "trials")]
    quick: bool,
    /// Fails if a target is missed
    #[arg(long)]
    strict: bool,
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
    let mut table = Table::begin();
    if is_wanted(Part::Liqoctl) {
        // Before there are agents: their policies refuse the class that liqoctl uses.
        let (peer, unpeer) = rival::measure(stage, trials.div_ceil(3))?;
        table.times("liqoctl peer, a third of the trials", &peer, &[]);
        table.times("liqoctl unpeer, a third of the trials", &unpeer, &[]);
    }
    stage.start_broker()?;
    let more: &[&str] = if args.logs.is_some() { &["--log-level=debug"] } else { &[] };
    if is_wanted(Part::Unlinked) {
        unlinked(stage, trials, more, &mut table)?;
    }
    if is_wanted(Part::Linked) {
        linked(stage, trials, more, &mut table)?;
    }
    if is_wanted(Part::Memory) {
        memory::measure(stage, &mut table)?;
    }
    table.end(args.strict)
}

/// Each reservation needs a link, which goes after it.
fn unlinked(stage: &mut Stage, trials: usize, more: &[&str], table: &mut Table) -> Result<()> {
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
    table.times("without a link", &coming, &[(life::USABLE, WITHOUT_A_LINK)]);
    table.times("release, and the link", &going, &[(life::GONE, RELEASE)]);
    count_leftovers("without a link", &left, table);
    Ok(())
}

/// The link is there before each reservation, and stays.
fn linked(stage: &mut Stage, trials: usize, more: &[&str], table: &mut Table) -> Result<()> {
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
    table.times("with a link", &coming, &[(life::USABLE, WITH_A_LINK)]);
    table.times("release", &going, &[(life::GONE, RELEASE)]);
    count_leftovers("with a link", &left, table);
    Ok(())
}

fn count_leftovers(what: &str, left: &[String], table: &mut Table) {
    let target = Some(("0", left.is_empty()));
    table.count(&format!("{what}: leftovers"), &left.len().to_string(), target);
    for one in left {
        println!("left: {one}");
    }
}
