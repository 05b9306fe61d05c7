//! Everything that the demo runs: a CA, a broker, three clusters and an operator, in one scratch
//! folder that is removed at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Duty;
use sublet_core::resources::Resources;
use sublet_wire::client::{Client, Credentials, Options, Page, ReservationQuery};
use sublet_wire::v1::{Cluster, Reservation};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::agent::{Agent, Heard, Size};
use super::process::Broker;
use crate::ca::{Authority, Role, Wish};
use crate::clock;

/// More than the clusters can hear while the play looks elsewhere.
const HEARD_MAX: usize = 1024;
/// Anything that the play waits for happens within this time, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const GIB: u64 = 1 << 30;

/// Explains itself fully, and lets things expire soon after a start: nobody has to renew anything.
const POLICY: &str = "visibility = \"everything\"\nrecovery_grace = \"1s\"\n";

/// Who decides about all clusters.
pub(super) const OPERATOR: &str = "anna";

/// The clusters: name, cores, GiB, GPUs, and how many cores and GiB their own pods take.
const CLUSTERS: [(&str, [u64; 5]); 3] =
    [("shop", [4, 8, 0, 3, 7]), ("edge", [8, 16, 0, 2, 4]), ("hub", [16, 64, 1, 4, 8])];

/// What the demo runs. The broker is before the folder, so that it ends before its files go.
pub(super) struct World {
    pub(super) broker: Broker,
    clients: BTreeMap<String, Client>,
    heard: mpsc::Receiver<Heard>,
    /// What was heard while the play waited for something else.
    heard_before: Vec<Heard>,
    folder: TempDir,
}

impl World {
    /// Makes a CA and certificates, and starts a broker.
    pub(super) async fn open() -> Result<(Self, JoinSet<Result<()>>)> {
        let folder = tempfile::Builder::new().prefix("sublet-demo-").tempdir();
        let folder = folder.context("no scratch folder could be made")?;
        certificates(folder.path())?;
        fs::write(folder.path().join("policy.toml"), POLICY).context("no policy was written")?;
        let broker = Broker::start(folder.path()).await?;
        fs::write(folder.path().join("config.toml"), contexts(&broker.url()))
            .context("no contexts were written")?;
        let mut clients = BTreeMap::new();
        for name in names() {
            clients.insert(name.into(), client(folder.path(), name, &broker.url())?);
        }
        let (sender, heard) = mpsc::channel(HEARD_MAX);
        let mut agents = JoinSet::new();
        for (name, figures) in CLUSTERS {
            let client = client(folder.path(), name, &broker.url())?;
            agents.spawn(Agent::new(name.parse()?, size(figures), client, sender.clone()).run());
        }
        Ok((Self { broker, clients, heard, heard_before: Vec::new(), folder }, agents))
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The client of a cluster, or of the operator.
    pub(super) fn client(&self, name: &str) -> Result<Client> {
        self.clients.get(name).cloned().with_context(|| format!("there is no {name}"))
    }

    /// All clusters, as the operator sees them.
    pub(super) async fn clusters(&self) -> Result<Vec<Cluster>> {
        Ok(self.client(OPERATOR)?.clusters(&Page::default()).await?.clusters)
    }

    /// All reservations, as the operator sees them.
    pub(super) async fn reservations(&self) -> Result<Vec<Reservation>> {
        let operator = self.client(OPERATOR)?;
        let mut query = ReservationQuery::default();
        let mut all = Vec::new();
        loop {
            let list = operator.reservations(&query).await?;
            all.extend(list.reservations);
            match list.next {
                Some(next) => query.page.after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// One reservation, as the operator sees it, once it is in this phase.
    pub(super) async fn in_phase(&self, id: &str, phase: &str) -> Result<Reservation> {
        let (operator, id) = (self.client(OPERATOR)?, id.parse()?);
        let reached = async {
            loop {
                let reservation = operator.reservation(id).await?;
                if reservation.status.phase == phase {
                    return Ok(reservation);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let reached = timeout(PATIENCE, reached).await;
        reached.unwrap_or_else(|_| bail!("{id} did not become {phase}"))
    }

    /// The clusters, once all of them are heard of.
    pub(super) async fn all_active(&self) -> Result<Vec<Cluster>> {
        let heard = async {
            loop {
                let clusters = self.clusters().await?;
                let active = clusters.iter().filter(|cluster| cluster.freshness == "Active");
                if active.count() == CLUSTERS.len() {
                    return Ok(clusters);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let heard = timeout(PATIENCE, heard).await;
        heard.unwrap_or_else(|_| bail!("not every cluster was heard of"))
    }

    /// What a cluster is told about a reservation, once it is told this duty.
    pub(super) async fn told(&mut self, cluster: &str, id: &str, duty: Duty) -> Result<Heard> {
        let is_it = |heard: &Heard| {
            let Heard { cluster: who, instruction } = heard;
            who.as_str() == cluster
                && instruction.reservation_id == id
                && instruction.duty() == Some(duty)
        };
        if let Some(place) = self.heard_before.iter().position(is_it) {
            return Ok(self.heard_before.remove(place));
        }
        let found = async {
            loop {
                let heard = self.heard.recv().await.context("no cluster is left")?;
                if is_it(&heard) {
                    return Ok(heard);
                }
                self.heard_before.push(heard);
            }
        };
        let found = timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| bail!("{cluster} was not told {duty:?} about {id}"))
    }

    /// What any cluster is told next.
    pub(super) async fn next_heard(&mut self) -> Result<Heard> {
        self.heard.recv().await.context("no cluster is left")
    }

    /// Forgets what was heard so far.
    pub(super) fn forget_heard(&mut self) {
        self.heard_before.clear();
        while self.heard.try_recv().is_ok() {}
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    CLUSTERS.iter().map(|(name, _)| *name).chain([OPERATOR])
}

fn size([cores, gib, gpus, cores_taken, gib_taken]: [u64; 5]) -> Size {
    let mut allocatable = Resources::new(cores * 1000, gib * GIB);
    allocatable.gpu = gpus;
    let allocated = Resources::new(cores_taken * 1000, gib_taken * GIB);
    Size { allocatable, allocated }
}

fn certificates(folder: &Path) -> Result<()> {
    let now = clock::today();
    let authority = Authority::init(&folder.join("ca"), "sublet demo CA", 2, now)?;
    let roles = CLUSTERS.iter().map(|(name, _)| (*name, Role::Cluster));
    let others = [("broker", Role::Server), (OPERATOR, Role::Operator)];
    for (name, role) in roles.chain(others) {
        let id: ClusterId = name.parse()?;
        let wish = Wish { days: 2, ..Wish::new(id, role) };
        authority.issue(&wish, &folder.join("certs").join(name), now)?;
    }
    Ok(())
}

/// A client that is patient enough to see a broker killed and come back.
fn client(folder: &Path, name: &str, url: &str) -> Result<Client> {
    let credentials = Credentials::from_folder(&folder.join("certs").join(name))?;
    let options = Options {
        attempts: 100,
        patience: PATIENCE,
        pause_first: Duration::from_millis(50),
        pause_max: Duration::from_millis(200),
        ..Options::new(vec![url.into()], credentials)
    };
    Ok(Client::new(options)?)
}

/// A context for everybody, so that commands can be pasted.
fn contexts(url: &str) -> String {
    let each = names().map(|name| {
        format!("\n[contexts.{name}]\nurls = [{url:?}]\ncertificates = \"certs/{name}\"\n")
    });
    format!("current-context = {OPERATOR:?}\n{}", each.collect::<String>())
}
