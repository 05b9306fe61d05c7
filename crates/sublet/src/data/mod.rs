//! What operators do with a data folder, without a broker: print, check, copy, restore.
//!
//! A folder that a broker uses is looked at beside it, as it stood when the look began.

pub(crate) mod backup;
pub(crate) mod fsck;
pub(crate) mod log;
pub(crate) mod restore;
mod sentence;

use std::path::Path;

use anyhow::{Context, Result};
use sublet_log::embedded::Embedded;

use crate::exit::{Exit, Stop};

/// Opens a folder to look at it, whether a broker uses it or not.
fn look(folder: &Path) -> Result<Embedded> {
    if !folder.is_dir() {
        let hint = "name the folder that the broker was given as --data-dir";
        let message = format!("there is no folder {}: {hint}", folder.display());
        return Err(Stop::new(Exit::NotFound, message).into());
    }
    Embedded::look(folder).with_context(|| format!("the log in {} not opened", folder.display()))
}
