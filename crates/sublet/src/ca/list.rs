//! `sublet ca list`.

use anyhow::Result;
use sublet_core::time::Time;

use super::register::Entry;
use super::{Authority, Place, Role};
use crate::clock;
use crate::output::{self, Cell, Column, Output, Row, age, left};

/// Of which CA, and how.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: Output,
}

impl Row for Entry {
    const COLUMNS: &'static [Column] = &[
        Column::new("NAME"),
        Column::new("ROLE"),
        Column::new("SERIAL"),
        Column::new("AGE"),
        Column::new("EXPIRES IN"),
    ];

    fn cells(&self, now: Time) -> Vec<Cell> {
        let role = match self.role {
            Role::Cluster => "cluster",
            Role::Operator => "operator",
            Role::Server => "server",
        };
        vec![
            self.name.as_str().into(),
            role.into(),
            self.serial.as_str().into(),
            age(Some(clock::time(self.issued)), now).into(),
            left(Some(clock::time(self.expires)), now).into(),
        ]
    }

    fn name(&self) -> String {
        self.name.to_string()
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    let entries = Authority::open(&args.place.folder()?)?.register().entries()?;
    output::list(&entries, args.output.format, clock::now(), &mut output::stdout())
}
