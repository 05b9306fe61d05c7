//! `cargo xtask tidy`: the rules of this tree that neither compiler nor clippy can check, so that
//! they survive growth.
//!
//! Each check is a pure function in its own file, from files (or from what cargo says) to
//! violations. This file only gathers what they look at and prints what they find.

mod violation;
mod stages;
pub(crate) mod arrows;
mod length;
mod ratchet;
mod markers;
mod names;
mod links;
mod metrics;
mod errors;
mod licence;
mod supply;

pub(crate) use violation::Violation;

use anyhow::{Context, Result};

use crate::fuzz;
use crate::generated;
use crate::metadata::Metadata;
use crate::repo::Repo;
use crate::source::Source;
use ratchet::{Figure, Ratchet};
use supply::Deny;

/// What `cargo xtask tidy` is asked to do; without a flag, to check.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the road of the data, stage by stage, instead of checking
    #[arg(long)]
    stages: bool,
    /// Lower the figures of xtask/ratchet.txt to what they are now, instead of checking
    #[arg(long, conflicts_with = "stages")]
    ratchet: bool,
}

/// Checks, or does what the flag says.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let sources = repo.sources()?;
    if args.stages {
        print!("{}", stages::road(&sources));
        return Ok(true);
    }
    if args.ratchet {
        repo.write(ratchet::PATH, &listed(repo)?.lowered(&figures(&sources)).to_string())?;
        return Ok(true);
    }
    let mut found = violations(repo)?;
    found.extend(generated::stale(repo)?);
    Ok(report(&found))
}

/// Prints what was found; says whether that was nothing.
pub(crate) fn report(found: &[Violation]) -> bool {
    for violation in found {
        println!("{violation}");
    }
    match found.len() {
        0 => println!("nothing to object"),
        1 => println!("1 violation"),
        many => println!("{many} violations"),
    }
    found.is_empty()
}

/// Everything that the checks find, in the order of the tree.
pub(crate) fn violations(repo: &Repo) -> Result<Vec<Violation>> {
    let sources = repo.sources()?;
    let mut found: Vec<_> = sources.iter().flat_map(one_file).collect();
    found.extend(stages::check(&sources));
    found.extend(links::check(&sources));
    found.extend(metrics::check(&sources));
    found.extend(errors::check(&sources));
    found.extend(listed(repo)?.check(&figures(&sources)));
    found.extend(dependencies(repo)?);
    found.sort();
    found.dedup();
    Ok(found)
}

fn one_file(source: &Source) -> Vec<Violation> {
    // What cargo writes is cargo's; it names the registry.
    if source.path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut found = markers::check(source);
    found.extend(names::check(source));
    found
}

fn figures(sources: &[Source]) -> Vec<Figure> {
    sources.iter().flat_map(length::measure).collect()
}

fn listed(repo: &Repo) -> Result<Ratchet> {
    Ratchet::parse(&repo.read(ratchet::PATH)?.context("xtask/ratchet.txt is missing")?)
}

/// The arrows of our workspace, and what it and the fuzz targets' bring in from outside.
fn dependencies(repo: &Repo) -> Result<Vec<Violation>> {
    let deny = Deny::parse(&repo.read(supply::PATH)?.context("deny.toml is missing")?)?;
    let ours = Metadata::of(repo.root(), &deny.graph.targets)?;
    let mut found = arrows::check(ours.members());
    found.extend(deny.check(&ours.packages));
    if let Some(fuzz) = fuzz::folder(repo) {
        found.extend(deny.check(&Metadata::of(&fuzz, &deny.graph.targets)?.packages));
    }
    Ok(found)
}
