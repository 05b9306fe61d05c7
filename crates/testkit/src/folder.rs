//! The folder of a cluster: certificates, kubeconfigs, data, logs.
//!
//! It is removed with its cluster, unless the cluster did not start or the test fails: then its path
//! is printed, and the logs can be read. What a failed or killed test left behind is removed by a later one: a lock in the folder
//! tells that nobody uses it any more, and its age that nobody reads it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;

/// All of them are in this folder, in the one for temporary files.
const PARENT: &str = "sublet-clusters";
const LOCK: &str = "lock";
/// A folder gets this name when it is locked, not before.
const IN_USE: &str = "k8s-";
/// For how long the logs of a failed test can be read.
const KEPT: Duration = Duration::from_hours(1);

/// A folder, removed when it is dropped, unless the thread panics.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    kept: AtomicBool,
    _lock: File,
}

impl Folder {
    /// Makes a new one, with a part of its cluster's name in its own.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let parent = std::env::temp_dir().join(PARENT);
        fs::create_dir_all(&parent)?;
        sweep(&parent, KEPT);
        let fresh = TempDir::with_prefix_in("new-", &parent)?;
        let lock = File::create(fresh.path().join(LOCK))?;
        lock.lock()?;
        let fresh = fresh.keep();
        let random = fresh.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = parent.join(format!("{IN_USE}{name}-{}", random.trim_start_matches("new-")));
        fs::rename(fresh, &path)?;
        Ok(Self { path, kept: AtomicBool::new(false), _lock: lock })
    }

    /// Leaves it where it is, for somebody to read the logs.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() || self.kept.load(Ordering::Relaxed) {
            eprintln!("what the cluster left is kept for an hour: {}", self.path.display());
        } else if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("{} not removed: {error}", self.path.display());
        }
    }
}

/// Removes the folders that nobody uses and nobody has changed for so long. It is done in passing:
/// what cannot be removed now may be next time.
fn sweep(parent: &Path, kept: Duration) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let unused = |path: &PathBuf| {
        let lock = path.join(LOCK);
        let age = fs::metadata(&lock).and_then(|lock| lock.modified());
        let old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= kept));
        old && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
    };
    for path in entries.map(|entry| entry.path()).filter(unused) {
        drop(fs::remove_dir_all(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_with_its_cluster() {
        let folder = Folder::new("gone").unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_failed_test_leaves_it_and_a_later_one_removes_it() {
        let home = tempfile::tempdir().unwrap();
        let used = home.path().join("k8s-used");
        let left = home.path().join("k8s-left");
        let locks: Vec<_> = [&used, &left]
            .map(|folder| {
                fs::create_dir(folder).unwrap();
                File::create(folder.join(LOCK)).unwrap()
            })
            .into();
        locks[0].lock().unwrap();
        sweep(home.path(), KEPT);
        assert!(used.exists() && left.exists());
        sweep(home.path(), Duration::ZERO);
        assert!(used.exists() && !left.exists());
    }
}
