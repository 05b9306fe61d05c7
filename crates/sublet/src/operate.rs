//! What operators decide. Each is an event in the log, with who and why.

use std::io::Write;

use anyhow::Result;
use sublet_core::id::ClusterId;
use sublet_wire::client::{Client, Error};
use sublet_wire::v1::{Amounts, Cap, Revocation};

use crate::borrow::Amount;
use crate::connect::{Answered, Connection};
use crate::output;

/// Why, and to whom it is said.
#[derive(clap::Args)]
struct Because {
    /// Why, for the log.
    #[arg(long, value_name = "REASON")]
    why: String,
    #[command(flatten)]
    connection: Connection,
}

impl Because {
    /// Does it, and says so.
    fn act(&self, done: &str, act: impl AsyncFnOnce(&Client) -> Result<(), Error>) -> Result<()> {
        self.connection.run(|client| async move {
            act(&client).await.answered()?;
            Ok(writeln!(output::stdout(), "{done}")?)
        })
    }
}

/// About a cluster.
#[derive(clap::Args)]
pub(crate) struct ClusterArgs {
    /// Which cluster.
    cluster: ClusterId,
    #[command(flatten)]
    because: Because,
}

/// What is decided about a cluster.
#[derive(Clone, Copy)]
pub(crate) enum Decision {
    /// Grant nothing new there.
    Cordon,
    /// Let it take part again.
    Uncordon,
    /// Also take back what it lends.
    Drain,
    /// Give it up.
    Lost,
    /// Let it lend after a restore.
    Vouch,
}

/// Decides it.
pub(crate) fn decide(decision: Decision, args: &ClusterArgs) -> Result<()> {
    let (cluster, why) = (&args.cluster, args.because.why.as_str());
    let done = match decision {
        Decision::Cordon => "cordoned: nothing new is granted there",
        Decision::Uncordon => "uncordoned: it takes part again",
        Decision::Drain => "draining: what it lends is taken back, and nothing new is granted",
        Decision::Lost => "given up: what it lent ends without its word",
        Decision::Vouch => "vouched for: it lends again",
    };
    args.because.act(&format!("{cluster} {done}"), async |client| match decision {
        Decision::Cordon => client.cordon(cluster, why).await,
        Decision::Uncordon => client.uncordon(cluster, why).await,
        Decision::Drain => client.drain(cluster, why).await,
        Decision::Lost => client.declare_lost(cluster, why).await,
        Decision::Vouch => client.vouch(cluster, why).await,
    })
}

/// The most that a cluster lends.
#[derive(clap::Args)]
pub(crate) struct CapArgs {
    /// Which cluster.
    cluster: ClusterId,
    /// The most of a resource, such as cpu=16 or memory=64Gi; none at all lifts the cap.
    #[arg(value_name = "NAME=AMOUNT")]
    limits: Vec<Amount>,
    #[command(flatten)]
    because: Because,
}

/// Caps it.
pub(crate) fn cap(args: &CapArgs) -> Result<()> {
    let limits = Amounts(Amount::by_name(&args.limits));
    let done = if limits.0.is_empty() { "lends without a cap" } else { "is capped" };
    let cap = Cap { limits, why: args.because.why.clone() };
    let done = format!("{} {done}", args.cluster);
    args.because.act(&done, async |client| client.cap(&args.cluster, &cap).await)
}

/// Whose certificates.
#[derive(clap::Args)]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    because: Because,
}

/// One certificate, or all of a cluster's.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Subject {
    /// Every certificate of this cluster, also those to come.
    #[arg(long, value_name = "NAME")]
    cluster: Option<ClusterId>,
    /// The one certificate with this serial number, in hex.
    #[arg(long, value_name = "HEX")]
    serial: Option<String>,
}

impl RevokeArgs {
    fn revocation(&self) -> Revocation {
        Revocation {
            cluster_id: self.subject.cluster.as_ref().map(ToString::to_string),
            serial: self.subject.serial.clone(),
            by: None,
            why: self.because.why.clone(),
        }
    }

    fn subject(&self) -> String {
        let Subject { cluster, serial } = &self.subject;
        let named = cluster.as_ref().map(|cluster| format!("every certificate of {cluster}"));
        named.unwrap_or_else(|| format!("certificate {}", serial.as_deref().unwrap_or_default()))
    }
}

/// Believes it no longer.
pub(crate) fn revoke(args: &RevokeArgs) -> Result<()> {
    let (which, done) = (args.revocation(), format!("{} is revoked", args.subject()));
    args.because.act(&done, async |client| client.revoke(&which).await)
}

/// Believes it again.
pub(crate) fn reinstate(args: &RevokeArgs) -> Result<()> {
    let (which, done) = (args.revocation(), format!("{} is believed again", args.subject()));
    args.because.act(&done, async |client| client.reinstate(&which).await)
}

/// About the clock.
#[derive(clap::Args)]
pub(crate) struct ClockArgs {
    #[command(flatten)]
    because: Because,
}

/// The wall clock that is far ahead is right.
pub(crate) fn confirm_clock(args: &ClockArgs) -> Result<()> {
    let why = args.because.why.as_str();
    let done = "the clock is confirmed: what is due expires again";
    args.because.act(done, async |client| client.confirm_clock(why).await)
}
