//! `sublet get`: what the broker knows, as far as the certificate may see it.

mod candidates;
mod clusters;
mod instructions;
mod reservations;
mod revocations;

use std::future::Future;
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use sublet_wire::client::Client;

use crate::clock;
use crate::connect::{Connection, Patient};
use crate::output::{self, Output, Row, Watch};

/// How often a list is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What to look at.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Clusters, and what is free on them; a cluster sees itself alone.
    #[command(visible_alias = "cluster")]
    Clusters(clusters::Args),
    /// Reservations, on either side; an operator sees all.
    #[command(visible_aliases = ["reservation", "rsv"])]
    Reservations(reservations::Args),
    /// What the cluster of the certificate must do now.
    #[command(visible_alias = "instruction")]
    Instructions(instructions::Args),
    /// Operators: what every cluster is to a request.
    Candidates(Box<candidates::Args>),
    /// Operators: which certificates are not believed.
    Revocations(revocations::Args),
}

impl Command {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Clusters(args) => clusters::run(&args),
            Self::Reservations(args) => reservations::run(&args),
            Self::Instructions(args) => instructions::run(&args),
            Self::Candidates(args) => candidates::run(&args),
            Self::Revocations(args) => revocations::run(&args),
        }
    }
}

/// How to look.
#[derive(clap::Args)]
struct Look {
    #[command(flatten)]
    output: Output,
    /// Go on with what changes, until interrupted.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Look {
    fn answer<F: Future<Output = Result<()>>>(&self, act: impl FnOnce(Client) -> F) -> Result<()> {
        self.connection.answer(self.output.format, act)
    }

    /// Prints what `read` gives, once or whenever it has changed.
    async fn show<R: Row>(&self, read: impl AsyncFn() -> Result<Vec<R>>) -> Result<()> {
        let format = self.output.format;
        if !self.watch {
            return output::list(&read().await?, format, clock::now(), &mut output::stdout());
        }
        let (mut watch, mut patient) = (Watch::new::<R>(format), Patient::default());
        // What cannot be looked at for the first time is more likely a slip than a broker that restarts.
        let mut found = Some(read().await?);
        loop {
            if let Some(rows) = found {
                watch.print(&rows, clock::now(), &mut output::stdout())?;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            found = patient.wait_for(read().await)?;
        }
    }
}
