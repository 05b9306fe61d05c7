//! `sublet explain`: why a reservation is where it is, or why it waits.

use std::io::Write;

use anyhow::Result;
use sublet_core::id::ReservationId;

use crate::connect::{Answered, Connection};
use crate::output::{self, Format, Output};

/// Which.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which.
    id: ReservationId,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connection: Connection,
}

/// Says why.
pub(crate) fn run(args: &Args) -> Result<()> {
    args.connection.run(|client| async move {
        let why = client.explain(args.id).await.answered()?;
        let mut out = output::stdout();
        match args.output.format {
            Some(Format::Json) => output::json(&why, &mut out),
            Some(Format::Yaml) => output::yaml(&why, &mut out),
            None | Some(Format::Wide | Format::Name) => Ok(writeln!(out, "{}", why.text)?),
        }
    })
}
