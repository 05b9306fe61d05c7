//! `sublet release`.

use std::io::Write;

use anyhow::Result;
use sublet_core::id::{Key, ReservationId};

use crate::clock;
use crate::connect::{Answered, Connection};
use crate::output::{self, Output};

/// Which.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// By id; several at once.
    #[arg(required_unless_present = "key", conflicts_with = "key")]
    ids: Vec<ReservationId>,
    /// By the key of the request, also when its answer was lost.
    #[arg(long)]
    key: Option<Key>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connection: Connection,
}

/// Ends them.
pub(crate) fn run(args: &Args) -> Result<()> {
    args.connection.run(|client| async move {
        let mut released = Vec::new();
        for id in &args.ids {
            released.push(client.release(*id).await.answered()?);
        }
        if let Some(key) = &args.key {
            let Some(reservation) = client.release_by_key(key).await.answered()? else {
                let message = "nothing was reserved under this key, and nothing will be";
                return Ok(writeln!(output::stdout(), "{message}")?);
            };
            released.push(reservation);
        }
        output::list(&released, args.output.format, clock::now(), &mut output::stdout())
    })
}
