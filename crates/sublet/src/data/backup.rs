//! `sublet backup`: a copy of a log as one file, made while its broker runs or when none does.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sublet_log::backup::{self, Extent};

use crate::output;
use crate::progress::Progress;

/// Of which log, to where.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The broker's data folder.
    dir: PathBuf,
    /// The new file; one that is there is not written over.
    file: PathBuf,
}

/// Writes it, reads it back, and only then gives it its name.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.file.exists() {
        bail!("{} exists, and is not written over: name another file", args.file.display());
    }
    let progress = Progress::start(format!("copying {}", args.dir.display()));
    let log = super::look(&args.dir)?;
    let folder = match args.file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Beside its place, so that the last step is a rename; removed whatever goes wrong before.
    let mut draft = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("no file can be made in {}", folder.display()))?;
    let mut writer = BufWriter::new(draft.as_file_mut());
    let extent = backup::backup(&log, &mut writer).context("the backup was not made")?;
    writer.flush().context("the backup was not written")?;
    drop(writer);
    draft.as_file().sync_all().context("the backup was not written")?;
    verify(draft.path(), extent)?;
    let draft = draft.into_temp_path();
    draft.persist_noclobber(&args.file).context("the backup did not get its name")?;
    File::open(folder).and_then(|folder| folder.sync_all()).context("the folder is not synced")?;
    drop(progress);
    let bytes = fs::metadata(&args.file).map_or(0, |metadata| metadata.len());
    let (revision, file) = (extent.head.revision, args.file.display());
    writeln!(
        output::stdout(),
        "{file}: the log up to revision {revision}, {bytes} bytes, verified"
    )?;
    Ok(())
}

fn verify(path: &Path, extent: Extent) -> Result<()> {
    let file = File::open(path).context("the backup cannot be read back")?;
    let (found, _) = backup::verify(BufReader::new(file)).context("the backup is not sound")?;
    if found != extent {
        bail!("the backup does not hold what was copied: try again");
    }
    Ok(())
}
