//! A cluster's ear: follows its instructions, carries them out, and comes back after every crash.

use std::sync::Arc;

use sublet_core::id::Generation;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_wire::Code;
use sublet_wire::client::{Client, Event};
use sublet_wire::v1::{Instruction, Number};
use tokio::task::JoinSet;

use super::load::again;
use super::shared::{Count, Shared};
use crate::recount::Amounts;
use crate::word::advertisement;

/// Listens until it is dropped; one that lends says what it has whenever it is connected.
pub(super) async fn listen(
    shared: Arc<Shared>,
    who: String,
    client: Client,
    lends: Option<Amounts>,
) {
    let mut stream = client.instructions(None);
    let mut acknowledgements = JoinSet::new();
    for sequence in 0.. {
        match stream.next().await {
            Event::Connected => {
                shared.count(Count::Connected);
                if let Some(all) = lends {
                    advertise(&shared, &who, &client, (all, sequence)).await;
                }
            }
            Event::Reset => {
                shared.count(Count::Listed);
                shared.told().forget(&who);
            }
            Event::Instruction(instruction) => {
                shared.told().tell(&who, instruction.clone());
                if instruction.side() == Some(Side::Provider)
                    && instruction.duty() != Some(Duty::Gone)
                {
                    let (shared, client) = (Arc::clone(&shared), client.clone());
                    acknowledgements.spawn(acknowledge(shared, client, instruction));
                }
            }
            Event::Synced | Event::Message(_) | Event::Interrupted(_) => {}
        }
        while let Some(done) = acknowledgements.try_join_next() {
            done.unwrap();
        }
    }
}

async fn advertise(
    shared: &Shared,
    who: &str,
    client: &Client,
    ([cpu, memory], sequence): (Amounts, u64),
) {
    let mut word = advertisement(who, &Resources::new(cpu, memory));
    word.number = Some(Number { incarnation: 1, sequence });
    while let Err(error) = client.advertise(&word).await {
        again(shared, &error).await;
    }
}

/// Until it is heard: the stream does not say a second time what it has said.
async fn acknowledge(shared: Arc<Shared>, client: Client, instruction: Instruction) {
    let id = instruction.reservation_id.parse().unwrap();
    let generation = Generation(instruction.generation);
    while let Err(error) = client.acknowledge(id, generation).await {
        if error.code() == Some(Code::NoSuchReservation) {
            // It was acknowledged by an earlier try whose answer was lost, and is forgotten.
            return;
        }
        again(&shared, &error).await;
    }
}
