//! `sublet ca issue`.

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use sublet_core::id::ClusterId;

use super::authority::Wish;
use super::{Authority, Place, Role};
use crate::{clock, output};

/// For whom.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster, the operator or the broker: the certificate's CN.
    name: ClusterId,
    #[command(flatten)]
    place: Place,
    /// For an operator, who decides about all clusters.
    #[arg(long, conflicts_with = "server")]
    operator: bool,
    /// For a broker: reached as localhost, 127.0.0.1, `::1`, its name, and as --dns and --ip say.
    #[arg(long)]
    server: bool,
    /// Another name that the broker is reached by.
    #[arg(long, value_name = "NAME", requires = "server")]
    dns: Vec<String>,
    /// Another address that the broker is reached by.
    #[arg(long, value_name = "ADDRESS", requires = "server")]
    ip: Vec<IpAddr>,
    /// How long it lasts.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,
    /// Where to put it [default: certs/NAME in the CA's folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Args {
    fn wish(&self) -> Wish {
        let role = match self {
            Self { operator: true, .. } => Role::Operator,
            Self { server: true, .. } => Role::Server,
            _ => Role::Cluster,
        };
        let (dns, addresses) = (self.dns.clone(), self.ip.clone());
        Wish { dns, addresses, days: self.days, ..Wish::new(self.name.clone(), role) }
    }
}

pub(super) fn run(args: &Args) -> Result<()> {
    let authority = Authority::open(&args.place.folder()?)?;
    let folder = args.out.clone().unwrap_or_else(|| authority.default_folder(&args.name));
    let wish = args.wish();
    let entry = authority.issue(&wish, &folder, clock::today())?;
    let mut out = output::stdout();
    let (place, serial) = (folder.display(), &entry.serial);
    writeln!(out, "issued {} to {place} (serial {serial})", entry.name)?;
    let flag = match wish.role {
        Role::Server => format!("sublet broker --http-cert-path {place}"),
        _ => format!("sublet config set-context {} --cert-path {place}", entry.name),
    };
    writeln!(out, "next: {flag}")?;
    Ok(())
}
