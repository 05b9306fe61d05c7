//! Why a folder cannot be opened: each answer says what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use sublet_core::id::Revision;

use crate::frame;
use crate::{Cause, record, snapshot};

/// Why a folder cannot be opened. What is in it was left as it was found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process uses it.
    #[error(
        "{} is in use by {}: stop that one first, or use another folder",
        .folder.display(),
        .pid.as_ref().map_or("another process".into(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// Which folder.
        folder: PathBuf,
        /// By whom, if it said so.
        pid: Option<String>,
    },
    /// A file of the set is gone.
    #[error(
        "{file} is missing in {}, but {because}: put it back, or restore a backup into an empty folder",
        .folder.display()
    )]
    MissingFile {
        /// Which folder.
        folder: PathBuf,
        /// Which file.
        file: &'static str,
        /// Why there must have been one.
        because: String,
    },
    /// The log came back shorter than what was acknowledged.
    #[error(
        "the log in {} ends at revision {found}, but revision {noted} was acknowledged: its end is \
         damaged or is not of this folder; put back all its files, or restore a backup",
        .folder.display()
    )]
    HeadBehind {
        /// Which folder.
        folder: PathBuf,
        /// What was acknowledged.
        noted: Revision,
        /// What is there.
        found: Revision,
    },
    /// From the future.
    #[error("{what} has format {found}, written by a newer sublet: upgrade this one")]
    LaterFormat {
        /// What it is about.
        what: String,
        /// Its format.
        found: u64,
    },
    /// Not what was written.
    #[error("{what} is damaged: put back all files of the folder, or restore a backup")]
    Corrupt {
        /// What it is about, with its place.
        what: String,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
    /// A restore into a folder with something in it.
    #[error("{} is not empty: restore into a new folder", .0.display())]
    NotEmpty(PathBuf),
    /// The system refused.
    #[error("could not {doing} {}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: Cause,
    },
}

impl Error {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.into(), source: source.into() }
    }

    pub(super) fn corrupt(what: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self::Corrupt { what: what.into(), source: source.into() }
    }

    /// A database that cannot be reached is not damaged; one that makes no sense is.
    pub(super) fn sqlite(doing: &'static str, path: &Path, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, SystemIoFailure};
        // The one I/O error that is about the file and not about the disk: it is too short.
        let code = error.sqlite_error().map(|error| error.extended_code);
        if code == Some(rusqlite::ffi::SQLITE_IOERR_SHORT_READ) {
            return Self::corrupt(path.display().to_string(), error);
        }
        match error.sqlite_error_code() {
            Some(CannotOpen | DiskFull | PermissionDenied | SystemIoFailure) => {
                Self::Io { doing, path: path.into(), source: error.into() }
            }
            _ => Self::corrupt(path.display().to_string(), error),
        }
    }

    pub(super) fn frame(what: impl Into<String>, error: frame::Error) -> Self {
        let what = what.into();
        match error {
            frame::Error::LaterFormat { found } => Self::LaterFormat { what, found },
            error => Self::corrupt(what, error),
        }
    }

    pub(super) fn record(what: impl Into<String>, error: record::Error) -> Self {
        match error {
            record::Error::Frame(error) => Self::frame(what, error),
            error => Self::corrupt(what, error),
        }
    }

    pub(super) fn snapshot(error: snapshot::Error) -> Self {
        match error {
            snapshot::Error::Frame(error) => Self::frame("the snapshot", error),
            error => Self::corrupt("the snapshot", error),
        }
    }
}
