//! `sublet release`.

use std::io::Write;

use anyhow::Result;
use sublet_core::id::{Key, ReservationId};

use crate::clock;
use crate::connect::{Answered, Connection};
use crate::output::{self, Output};

/// By id, or by key.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// By id; several at once.
    #[arg(value_name = "ID")]
    ids: Vec<ReservationId>,
    /// By the key of the request, also when its answer was lost.
    #[arg(long)]
    key: Option<Key>,
}

/// Which.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connection: Connection,
}

/// Ends them.
pub(crate) fn run(args: &Args) -> Result<()> {
    args.connection.answer(args.output.format, |client| async move {
        let mut released = Vec::new();
        for id in &args.which.ids {
            released.push(client.release(*id).await.answered()?);
        }
        if let Some(key) = &args.which.key {
            let Some(reservation) = client.release_by_key(key).await.answered()? else {
                let message = "nothing was reserved under this key, and nothing will be";
                return Ok(writeln!(output::stdout(), "{message}")?);
            };
            released.push(reservation);
        }
        output::list(&released, args.output.format, clock::now(), &mut output::stdout())
    })
}
