//! What cargo knows of the workspace and its dependencies (`cargo metadata`), as far as the checks
//! here ask.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process;

/// The packages that a workspace is built from.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    /// The workspace's own and everybody else's, on the platforms that were asked for.
    pub(crate) packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
}

/// One package: a crate of ours or of somebody else.
#[derive(Clone, Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Where it comes from; nothing for a package that lies in the tree.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

/// What a package says that it needs.
#[derive(Clone, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev` where only tests and benches need it.
    kind: Option<String>,
}

impl Dependency {
    /// Is it needed by tests and benches alone?
    pub(crate) fn is_for_tests(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// Something that a package builds: a library, a program, a test.
#[derive(Clone, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Metadata {
    /// Asks cargo about the workspace of a folder, on these platforms only.
    pub(crate) fn of(folder: &Path, targets: &[String]) -> Result<Self> {
        let mut command = process::cargo(["metadata", "--format-version=1", "--locked"]);
        for target in targets {
            command.arg("--filter-platform").arg(target);
        }
        let text = process::answer(folder, command)?;
        serde_json::from_str(&text).context("understanding what cargo metadata answered")
    }

    /// The crates of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }
}

impl Package {
    /// The names of the programs that it builds.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &str> {
        let is_program = |target: &&Target| target.kind.iter().any(|kind| kind == "bin");
        self.targets.iter().filter(is_program).map(|target| target.name.as_str())
    }
}

#[cfg(test)]
impl Package {
    /// A package for tests of checks.
    pub(crate) fn sample(name: &str, dependencies: &[&str]) -> Self {
        let kind = || Some("dev".to_owned());
        let dependency = |name: &&str| Dependency { name: (*name).to_owned(), kind: kind() };
        Self {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: None,
            source: None,
            dependencies: dependencies.iter().map(dependency).collect(),
            targets: Vec::new(),
        }
    }

    /// What a package needs to be built.
    pub(crate) fn sample_needed(names: &[&str]) -> Vec<Dependency> {
        names.iter().map(|name| Dependency { name: (*name).to_owned(), kind: None }).collect()
    }
}
