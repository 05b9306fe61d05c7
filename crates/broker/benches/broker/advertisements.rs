//! Advertisements over mTLS, beside the null handler. They are soft state: none waits for the disk.

use anyhow::Result;

use crate::ground::Ground;
use crate::report::{Report, Table};
use crate::requests::What;
use crate::reservations::{COLUMNS, Pair, row};

pub(crate) fn run(report: &mut Report, ground: &Ground) -> Result<()> {
    let mut table = Table::new("Advertisements over mTLS", &COLUMNS);
    let mut pair = Pair::start(ground, What::Advertise, "advertisements")?;
    for connections in [1, 64] {
        row(&mut table, connections.to_string(), &pair.turns(connections, None)?);
    }
    report.add(table);
    Ok(())
}
