//! What was issued: one line of JSON each, only ever added to. It is how `ca revoke NAME` knows
//! which certificates there are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sublet_core::id::ClusterId;

use super::authority::Role;
use super::file::append_line;

/// One certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// The CN.
    pub(crate) name: ClusterId,
    /// In lower-case hex, as the broker writes it.
    pub(crate) serial: String,
    /// For whom.
    pub(crate) role: Role,
    /// When.
    pub(crate) issued: Timestamp,
    /// When it is over.
    pub(crate) expires: Timestamp,
}

/// The file.
pub(crate) struct Register(PathBuf);

impl Register {
    pub(super) fn of(folder: &Path) -> Self {
        Self(folder.join("issued.jsonl"))
    }

    pub(super) fn issued(&self, entry: &Entry) -> Result<()> {
        append_line(&self.0, &serde_json::to_string(entry)?)
    }

    /// Everything, oldest first.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).with_context(|| format!("{} not read", self.0.display()));
            }
        };
        let line = |(number, line): (usize, &str)| {
            serde_json::from_str(line)
                .with_context(|| format!("line {} of {} is damaged", number + 1, self.0.display()))
        };
        text.lines().enumerate().map(line).collect()
    }

    /// Those of a name, or the one of a serial number.
    pub(crate) fn find(&self, name_or_serial: &str) -> Result<Vec<Entry>> {
        let serial = name_or_serial.to_ascii_lowercase().replace(':', "");
        let is_it = |entry: &Entry| entry.name.as_str() == name_or_serial || entry.serial == serial;
        Ok(self.entries()?.into_iter().filter(is_it).collect())
    }
}
