//! `sublet get reservations`, and how one looks wherever it is printed.

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::time::Time;
use sublet_wire::Timestamp;
use sublet_wire::client::{Client, ReservationQuery};
use sublet_wire::v1::{PHASES, Quantities, Reservation};

use super::Look;
use crate::connect::Answered;
use crate::output::{Cell, Column, Row, age, left, or_dash, others, paint};

/// Which.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these.
    ids: Vec<ReservationId>,
    /// Only those of this cluster.
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    cluster: Option<ClusterId>,
    /// Only those in which it has this part.
    #[arg(long, value_enum, ignore_case = true, conflicts_with = "ids")]
    role: Option<Role>,
    /// Only those in this phase.
    #[arg(long, value_parser = PossibleValuesParser::new(PHASES), ignore_case = true,
          conflicts_with = "ids")]
    phase: Option<String>,
    /// Also those that are over, which the broker remembers for a day.
    #[arg(short, long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    look: Look,
}

impl Args {
    /// One that is over is of interest to whoever asks for it, or sees it end.
    fn shows(&self, reservation: &Reservation) -> bool {
        let wanted = self.all || self.look.watch || self.phase.is_some();
        wanted || !matches!(reservation.status.phase.as_str(), "Released" | "Failed")
    }
}

/// A part in a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// It borrows
    Requester,
    /// It lends
    Provider,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let look = &args.look;
    look.answer(|client| async move { look.show(async || read(&client, args).await).await })
}

async fn read(client: &Client, args: &Args) -> Result<Vec<Reservation>> {
    let mut found = Vec::new();
    for id in &args.ids {
        found.push(client.reservation(*id).await.answered()?);
    }
    if !args.ids.is_empty() {
        return Ok(found);
    }
    let role = args.role.map(|role| match role {
        Role::Requester => "requester".to_owned(),
        Role::Provider => "provider".to_owned(),
    });
    // As the broker writes it, however it was typed.
    let named = |typed: &String| PHASES.iter().find(|phase| phase.eq_ignore_ascii_case(typed));
    let phase = args.phase.as_ref().and_then(named).map(ToString::to_string);
    let cluster = args.cluster.clone();
    let mut query = ReservationQuery { cluster, role, phase, ..ReservationQuery::default() };
    loop {
        let list = client.reservations(&query).await.answered()?;
        found.extend(list.reservations.into_iter().filter(|one| args.shows(one)));
        match list.next {
            Some(next) => query.page.after = Some(next),
            None => return Ok(found),
        }
    }
}

impl Row for Reservation {
    const COLUMNS: &'static [Column] = &[
        Column::new("ID"),
        Column::new("PHASE"),
        Column::new("REQUESTER"),
        Column::new("PROVIDER"),
        Column::new("CPU"),
        Column::new("MEMORY"),
        Column::new("GPU"),
        Column::new("AGE"),
        Column::new("EXPIRES IN"),
        Column::wide("OTHERS"),
        Column::wide("CPU USED"),
        Column::wide("MEMORY USED"),
        Column::wide("PRIORITY"),
        Column::wide("CONFIRMED"),
        Column::wide("REASON"),
        Column::wide("KEY"),
        Column::wide("MESSAGE"),
    ];

    fn cells(&self, now: Time) -> Vec<Cell> {
        let (status, amounts) = (&self.status, &self.requested_resources);
        let time = |stamp: Option<Timestamp>| stamp.map(Timestamp::time);
        let ends = match status.phase.as_str() {
            "Releasing" | "Released" | "Failed" => "-".into(),
            "Pending" => format!("waits {}", left(time(status.waits_until), now)),
            _ => left(time(status.expires_at), now),
        };
        let used = |of: fn(&Quantities) -> &str| self.used.as_ref().map(of).unwrap_or_default();
        let confirmed = match (self.acknowledged, self.generation) {
            (_, None) => "-".into(),
            (done, Some(all)) => format!("{}/{all}", done.unwrap_or_default()),
        };
        vec![
            self.id.as_str().into(),
            Cell::styled(&status.phase, paint(&status.phase)),
            self.requester_id.as_str().into(),
            or_dash(&self.target_cluster_id).into(),
            amounts.cpu.as_str().into(),
            amounts.memory.as_str().into(),
            or_dash(amounts.gpu.as_deref().unwrap_or_default()).into(),
            age(time(self.created_at), now).into(),
            ends.into(),
            others(amounts).into(),
            or_dash(used(|amounts| &amounts.cpu)).into(),
            or_dash(used(|amounts| &amounts.memory)).into(),
            self.priority.unwrap_or_default().to_string().into(),
            confirmed.into(),
            or_dash(status.reason.as_deref().unwrap_or_default()).into(),
            or_dash(self.key.as_deref().unwrap_or_default()).into(),
            or_dash(&status.message).into(),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}
