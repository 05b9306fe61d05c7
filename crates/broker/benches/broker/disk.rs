//! One write with its fdatasync, in the folder where the broker's log is: what durable costs at least.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use crate::clock::{self, Spread, Waits};
use crate::ground::Ground;

/// About what the log writes for one reservation.
const RECORD: [u8; 1024] = [b'.'; 1024];

/// Appends for about so long.
pub(crate) fn fsync(ground: &Ground, length: Duration) -> Result<Spread> {
    let mut file = File::create(ground.folder().join("plain"))?;
    let (start, mut waits) = (clock::now(), Waits::new()?);
    while start.elapsed() < length {
        let began = clock::now();
        file.write_all(&RECORD)?;
        file.sync_data()?;
        waits.add(began.elapsed());
    }
    Ok(waits.spread())
}
