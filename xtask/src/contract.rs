//! What is made from the contracts: the description of the API, the index of the error pages, the
//! definitions of the kinds. `sublet-wire` and `sublet-crds` print them; how they are called is said
//! here and nowhere else.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::repo::Repo;
use crate::{built, process};

/// The programs that print them.
pub(crate) struct Contract {
    wire: PathBuf,
    crds: PathBuf,
}

impl Contract {
    /// Builds them.
    pub(crate) fn build(repo: &Repo) -> Result<Self> {
        let [wire, crds] = built::examples(repo, ["contract", "definition"], &[])?;
        Ok(Self { wire, crds })
    }

    /// `docs/openapi.json`.
    pub(crate) fn openapi(&self) -> Result<String> {
        printed(&self.wire, "openapi")
    }

    /// The table of `docs/errors/README.md`.
    pub(crate) fn errors(&self) -> Result<String> {
        printed(&self.wire, "errors")
    }

    /// A file of `deploy/crds`, by its name.
    pub(crate) fn definition(&self, name: &str) -> Result<String> {
        printed(&self.crds, name)
    }
}

fn printed(program: &Path, what: &str) -> Result<String> {
    let mut command = Command::new(program);
    command.arg(what);
    process::answer(Path::new("."), command)
}
