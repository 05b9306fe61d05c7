//! Files that are written once: never over another one, whole or not at all, keys for the owner
//! alone.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody, as certificates may be.
    Everybody,
    /// The owner alone, as keys must be.
    Owner,
}

/// None of these files may be there.
pub(super) fn check_absent(folder: &Path, names: &[&str]) -> Result<()> {
    let mut paths = names.iter().map(|name| folder.join(name));
    match paths.find(|path| path.exists()) {
        Some(path) => {
            bail!(
                "{} exists, and is not written over: name another folder (--out; for a CA --dir)",
                path.display()
            )
        }
        None => Ok(()),
    }
}

/// Writes a file that is not there yet.
pub(super) fn write_new(path: &Path, text: &str, access: Access) -> Result<()> {
    let mode = match access {
        Access::Everybody => 0o644,
        Access::Owner => 0o600,
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = file.with_context(|| format!("{} not made", path.display()))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.with_context(|| format!("{} not written", path.display()))
}

/// Makes a folder and those above it.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("the folder {} not made", path.display()))
}

/// Adds a line to a file that only grows.
pub(super) fn append_line(path: &Path, line: &str) -> Result<()> {
    let write = || {
        let mut file: File = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()
    };
    write().with_context(|| format!("{} not written", path.display()))
}
