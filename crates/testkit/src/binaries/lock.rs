//! A lock that processes of one machine take in turn: a file, locked by the kernel, so that it is
//! free again whatever happens to its holder.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Held until it is dropped.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock; `waits` is told once if somebody else has it.
    pub(super) fn take(path: &Path, waits: impl FnOnce()) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        if file.try_lock().is_err() {
            waits();
            file.lock()?;
        }
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;

    #[test]
    fn whoever_comes_second_is_told_and_waits() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("folder").join("lock");
        let first = Lock::take(&path, || panic!("nobody has it")).unwrap();
        let (tell, told) = sync_channel(1);
        thread::scope(|scope| {
            let second = scope.spawn(|| Lock::take(&path, || tell.send("waits").unwrap()));
            assert_eq!(told.recv(), Ok("waits"));
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().unwrap().is_ok());
        });
    }
}
