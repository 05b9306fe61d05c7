//! `sublet explain`: why a reservation is where it is, or why it waits.

use std::io::Write;

use anyhow::Result;
use sublet_core::id::ReservationId;
use sublet_wire::v1::Explanation;

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

/// The reasons for people: who was chosen and how, or why nobody was, and what is not told.
pub(crate) fn reasons(why: &Explanation) -> String {
    let mut said = why.text.clone();
    if let Some(granted) = &why.granted {
        said.push_str(match granted.strategy.as_str() {
            "headroom" => "\nchosen because it keeps the largest share free",
            "binpack" => "\nchosen because it keeps the smallest share free",
            "cost" => "\nchosen because it is the cheapest",
            _ => "",
        });
    }
    if let Some(withheld) = &why.withheld {
        said.push_str("\nnot shown: ");
        said.push_str(withheld);
    }
    said
}

/// Says why.
pub(crate) fn run(args: &Args) -> Result<()> {
    args.connection.answer(args.output.format, |client| async move {
        let why = client.explain(args.id).await.answered()?;
        let mut out = output::stdout();
        match args.output.format {
            Some(Format::Json) => output::json(&why, &mut out),
            Some(Format::Yaml) => output::yaml(&why, &mut out),
            None | Some(Format::Wide | Format::Name) => Ok(writeln!(out, "{}", reasons(&why))?),
        }
    })
}
