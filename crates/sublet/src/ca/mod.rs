//! `sublet ca`: a development CA in a folder, so that nobody needs another tool to begin.
//!
//! What it issues is what `--http-cert-path` and `--broker-cert-path` want: a folder with `tls.crt`,
//! `tls.key` and `ca.crt`. A file that is there is never written over. In production use a real CA;
//! the broker sees no difference.

mod authority;
mod file;
mod issue;
mod list;
mod register;
mod revoke;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::environment::Environment;
use crate::{clock, output};

pub(crate) use authority::{Authority, Role, Wish};

/// What to do with it.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a CA: a key that signs certificates, and its own certificate.
    Init(InitArgs),
    /// Issue a certificate: a folder with tls.crt, tls.key and ca.crt.
    Issue(issue::Args),
    /// Tell the broker not to believe a certificate any more.
    Revoke(revoke::Args),
    /// List what was issued.
    #[command(visible_alias = "ls")]
    List(list::Args),
}

/// Where the CA is.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// The CA's folder [default: ca in the folder of the configuration]
    #[arg(long, value_name = "DIR", env = "SUBLET_CA")]
    dir: Option<PathBuf>,
}

impl Place {
    fn folder(&self) -> Result<PathBuf> {
        match &self.dir {
            Some(dir) => Ok(dir.clone()),
            None => Ok(Environment::read().folder()?.join("ca")),
        }
    }
}

/// A new CA.
#[derive(clap::Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    place: Place,
    /// What it calls itself.
    #[arg(long, default_value = "sublet development CA")]
    name: String,
    /// How long its certificate lasts.
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,
}

impl Command {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Init(args) => init(&args),
            Self::Issue(args) => issue::run(&args),
            Self::Revoke(args) => revoke::run(&args),
            Self::List(args) => list::run(&args),
        }
    }
}

fn init(args: &InitArgs) -> Result<()> {
    let folder = args.place.folder()?;
    Authority::init(&folder, &args.name, args.days, clock::today())?;
    let mut out = output::stdout();
    writeln!(out, "made a CA in {}; keep ca.key to yourself", folder.display())?;
    writeln!(out, "next: sublet ca issue broker --server")?;
    Ok(())
}
