//! What is made from the contract with clients: the description of the API, and the index of the
//! error pages. `sublet-wire` prints both; how it is called is said here and nowhere else.

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

fn printed(repo: &Repo, what: &str) -> Result<String> {
    let run = ["run", "--locked", "--quiet", "--package", "sublet-wire"];
    let which = ["--features", "openapi", "--example", "contract", "--", what];
    process::answer(repo.root(), process::cargo(run.into_iter().chain(which)))
}
