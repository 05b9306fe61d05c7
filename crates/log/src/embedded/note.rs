//! Soft notes: a file each, replaced whole, never synced, and forgotten when they do not check out.

use std::io;
use std::path::{Path, PathBuf};

use crate::frame::Checksum;

/// Where they are.
pub(super) const FOLDER: &str = "notes";
const CHECKSUM_BYTES: usize = 16;

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(FOLDER).join(name)
}

/// The note, if there is one that can be believed; its loss is never an error.
pub(super) fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
    crate::check_note(name, &[]).ok()?;
    let mut bytes = std::fs::read(path(folder, name)).ok()?;
    let checksum = bytes.first_chunk::<CHECKSUM_BYTES>().copied()?;
    let note = bytes.split_off(CHECKSUM_BYTES);
    (Checksum::of(&note).to_bytes() == checksum).then_some(note)
}

pub(super) fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = path(folder, name);
    if bytes.is_empty() {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    std::fs::create_dir_all(folder.join(FOLDER))?;
    // A dot cannot be in a name, so the draft is nobody's note.
    let draft = path.with_extension("new");
    let checksum = Checksum::of(bytes).to_bytes();
    std::fs::write(&draft, [&checksum, bytes].concat())?;
    std::fs::rename(&draft, &path)
}
