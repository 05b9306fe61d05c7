//! One process per folder: a lock that the system lets go when its process dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::Error;

pub(super) const LOCK: &str = "lock";

/// Held as long as the folder is used.
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Closing alone would leave the lock to a child process that is just being started and still
    /// shares the open file.
    fn drop(&mut self) {
        drop(self.file.unlock());
    }
}

impl Lock {
    pub(super) fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(LOCK);
        let io = |doing| {
            let path = path.clone();
            move |error| Error::io(doing, &path, error)
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(io("open the lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { folder: folder.into(), pid: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(io("take the lock")(error)),
        }
        // The number is only for the message that a second process prints: a full disk must not
        // keep the log from being opened and read.
        let number = format!("{}\n", std::process::id());
        drop(file.rewind().and_then(|()| file.write_all(number.as_bytes())));
        drop(file.set_len(number.len() as u64));
        Ok(Self { file })
    }
}

fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    let number = text.trim();
    let sound = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    sound.then(|| number.into())
}
