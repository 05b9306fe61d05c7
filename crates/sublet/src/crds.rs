//! `sublet crds`: the definitions of our kinds, as they are in `deploy/crds`.

use std::io::Write;

use anyhow::Result;
use sublet_crds::{BROKER, FILES, REAR};

/// Which of them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For which cluster; without it, all of them.
    ///
    /// For example: sublet crds --for agent | kubectl apply -f -
    #[arg(long = "for", value_name = "WHOM")]
    whom: Option<Whom>,
}

/// Who reads and writes the kinds.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Whom {
    /// A cluster with an agent.
    Agent,
    /// The cluster where the broker keeps its objects.
    Broker,
}

/// Prints them as one stream of documents.
pub(crate) fn run(args: &Args) -> Result<()> {
    let group = args.whom.map(|whom| match whom {
        Whom::Agent => REAR,
        Whom::Broker => BROKER,
    });
    let wanted = |name: &str| group.is_none_or(|group| name.starts_with(group));
    let mut out = std::io::stdout().lock();
    for (_, text) in FILES.iter().filter(|(name, _)| wanted(name)) {
        write!(out, "---\n{text}")?;
    }
    Ok(())
}
