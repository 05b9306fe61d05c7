//! Where a process serves, in a file for whoever started it with port 0.

use std::io;
use std::path::Path;

use serde::Serialize;

/// Writes the addresses as JSON. Whoever waits for the file never sees half of it.
pub fn write(path: &Path, addresses: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(addresses).map_err(io::Error::from)?;
    let half = path.with_extension("part");
    std::fs::write(&half, text)?;
    std::fs::rename(&half, path)
}
