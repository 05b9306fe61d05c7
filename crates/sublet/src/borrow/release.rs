//! `sublet release`.

use std::io::Write;

use anyhow::Result;
use sublet_core::id::{Key, ReservationId};
use sublet_wire::v1::Reservation;

use crate::clock;
use crate::connect::{Answered, Connection};
use crate::exit::{Stop, status};
use crate::output::{self, Format, Output};

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
    let format = args.output.format;
    args.connection.answer(format, |client| async move {
        if let Some(key) = &args.which.key {
            return match client.release_by_key(key).await.answered()? {
                Some(reservation) => show(&[reservation], format),
                None => show_nothing(format),
            };
        }
        let mut released = Vec::new();
        for id in &args.which.ids {
            match client.release(*id).await.answered() {
                Ok(reservation) => released.push(reservation),
                Err(error) if released.is_empty() => return Err(error),
                Err(error) => {
                    show(&released, format)?;
                    // Its answer is not printed beside the list, which is one document.
                    let message =
                        format!("{id} and what comes after it was not released: {error:#}");
                    return Err(Stop::new(status(&error), message).into());
                }
            }
        }
        show(&released, format)
    })
}

fn show(released: &[Reservation], format: Option<Format>) -> Result<()> {
    output::list(released, format, clock::now(), &mut output::stdout())
}

fn show_nothing(format: Option<Format>) -> Result<()> {
    match format {
        Some(Format::Json | Format::Yaml | Format::Name) => show(&[], format),
        None | Some(Format::Wide) => {
            let message = "nothing was reserved under this key, and nothing will be";
            Ok(writeln!(output::stdout(), "{message}")?)
        }
    }
}
