//! `cargo xtask fuzz`: the fuzz targets on libFuzzer, with the stable compiler, for a bounded time each.
//!
//! Each target begins with its corpus in the tree (`fuzz/corpus/<target>`). What it finds on the way is kept outside of
//! the tree, in the cache folder, and is where the next run begins; so is an input that fails, and its path is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::metadata::{Metadata, Package};
use crate::process;
use crate::repo::{self, Repo};

/// Where the targets are: a workspace of their own, because they are built with other flags.
pub(crate) const FOLDER: &str = "fuzz";

/// What libFuzzer needs of the compiler: that every edge counts and every comparison is seen. With a sanitizer it would
/// take a nightly compiler; safe Rust has little use for one.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1";

/// What `cargo xtask fuzz` is asked to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One target; without it, all of them, one after the other
    target: Option<String>,
    /// Seconds per target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// Fuzzes one target or all of them.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let Some(target) = &args.target else {
        return Ok(every_target(repo, args.seconds)?
            .into_iter()
            .all(|passed| passed));
    };
    let known = targets(repo)?;
    ensure!(
        known.contains(target),
        "there is no fuzz target {target}; there are: {}",
        known.join(", ")
    );
    Bench::prepared(repo)?.fuzz(target, args.seconds)
}

/// Fuzzes every target for some seconds, and says of each whether it survived.
pub(crate) fn every_target(repo: &Repo, seconds: u64) -> Result<Vec<bool>> {
    let targets = targets(repo)?;
    let bench = Bench::prepared(repo)?;
    targets
        .iter()
        .map(|target| bench.fuzz(target, seconds))
        .collect()
}

fn targets(repo: &Repo) -> Result<Vec<String>> {
    let folder = repo.root().join(FOLDER);
    ensure!(folder.exists(), "there is no folder {}", folder.display());
    let metadata = Metadata::of(&folder, &[])?;
    let targets: Vec<_> = metadata
        .members()
        .flat_map(Package::programs)
        .map(str::to_owned)
        .collect();
    ensure!(!targets.is_empty(), "{} has no targets", folder.display());
    Ok(targets)
}

/// Targets that are built, and the folders that they work with.
struct Bench {
    folder: PathBuf,
    programs: PathBuf,
    findings: PathBuf,
}

impl Bench {
    /// Builds all targets.
    fn prepared(repo: &Repo) -> Result<Self> {
        let folder = repo.root().join(FOLDER);
        let cache = repo::cache()?;
        let built = cache.join("fuzz-target");
        let host = host(&folder)?;
        let mut command = process::cargo(["build", "--locked", "--release", "--bins"]);
        // A target, even though it is the host: so the flags are not for build scripts and macros.
        command
            .arg("--target")
            .arg(&host)
            .arg("--target-dir")
            .arg(&built);
        command.env("RUSTFLAGS", RUSTFLAGS);
        ensure!(
            process::passes(&folder, command)?,
            "the fuzz targets do not build"
        );
        Ok(Self {
            folder,
            programs: built.join(host).join("release"),
            findings: cache.join("fuzz"),
        })
    }

    /// Runs one target on its corpus and beyond.
    fn fuzz(&self, target: &str, seconds: u64) -> Result<bool> {
        let new_inputs = created(self.findings.join(target).join("inputs"))?;
        let failures = created(self.findings.join(target).join("failures"))?;
        let corpus = self.folder.join("corpus").join(target);
        let mut command = Command::new(self.programs.join(target));
        // The first folder is read and written, the others are read.
        command
            .arg(new_inputs)
            .args(corpus.exists().then_some(corpus));
        command.arg(format!("-max_total_time={seconds}")).args([
            "-timeout=10",
            "-verbosity=0",
            "-print_final_stats=1",
        ]);
        command.arg(format!("-artifact_prefix={}/", failures.display()));
        process::passes(&self.folder, command)
    }
}

fn created(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

/// The name of the platform that we run on.
fn host(folder: &Path) -> Result<String> {
    let mut command = Command::new("rustc");
    command.arg("--version").arg("--verbose");
    let answer = process::answer(folder, command)?;
    let host = answer.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not say which platform this is")
}
