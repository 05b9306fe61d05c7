//! `sublet get clusters`.

use anyhow::Result;
use sublet_core::id::ClusterId;
use sublet_core::time::Time;
use sublet_wire::Timestamp;
use sublet_wire::client::{Client, Page};
use sublet_wire::v1::{Amounts, Cluster, Quantities};

use super::Look;
use crate::connect::Answered;
use crate::output::{Cell, Column, Row, age, or_dash, paint};

/// Which.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these.
    names: Vec<ClusterId>,
    #[command(flatten)]
    look: Look,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let look = &args.look;
    look.answer(|client| async move { look.show(async || read(&client, args).await).await })
}

async fn read(client: &Client, args: &Args) -> Result<Vec<Cluster>> {
    if args.names.is_empty() {
        return all(client).await;
    }
    let mut found = Vec::new();
    for name in &args.names {
        found.push(client.cluster(name).await.answered()?);
    }
    Ok(found)
}

/// Every page.
async fn all(client: &Client) -> Result<Vec<Cluster>> {
    let mut page = Page::default();
    let mut found = Vec::new();
    loop {
        let list = client.clusters(&page).await.answered()?;
        found.extend(list.clusters);
        match list.next {
            Some(next) => page.after = Some(next),
            None => return Ok(found),
        }
    }
}

impl Row for Cluster {
    const COLUMNS: &'static [Column] = &[
        Column::new("NAME"),
        Column::new("STATE"),
        Column::new("CPU FREE"),
        Column::new("MEMORY FREE"),
        Column::new("GPU FREE"),
        Column::new("LENDS"),
        Column::new("BORROWS"),
        Column::new("HEARD"),
        Column::wide("CPU HELD"),
        Column::wide("MEMORY HELD"),
        Column::wide("CPU BORROWED"),
        Column::wide("SCORE"),
        Column::wide("CAP"),
        Column::wide("BACKENDS"),
        Column::wide("LABELS"),
    ];

    fn cells(&self, now: Time) -> Vec<Cell> {
        let resources = self.resources.as_ref();
        let free = |of: fn(&Quantities) -> String| -> Cell {
            let figures = resources.map(|r| (of(&r.available), of(&r.allocatable)));
            figures.map_or_else(|| "-".into(), |(free, all)| format!("{free}/{all}").into())
        };
        let gpus = resources.and_then(|resources| {
            let free = resources.available.gpu.as_deref().unwrap_or("0");
            Some((free, resources.allocatable.gpu.as_deref()?))
        });
        let held = resources.and_then(|resources| resources.reserved.as_ref());
        let labels = self.labels.iter().map(|(name, value)| format!("{name}={value}"));
        let backends = self.capabilities.as_ref().map(|can| can.backends.join(","));
        vec![
            self.cluster_id.as_str().into(),
            Cell::styled(state(self), paint(colour(self))),
            free(|q| q.cpu.clone()),
            free(|q| q.memory.clone()),
            gpus.map_or_else(|| "-".into(), |(free, all)| format!("{free}/{all}").into()),
            self.lending_count.to_string().into(),
            self.borrowing_count.to_string().into(),
            age(self.received_at.map(Timestamp::time), now).into(),
            held.map_or("0", |held| &held.cpu).into(),
            held.map_or("0", |held| &held.memory).into(),
            self.borrowed.cpu.as_str().into(),
            or_dash(self.score.as_deref().unwrap_or_default()).into(),
            self.cap.as_ref().map_or_else(|| "-".into(), limits).into(),
            or_dash(backends.unwrap_or_default()).into(),
            or_dash(labels.collect::<Vec<_>>().join(",")).into(),
        ]
    }

    fn name(&self) -> String {
        self.cluster_id.clone()
    }
}

/// Amounts in one cell.
pub(super) fn limits(amounts: &Amounts) -> String {
    let each = amounts.0.iter().map(|(name, amount)| format!("{name}={amount}"));
    each.collect::<Vec<_>>().join(",")
}

/// How it is heard of, and what operators decided about it.
fn state(cluster: &Cluster) -> String {
    let decided = [
        (cluster.revoked.is_some(), "Revoked"),
        (cluster.lost.is_some(), "Lost"),
        (cluster.draining, "Draining"),
        (cluster.cordoned.is_some() && !cluster.draining, "Cordoned"),
        (cluster.awaits_report, "AwaitsReport"),
        (cluster.overcommitted, "Overcommitted"),
        (cluster.resources.is_some() && !cluster.lending, "NotLending"),
    ];
    let words = decided.into_iter().filter_map(|(is, word)| is.then_some(word));
    std::iter::once(cluster.freshness.as_str()).chain(words).collect::<Vec<_>>().join(",")
}

/// The worst of it.
fn colour(cluster: &Cluster) -> &str {
    match cluster {
        Cluster { revoked: Some(_), .. } => "Revoked",
        Cluster { lost: Some(_), .. } => "Lost",
        Cluster { cordoned: Some(_), .. } => "Cordoned",
        cluster => &cluster.freshness,
    }
}
