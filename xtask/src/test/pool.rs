//! Runs tests of several test programs together, some at a time, each in a process of its own.
//!
//! Cargo runs one test program after the other. Where a test takes minutes, and waits for most of them, the last of each
//! program has the machine for itself while those of the next wait for it. Here they all stand in one line, and the summary
//! says how long each took.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::again::Seen;
use crate::process;
use crate::repo::Repo;

/// A test program.
struct Program {
    path: PathBuf,
    /// The folder of its package, in which cargo would run it.
    folder: PathBuf,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Test {
    program: PathBuf,
    folder: PathBuf,
    name: String,
}

/// Which tests, and how.
pub(super) struct Line<'a> {
    /// Part of the names of those that are meant.
    pub(super) module: &'a str,
    /// Parts of the names of those that take longest: they begin.
    pub(super) first: &'a [&'a str],
    pub(super) at_once: usize,
    pub(super) environment: &'a [(&'a str, &'a str)],
}

impl Line<'_> {
    /// Runs them all; what they said, and whether all passed. Each line is shown when its test has ended.
    pub(super) fn run(&self, repo: &Repo) -> Result<(Seen, bool)> {
        let waiting = Mutex::new(VecDeque::from(self.tests(repo)?));
        let ended = Mutex::new((Seen::default(), true, Vec::new()));
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let one_after_the_other = || -> Result<()> {
            while let Some(test) = next() {
                let (output, took) = process::timed(|| self.command(&test).output());
                let output = output.with_context(|| format!("starting {}", test.name))?;
                let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                println!("{} ended after {:.1} s", test.name, took.as_secs_f64());
                for line in String::from_utf8_lossy(&output.stdout).lines() {
                    ended.0.read(line);
                    if !output.status.success() {
                        println!("{line}");
                    }
                }
                ended.1 &= output.status.success();
                ended.2.push((took, test.name));
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..self.at_once).map(|_| scope.spawn(one_after_the_other)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().map_err(|_| anyhow::anyhow!("a thread of xtask died"))?
            })
        })?;
        let (seen, passed, times) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        print!("{}", table(times));
        Ok((seen, passed))
    }

    fn command(&self, test: &Test) -> Command {
        let mut command = process::program(&test.program);
        command.current_dir(&test.folder).args([test.name.as_str(), "--exact"]);
        // What it says while it goes well is nothing that anybody reads between the words of the others.
        command
            .envs(self.environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        command
    }

    /// In the order in which they begin.
    fn tests(&self, repo: &Repo) -> Result<Vec<Test>> {
        let mut all = Vec::new();
        for program in programs(repo)? {
            let mut command = process::program(&program.path);
            command.args([self.module, "--list"]);
            let listed = process::answer(&program.folder, command)?;
            let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
            all.extend(names.map(|name| Test {
                program: program.path.clone(),
                folder: program.folder.clone(),
                name: name.to_owned(),
            }));
        }
        let rank = |test: &Test| self.first.iter().position(|part| test.name.contains(part));
        all.sort_by_key(|test| rank(test).unwrap_or(usize::MAX));
        Ok(all)
    }
}

/// Builds all test programs of the workspace, and says where they are.
fn programs(repo: &Repo) -> Result<Vec<Program>> {
    let mut command = process::cargo(["test", "--locked", "--workspace", "--tests", "--no-run"]);
    command.args(["--quiet", "--message-format=json-render-diagnostics"]);
    let said = process::answer(repo.root(), command)?;
    Ok(said.lines().filter_map(program).collect())
}

/// The test program that a line of cargo's is about; those of unit tests have none that are meant here.
fn program(line: &str) -> Option<Program> {
    let line: Value = serde_json::from_str(line).ok()?;
    let path = line["executable"].as_str().filter(|_| line["target"]["kind"][0] == "test")?;
    let folder = Path::new(line["manifest_path"].as_str()?).parent()?;
    Some(Program { path: path.into(), folder: folder.into() })
}

/// How long each took, the longest first.
fn table(mut times: Vec<(Duration, String)>) -> String {
    times.sort_by(|one, other| other.cmp(one));
    let all: Duration = times.iter().map(|(took, _)| *took).sum();
    let all = format!("{:>7.1} s in all, one after the other:\n", all.as_secs_f64());
    let each = times.iter().map(|(took, name)| format!("{:>7.1} s  {name}\n", took.as_secs_f64()));
    std::iter::once(all).chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_what_cargo_says() {
        let line = |kind: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/agent/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"suite"}},"executable":"/t/suite-1"}}"#
            )
        };
        let found = program(&line("test")).unwrap();
        assert_eq!((found.path, found.folder), ("/t/suite-1".into(), "/r/crates/agent".into()));
        assert!(program(&line("lib")).is_none(), "unit tests start no clusters");
        assert!(program("Compiling").is_none());
    }

    #[test]
    fn the_longest_is_named_first() {
        let times = [(1, "short"), (70, "long")];
        let times = times.map(|(took, name)| (Duration::from_secs(took), name.to_owned()));
        let text = table(times.to_vec());
        assert!(text.find("long") < text.find("short"), "{text}");
        assert!(text.contains("71.0 s in all"), "{text}");
    }
}
