//! The file with the contexts. It is written whole or not at all, and only its owner reads it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::Context;
use crate::exit::{Exit, Stop};

/// The file as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current_context: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

/// The contexts, and where they are kept.
pub(crate) struct Config {
    path: PathBuf,
    written: Written,
}

impl Config {
    /// Reads it; a file that is not there holds no contexts.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let written = match fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text)
                .with_context(|| format!("{} is not understood: correct it", path.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Written::default(),
            Err(error) => {
                return Err(error).with_context(|| format!("{} not read", path.display()));
            }
        };
        Ok(Self { path: path.into(), written })
    }

    /// All of them, by name.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = (&str, &Context)> {
        self.written.contexts.iter().map(|(name, context)| (name.as_str(), context))
    }

    /// The one in use.
    pub(crate) fn current(&self) -> Option<&str> {
        self.written.current_context.as_deref()
    }

    /// One of them, with paths that everybody understands.
    pub(crate) fn context(&self, name: &str) -> Result<Context> {
        let context = self.written.contexts.get(name).ok_or_else(|| self.unknown(name))?;
        Ok(context.in_folder(self.path.parent().unwrap_or(Path::new("."))))
    }

    fn unknown(&self, name: &str) -> Stop {
        let names: Vec<_> = self.written.contexts.keys().map(String::as_str).collect();
        let known = match names.as_slice() {
            [] => "there are none; make one with: sublet config set-context".into(),
            names => format!("there are {}", names.join(", ")),
        };
        Stop::new(Exit::NotFound, format!("there is no context {name}: {known}"))
    }

    pub(super) fn use_context(&mut self, name: &str) -> Result<()> {
        self.context(name)?;
        self.written.current_context = Some(name.into());
        self.save()
    }

    /// Makes or changes one; the first one is in use at once. Says whether it is new.
    pub(super) fn set(
        &mut self,
        name: &str,
        change: impl FnOnce(Option<Context>) -> Result<Context>,
    ) -> Result<bool> {
        let old = self.written.contexts.get(name).cloned();
        let made = old.is_none();
        self.written.contexts.insert(name.into(), change(old)?);
        self.written.current_context.get_or_insert_with(|| name.into());
        self.save()?;
        Ok(made)
    }

    pub(super) fn delete(&mut self, name: &str) -> Result<()> {
        if self.written.contexts.remove(name).is_none() {
            return Err(self.unknown(name).into());
        }
        if self.current() == Some(name) {
            self.written.current_context = None;
        }
        self.save()
    }

    /// Beside its place first, then in its place: no reader sees half of it. A draft is readable
    /// by its owner alone.
    fn save(&self) -> Result<()> {
        let folder = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let write = || -> Result<()> {
            fs::create_dir_all(folder)?;
            let mut draft = tempfile::NamedTempFile::new_in(folder)?;
            draft.write_all(toml::to_string_pretty(&self.written)?.as_bytes())?;
            draft.as_file().sync_all()?;
            draft.persist(&self.path)?;
            Ok(())
        };
        write().with_context(|| format!("{} not written", self.path.display()))
    }
}
