//! `sublet demo`: a real broker in a process of its own, three clusters that talk to it over mTLS,
//! and the life of some reservations, explained step by step.
//!
//! Everything is checked while it is played, so a demo that ends well has shown what it says.
//! Nothing has to be there before, and nothing is left afterwards.

mod acts;
mod agent;
mod crash;
mod process;
mod stage;
mod world;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use stage::Stage;
use world::World;

/// How often it is looked whether the broker is still there.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// How it is played.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// End after the play, instead of staying up.
    #[arg(long)]
    once: bool,
    /// Do not pause for the reader.
    #[arg(long)]
    fast: bool,
}

/// Plays it from beginning to end.
pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("no runtime could be started")?.block_on(perform(args))
}

async fn perform(args: &Args) -> Result<()> {
    let mut stage = Stage::new(args.fast);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (mut world, mut agents) = tokio::select! {
        opened = World::open() => opened?,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("interrupted"),
    };
    tokio::select! {
        played = acts::play(&mut world, &mut stage) => played?,
        ended = agents.join_next() => bail!("a cluster of the demo ended: {ended:?}"),
        _ = interrupt.recv() => bail!("interrupted: the rest was not played"),
        _ = terminate.recv() => bail!("interrupted: the rest was not played"),
    }
    if args.once {
        return Ok(());
    }
    invite(&world, &stage).await?;
    tokio::select! {
        stayed = stay(&mut world, &stage) => stayed,
        ended = agents.join_next() => bail!("a cluster of the demo ended: {ended:?}"),
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// Says how to go on from here.
async fn invite(world: &World, stage: &Stage) -> Result<()> {
    let program = std::env::current_exe().context("it is not known which program this is")?;
    let (folder, program) = (world.folder().display(), program.display());
    let (url, pid) = (world.broker.url(), world.broker.pid());
    let text = format!(
        "
It stays up. The broker serves {url}. Paste into another terminal:

  export SUBLET_CONFIG={folder}/config.toml
  alias sublet={program}

  sublet get clusters
  sublet get reservations --watch
  sublet request --cpu 1 --memory 1Gi --duration 2m --explain --context shop
  sublet request --cpu 99 --memory 1Gi --context shop
  sublet get instructions --context hub
  sublet cordon hub --why 'kernel update'
  sublet log {folder}/data --follow
  kill -9 {pid}     # it comes back, and nothing is lost

What the clusters hear is printed here. Ctrl-C ends it and leaves nothing behind.
"
    );
    stage.say(text).await
}

/// Shows what the clusters hear, and starts the broker again when somebody killed it.
async fn stay(world: &mut World, stage: &Stage) -> Result<()> {
    loop {
        match tokio::time::timeout(LOOK_AGAIN, world.next_heard()).await {
            Ok(heard) => stage.say(acts::sentence(&heard?)).await?,
            Err(_) if world.broker.has_ended()? => {
                world.broker.restart().await?;
                let pid = world.broker.pid();
                stage.say(format!("the broker was gone, and is back as process {pid}")).await?;
            }
            Err(_) => {}
        }
    }
}
