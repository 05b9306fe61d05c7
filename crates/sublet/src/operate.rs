//! What operators decide. Each is an event in the log, with who and why.

use std::io::Write;

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use sublet_core::id::ClusterId;
use sublet_wire::Code;
use sublet_wire::client::{Client, Error};
use sublet_wire::v1::{Amounts, Cap, ClusterDecision, Revocation};

use crate::borrow::Amount;
use crate::connect::{Answered, Connection};
use crate::output;

/// Why, and to whom it is said.
#[derive(clap::Args)]
struct Because {
    /// Why, for the log.
    #[arg(long, value_name = "REASON", value_parser = NonEmptyStringValueParser::new())]
    why: String,
    #[command(flatten)]
    connection: Connection,
}

impl Because {
    /// Does it, and says what was done.
    fn act(&self, act: impl AsyncFnOnce(&Client) -> Result<String, Error>) -> Result<()> {
        self.connection.run(|client| async move {
            let done = act(&client).await.answered()?;
            Ok(writeln!(output::stdout(), "{done}")?)
        })
    }
}

/// About a cluster.
#[derive(clap::Args)]
pub(crate) struct ClusterArgs {
    /// Which cluster.
    cluster: ClusterId,
    /// Also if nobody has heard of this cluster yet; without it that is taken for a slip.
    #[arg(long)]
    force: bool,
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
    let ClusterArgs { cluster, force, because } = args;
    let what = ClusterDecision { why: because.why.clone(), force: *force };
    let done = match decision {
        Decision::Cordon => "cordoned: nothing new is granted there",
        Decision::Uncordon => "uncordoned: it takes part again",
        Decision::Drain => "draining: what it lends is taken back, and nothing new is granted",
        Decision::Lost => "given up: what it lent ends without its word",
        Decision::Vouch => "vouched for: it lends again",
    };
    because.act(async |client| {
        // Afterwards it is not known any more.
        let ends_a_drain = matches!(decision, Decision::Cordon | Decision::Uncordon)
            && client.cluster(cluster).await.is_ok_and(|cluster| cluster.draining);
        match decision {
            Decision::Cordon => client.cordon(cluster, &what).await,
            Decision::Uncordon => client.uncordon(cluster, &what).await,
            Decision::Drain => client.drain(cluster, &what).await,
            Decision::Lost => client.declare_lost(cluster, &what).await,
            Decision::Vouch => client.vouch(cluster, &what).await,
        }?;
        let drain = if ends_a_drain { DRAIN_ENDS } else { "" };
        Ok(format!("{cluster} {done}{drain}"))
    })
}

const DRAIN_ENDS: &str =
    "; its drain ends: what is being taken back already still goes, and the rest stays";

/// The most that a cluster lends.
#[derive(clap::Args)]
pub(crate) struct CapArgs {
    /// Which cluster.
    cluster: ClusterId,
    /// The most of a resource, such as cpu=16 or memory=64Gi; none at all lifts the cap.
    #[arg(value_name = "NAME=AMOUNT")]
    limits: Vec<Amount>,
    /// Also if nobody has heard of this cluster yet; without it that is taken for a slip.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    because: Because,
}

/// Caps it.
pub(crate) fn cap(args: &CapArgs) -> Result<()> {
    let limits = Amounts(Amount::by_name(&args.limits));
    let done = if limits.0.is_empty() { "lends without a cap" } else { "is capped" };
    let cap = Cap { limits, why: args.because.why.clone(), force: args.force };
    args.because.act(async |client| {
        client.cap(&args.cluster, &cap).await?;
        Ok(format!("{} {done}", args.cluster))
    })
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
    let which = args.revocation();
    args.because.act(async |client| {
        let is_unknown = match &args.subject.cluster {
            Some(cluster) => {
                client.cluster(cluster).await.is_err_and(|e| e.code() == Some(Code::NoSuchCluster))
            }
            None => false,
        };
        client.revoke(&which).await?;
        // It is done all the same: a stolen certificate may be of a cluster that has not come yet.
        if let Some(cluster) = args.subject.cluster.as_ref().filter(|_| is_unknown) {
            let hint = unknown(cluster);
            // Without a standard error there is nobody to warn.
            drop(writeln!(anstream::stderr(), "sublet: {hint}"));
        }
        Ok(format!("{} is revoked", args.subject()))
    })
}

fn unknown(cluster: &ClusterId) -> String {
    format!(
        "warning: no cluster {cluster} was ever heard of. If that was a slip, take it back with: \
         sublet reinstate --cluster {cluster} --why slip. An operator is no cluster: revoke its \
         certificate with --serial"
    )
}

/// Believes it again.
pub(crate) fn reinstate(args: &RevokeArgs) -> Result<()> {
    let which = args.revocation();
    args.because.act(async |client| {
        client.reinstate(&which).await?;
        Ok(format!("{} is believed again", args.subject()))
    })
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
    args.because.act(async |client| {
        client.confirm_clock(why).await?;
        Ok("the clock is confirmed: what is due expires again".to_owned())
    })
}
