//! What is made from the contracts: the description of the API, the index of the error pages, the
//! definitions of the kinds. `sublet-wire` and `sublet-crds` print them; how they are called is said
//! here and nowhere else.

use anyhow::Result;

use crate::process;
use crate::repo::Repo;

/// `docs/openapi.json`.
pub(crate) fn openapi(repo: &Repo) -> Result<String> {
    printed(repo, "openapi")
}

/// The table of `docs/errors/README.md`.
pub(crate) fn errors(repo: &Repo) -> Result<String> {
    printed(repo, "errors")
}

/// A file of `deploy/crds`, by its name.
pub(crate) fn definition(repo: &Repo, name: &str) -> Result<String> {
    let run = ["run", "--locked", "--quiet", "--package", "sublet-crds"];
    let which = ["--example", "definition", "--", name];
    process::answer(repo.root(), process::cargo(run.into_iter().chain(which)))
}

fn printed(repo: &Repo, what: &str) -> Result<String> {
    let run = ["run", "--locked", "--quiet", "--package", "sublet-wire"];
    let which = ["--features", "openapi", "--example", "contract", "--", what];
    process::answer(repo.root(), process::cargo(run.into_iter().chain(which)))
}
