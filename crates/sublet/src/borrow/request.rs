//! `sublet request`: asks for capacity, and stays until it is known what came of it.

use std::io::Write;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use sublet_core::id::{Key, ReservationId};
use sublet_core::time::Span;
use sublet_process::end;
use sublet_wire::Code;
use sublet_wire::client::{Client, Error, random_key};
use sublet_wire::v1::{Decision, Reservation, ReservationRequest};

use super::Ask;
use super::explain::reasons;
use crate::clock;
use crate::connect::{Answered, Connection, Patient, failed, said};
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, Output, left};
use crate::progress::Progress;

/// How often a request that waits is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What for, and how.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: Ask,
    /// How long it may wait for something to fit, such as 10m; stays until it is decided.
    #[arg(long, value_name = "SPAN")]
    wait: Option<Span>,
    /// With --wait: do not stay.
    #[arg(long, requires = "wait")]
    detach: bool,
    /// A name for this request: a repeat under it brings the same reservation.
    #[arg(long)]
    key: Option<Key>,
    /// Say what would happen, and reserve nothing.
    #[arg(long, conflicts_with_all = ["wait", "key"])]
    dry_run: bool,
    /// Say why it was granted there.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connection: Connection,
}

/// Asks.
pub(crate) fn run(args: &Args) -> Result<()> {
    let request = ReservationRequest {
        wait: args.wait.map(|span| span.to_string()),
        explain: args.explain,
        ..args.ask.request()?
    };
    args.connection.answer(args.output.format, |client| async move {
        if args.dry_run {
            let decision = client.dry_run(&request).await.map_err(refused)?;
            return show_decision(&decision, args.output.format);
        }
        let Some(key) = &args.key else { return unnamed(&client, &request, args).await };
        let reservation = client.reserve_under(&request, key).await.map_err(refused)?;
        settle(&client, reservation, args).await
    })
}

/// Asks under a key that nobody else knows: who interrupts before the answer is there could not find
/// it again, so it is released.
async fn unnamed(client: &Client, request: &ReservationRequest, args: &Args) -> Result<()> {
    let key = random_key().map_err(refused)?;
    let mut interrupted = pin!(end::told().context("signals cannot be listened to")?);
    let reservation = tokio::select! {
        asked = client.reserve(request, Some(key.clone())) => asked.map_err(refused)?,
        () = &mut interrupted => return Err(give_up(client, &key).await),
    };
    let id = reservation.id.clone();
    tokio::select! {
        settled = settle(client, reservation, args) => settled,
        () = &mut interrupted => {
            let message = format!("interrupted: {id} is still there, end it with: sublet release {id}");
            Err(Stop::new(Exit::Failed, message).into())
        }
    }
}

async fn give_up(client: &Client, key: &Key) -> anyhow::Error {
    match client.release_by_key(key).await {
        Ok(_) => Stop::new(Exit::Failed, "interrupted: nothing is reserved").into(),
        Err(error) => {
            let message = format!(
                "interrupted, and it is not known whether it was reserved: when the broker is back, \
                 sublet release --key {key}"
            );
            anyhow::Error::new(error).context(Stop::new(Exit::Unavailable, message))
        }
    }
}

/// Stays with a request that waits until it is decided, unless it is not to.
async fn settle(client: &Client, first: Reservation, args: &Args) -> Result<()> {
    if args.detach {
        return show(&first, args);
    }
    let id: ReservationId = first.id.parse()?;
    let mut reservation = first;
    let progress = (reservation.status.phase == "Pending")
        .then(|| Progress::say(format!("{}; interrupt to leave it waiting", waits(&reservation))));
    let mut patient = Patient::default();
    while reservation.status.phase == "Pending" {
        tokio::time::sleep(LOOK_AGAIN).await;
        let looked = patient.wait_for(client.reservation(id).await.answered());
        let looked = looked.with_context(|| {
            format!("{id} may still be there, end it with: sublet release {id}")
        })?;
        reservation = looked.unwrap_or(reservation);
    }
    drop(progress);
    show(&reservation, args)?;
    match reservation.status.phase.as_str() {
        "Failed" => {
            let message = format!("{id} was not granted: {}", reservation.status.message);
            Err(Stop::new(Exit::Refused, message).into())
        }
        "Reserved" | "Active" => Ok(()),
        // A repeat under a key is answered with how things are now.
        _ => {
            let message = format!("{id} is over: use another key to ask again");
            Err(Stop::new(Exit::Refused, message).into())
        }
    }
}

/// For what a request waits, and until when.
fn waits(reservation: &Reservation) -> String {
    let id = &reservation.id;
    let until = reservation.status.waits_until;
    let until = until.map_or_else(String::new, |until| {
        format!(" until {} ({})", until.whole_seconds(), left(Some(until.time()), clock::now()))
    });
    let why = reservation.explanation.as_ref().map(|why| format!(": {}", why.text));
    format!("{id} waits{until}{}", why.unwrap_or_default())
}

/// A refusal with what would have been enough, where the broker said so beside its message.
fn refused(error: Error) -> anyhow::Error {
    match in_our_words(&error) {
        Some(message) => said(error, message),
        None => failed(error),
    }
}

/// Why nobody lends, without the words of the Go system around it.
pub(crate) fn in_our_words(error: &Error) -> Option<String> {
    let why = error.problem().and_then(|problem| problem.details.explanation.as_ref())?;
    let what = match error.code() {
        Some(Code::NoSuitableCluster) => "no cluster can lend this",
        Some(Code::ProvidersOverdue) => {
            "only a cluster that is overdue could lend this, ask again soon"
        }
        _ => return None,
    };
    Some(format!("{what}: {}", reasons(why)))
}

fn show(reservation: &Reservation, args: &Args) -> Result<()> {
    let mut out = output::stdout();
    output::one(reservation, args.output.format, clock::now(), &mut out)?;
    let why = reservation.explanation.as_ref().filter(|_| is_for_people(args.output.format));
    if let Some(why) = why {
        writeln!(out, "why: {}", reasons(why))?;
    }
    Ok(())
}

fn show_decision(decision: &Decision, format: Option<Format>) -> Result<()> {
    let mut out = output::stdout();
    match format {
        Some(Format::Json) => output::json(decision, &mut out),
        Some(Format::Yaml) => output::yaml(decision, &mut out),
        Some(Format::Name) => Ok(writeln!(out, "{}", decision.target_cluster_id)?),
        None | Some(Format::Wide) => {
            writeln!(
                out,
                "{} would lend this now; nothing was reserved",
                decision.target_cluster_id
            )?;
            if let Some(why) = &decision.explanation {
                writeln!(out, "why: {}", reasons(why))?;
            }
            Ok(())
        }
    }
}

fn is_for_people(format: Option<Format>) -> bool {
    matches!(format, None | Some(Format::Wide))
}
