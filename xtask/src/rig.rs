//! `cargo xtask kube` and `cargo xtask clusters`: real Kubernetes control planes without containers.
//! The testkit has a program that does both; how it is called is said here and nowhere else.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::repo::Repo;
use crate::{built, process};

/// What its program answers when a kit can neither be found nor built.
const NO_PROGRAMS: i32 = 3;

/// Which programs; those that tests run, in any case.
#[derive(clap::Args)]
pub(crate) struct Wanted {
    /// Liqo's command line as well, some minutes more
    #[arg(long)]
    liqoctl: bool,
}

/// Programs that are had or missing together, as the testkit's program calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kit {
    /// etcd, Kubernetes, kubectl and KWOK.
    Kubernetes,
    /// Liqo's controllers.
    Liqo,
    /// Liqo's command line.
    Liqoctl,
}

impl Kit {
    const fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Liqo => "liqo",
            Self::Liqoctl => "liqoctl",
        }
    }
}

/// What is passed on.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `up 3 --nodes 5 --broker`, or `--help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    rest: Vec<String>,
}

/// Whether there are programs to make clusters of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    /// They are there, or were built.
    Here,
    /// There is no way to get them, which has been said.
    Missing,
}

/// Finds or builds everything that is wanted; whether all of it is there.
pub(crate) fn kube(repo: &Repo, wanted: &Wanted) -> Result<bool> {
    let liqoctl = wanted.liqoctl.then_some(Kit::Liqoctl);
    let mut all = true;
    for kit in [Kit::Kubernetes, Kit::Liqo].into_iter().chain(liqoctl) {
        all &= programs(repo, kit)? == Programs::Here;
    }
    Ok(all)
}

/// Finds or builds a kit.
pub(crate) fn programs(repo: &Repo, kit: Kit) -> Result<Programs> {
    let mut command = rig(repo)?;
    command.args(["kube", "--kit", kit.name()]);
    match process::status(repo.root(), command)?.code() {
        Some(0) => Ok(Programs::Here),
        Some(NO_PROGRAMS) => Ok(Programs::Missing),
        _ => anyhow::bail!("looking for the programs did not work"),
    }
}

/// Clusters for a person. This process becomes that program, so that Ctrl-C has one to answer it.
pub(crate) fn clusters(repo: &Repo, args: &Args) -> Result<bool> {
    if args.rest.first().is_some_and(|word| word == "up") {
        let liqo = args.rest.iter().any(|word| word == "--liqo").then_some(Kit::Liqo);
        for kit in [Kit::Kubernetes].into_iter().chain(liqo) {
            if programs(repo, kit)? == Programs::Missing {
                return Ok(false);
            }
        }
    }
    let mut command = rig(repo)?;
    command.arg("clusters").args(&args.rest).current_dir(repo.root());
    Err(command.exec()).context("becoming the testkit's program")
}

/// The testkit's program, up to its own arguments. The broker and the agents that it may start are the
/// program itself, which cargo makes beside it.
pub(crate) fn rig(repo: &Repo) -> Result<Command> {
    let [rig] = built::examples(repo, ["rig"], &["sublet"])?;
    Ok(Command::new(rig))
}
