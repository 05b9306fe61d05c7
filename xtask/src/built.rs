//! Programs of this workspace that other commands run.
//!
//! All are built as `cargo test --workspace` builds them, features of all members taken together: what
//! the tests have built is used again, and the other way round. Built for its own package alone, each
//! would have its own copy of half of the dependencies.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;
use crate::repo::Repo;

/// Builds examples, and programs, and says where the examples are, in their order.
pub(crate) fn examples<const N: usize>(
    repo: &Repo,
    names: [&str; N],
    programs: &[&str],
) -> Result<[PathBuf; N]> {
    let mut command = process::cargo(["build", "--locked", "--quiet", "--workspace"]);
    for name in names {
        command.args(["--example", name]);
    }
    for name in programs {
        command.args(["--bin", name]);
    }
    command.arg("--message-format=json-render-diagnostics");
    let said = process::answer(repo.root(), command)?;
    let mut paths = names.map(|_| PathBuf::new());
    for (name, path) in names.iter().zip(&mut paths) {
        let found = said.lines().find_map(|line| executable(line, name, "example"));
        *path = found.with_context(|| format!("cargo did not say where {name} is"))?;
    }
    Ok(paths)
}

/// The path of something that was built, if the line is about it.
pub(crate) fn executable(line: &str, name: &str, kind: &str) -> Option<PathBuf> {
    let line: Value = serde_json::from_str(line).ok()?;
    let target = &line["target"];
    let is_it = target["name"] == name && target["kind"][0] == kind;
    is_it.then(|| line["executable"].as_str().map(PathBuf::from))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_what_cargo_says() {
        let line = r#"{"reason":"compiler-artifact","target":{"kind":["example"],"name":"rig"},
            "executable":"/t/debug/examples/rig"}"#;
        assert_eq!(
            executable(line, "rig", "example"),
            Some(PathBuf::from("/t/debug/examples/rig"))
        );
        assert_eq!(executable(line, "other", "example"), None);
        let library = r#"{"target":{"kind":["lib"],"name":"rig"},"executable":null}"#;
        assert_eq!(executable(library, "rig", "example"), None);
        assert_eq!(executable("Compiling", "rig", "example"), None);
    }
}
