//! The working tree: where it is, which text files it holds, and where what must stay outside of it
//! goes.
//!
//! Files are found by walking rather than by asking git, so that an unpacked archive can be checked
//! too. What `.gitignore` anchors at the root (`/target`) is left out, which is the only kind of
//! entry that the project uses; so is any folder that is tagged as a cache, as cargo tags its
//! output.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::source::Source;

/// The tree that this program was built from.
pub(crate) struct Repo {
    root: PathBuf,
}

impl Repo {
    /// The workspace that holds this crate.
    pub(crate) fn here() -> Self {
        let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self { root: xtask.parent().unwrap_or(xtask).to_owned() }
    }

    /// The root folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The text of one file by its path from the root, or nothing when there is no such file.
    pub(crate) fn read(&self, path: &str) -> Result<Option<String>> {
        let path = self.root.join(path);
        if !path.exists() {
            return Ok(None);
        }
        fs::read_to_string(&path).map(Some).with_context(|| format!("reading {}", path.display()))
    }

    /// Replaces the text of one file.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Every text file of the tree, by path; files that are not UTF-8 are not text.
    pub(crate) fn sources(&self) -> Result<Vec<Source>> {
        let mut ignored = vec![".git".to_owned()];
        let listed = self.read(".gitignore")?.unwrap_or_default();
        ignored.extend(listed.lines().filter_map(|line| line.strip_prefix('/')).map(str::to_owned));
        let mut found = Vec::new();
        self.walk("", &ignored, &mut found)?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn walk(&self, folder: &str, ignored: &[String], found: &mut Vec<Source>) -> Result<()> {
        let listing = self.root.join(folder);
        for entry in
            fs::read_dir(&listing).with_context(|| format!("listing {}", listing.display()))?
        {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if ignored.contains(&path) || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() && entry.path().join("CACHEDIR.TAG").exists() {
                continue;
            }
            if kind.is_dir() {
                self.walk(&path, ignored, found)?;
            } else if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                found.push(Source { path, text });
            }
        }
        Ok(())
    }
}

/// The folder for what these commands keep between runs: `$XDG_CACHE_HOME/sublet` or
/// `~/.cache/sublet`.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME says where a cache may be")?;
    Ok(base.join("sublet"))
}

/// Does a machine run this, with nobody watching?
pub(crate) fn is_ci() -> bool {
    variable("CI").is_some_and(|value| value == "true")
}

/// A variable of the environment, unless it is unset or empty.
#[expect(clippy::disallowed_methods, reason = "the one place where xtask reads the environment")]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
