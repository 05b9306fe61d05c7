//! `sublet ca revoke`: tells the broker which certificates of ours it must not believe any more.

use std::io::Write;

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use sublet_wire::v1::Revocation;

use super::{Authority, Place};
use crate::connect::{Answered, Connection};
use crate::exit::{Exit, Stop};
use crate::output;

/// Which.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The name or the serial number that it was issued under.
    #[arg(value_name = "NAME|SERIAL")]
    which: String,
    #[command(flatten)]
    place: Place,
    /// Why, for the log.
    #[arg(long, value_name = "REASON", value_parser = NonEmptyStringValueParser::new(), default_value = "revoked by its CA")]
    why: String,
    #[command(flatten)]
    connection: Connection,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let found = Authority::open(&args.place.folder()?)?.register().find(&args.which)?;
    if found.is_empty() {
        let message = format!("no certificate was issued as {}: see sublet ca list", args.which);
        return Err(Stop::new(Exit::NotFound, message).into());
    }
    args.connection.run(|client| async move {
        let mut out = output::stdout();
        for entry in found {
            let revocation = Revocation {
                serial: Some(entry.serial.clone()),
                why: args.why.clone(),
                ..Revocation::default()
            };
            client.revoke(&revocation).await.answered()?;
            let (name, serial) = (&entry.name, &entry.serial);
            writeln!(out, "revoked the certificate of {name} with serial {serial}")?;
        }
        Ok(())
    })
}
