//! A cluster of the demo: publishes what it has, hears what it must do, does it and says so.
//!
//! It behaves towards the broker as an agent does; only there is no Kubernetes behind it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use sublet_core::id::{ClusterId, Generation};
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_wire::client::{Client, Error, Event};
use sublet_wire::v1::{
    Advertisement, Capabilities, GrantReport, Instruction, Number, Quantities, ResourceMetrics,
};
use sublet_wire::{Code, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock;

/// How often it publishes, besides when it connects.
const EVERY: Duration = Duration::from_secs(10);

/// What a cluster has.
#[derive(Clone, Debug)]
pub(super) struct Size {
    pub(super) allocatable: Resources,
    /// What its own pods take.
    pub(super) allocated: Resources,
}

/// Something that a cluster heard from the broker, and has done.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) cluster: ClusterId,
    pub(super) instruction: Instruction,
}

/// One cluster.
pub(super) struct Agent {
    name: ClusterId,
    size: Size,
    client: Client,
    heard: mpsc::Sender<Heard>,
    number: Number,
    /// What it keeps for others, by reservation.
    grants: BTreeMap<String, GrantReport>,
    /// What it has done last, by reservation: the stream says things again when they change in
    /// ways that do not matter here.
    done: BTreeMap<String, Instruction>,
}

impl Agent {
    pub(super) fn new(
        name: ClusterId,
        size: Size,
        client: Client,
        heard: mpsc::Sender<Heard>,
    ) -> Self {
        let number = Number { incarnation: clock::now().as_millis(), sequence: 0 };
        Self { name, size, client, heard, number, grants: BTreeMap::new(), done: BTreeMap::new() }
    }

    /// Goes on until it is dropped; ends only when there is no use in going on.
    pub(super) async fn run(mut self) -> Result<()> {
        let mut stream = self.client.instructions(None);
        let mut clock = interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = clock.tick() => self.advertise().await?,
                event = stream.next() => self.take(event).await?,
            }
        }
    }

    async fn take(&mut self, event: Event) -> Result<()> {
        match event {
            // Nobody peers in the demo, so nobody has anything to say to another.
            Event::Connected | Event::Message(_) => Ok(()),
            Event::Reset => {
                self.grants.clear();
                self.done.clear();
                Ok(())
            }
            // What it holds is known now: said at once, so that a broker that has come back need
            // not wait for it.
            Event::Synced => self.advertise().await,
            Event::Instruction(instruction) => {
                let id = &instruction.reservation_id;
                if self.done.get(id) == Some(&instruction) || !self.act(&instruction).await? {
                    return Ok(());
                }
                self.done.insert(id.clone(), instruction.clone());
                let heard = Heard { cluster: self.name.clone(), instruction };
                self.heard.send(heard).await.context("nobody watches the demo any more")
            }
            Event::Interrupted(error) => tolerate::<()>(Err(error)).map(drop),
        }
    }

    /// Carries an instruction out and says so; false if the broker could not be told.
    async fn act(&mut self, instruction: &Instruction) -> Result<bool> {
        let id = instruction.reservation_id.parse()?;
        let generation = Generation(instruction.generation);
        match (instruction.side(), instruction.duty()) {
            (Some(Side::Provider), Some(Duty::Keep)) => {
                let grant = GrantReport {
                    id: instruction.reservation_id.clone(),
                    generation: instruction.generation,
                    requester_id: instruction.peer_id.clone(),
                    amounts: instruction.resources.clone(),
                    used: (&Resources::default()).into(),
                    remaining: None,
                };
                self.grants.insert(grant.id.clone(), grant);
                tolerate(self.client.acknowledge(id, generation).await)
            }
            (Some(Side::Provider), Some(Duty::TakeDown)) => {
                self.grants.remove(&instruction.reservation_id);
                tolerate(self.client.acknowledge(id, generation).await)
            }
            (Some(Side::Requester), Some(Duty::Keep)) => tolerate(self.client.activate(id).await),
            _ => Ok(true),
        }
    }

    async fn advertise(&mut self) -> Result<()> {
        self.number.sequence += 1;
        let Size { allocatable, allocated } = &self.size;
        let word = Advertisement {
            cluster_id: self.name.to_string(),
            cluster_name: self.name.to_string(),
            resources: ResourceMetrics {
                capacity: allocatable.into(),
                allocatable: allocatable.into(),
                allocated: allocated.into(),
                reserved: None,
                available: Quantities::default(),
            },
            timestamp: Some(Timestamp::from(clock::now())),
            number: Some(self.number),
            grants: Some(self.grants.values().cloned().collect()),
            capabilities: Some(Capabilities {
                acknowledge: true,
                activate: true,
                renew: true,
                stream: true,
                backends: vec!["none".into()],
            }),
            ..Advertisement::default()
        };
        tolerate(self.client.advertise(&word).await).map(drop)
    }
}

/// A broker that is away comes back, which is false; one that has moved on says how things stand
/// by the stream; anything else is wrong.
fn tolerate<T>(answer: Result<T, Error>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.is_retryable() => Ok(false),
        Err(error) if matches!(error.code(), Some(Code::WrongPhase | Code::NoSuchReservation)) => {
            Ok(true)
        }
        Err(error) => Err(error).context("an agent of the demo was refused"),
    }
}
