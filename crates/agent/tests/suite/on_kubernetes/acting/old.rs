//! The same clusters with an old broker between them.

use std::sync::Arc;

use futures_util::FutureExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use sublet_agent::controllers::{Hook, Point};
use sublet_agent::transport::Http;
use sublet_crds::RequestPhase;
use sublet_testkit::Cluster;

use super::crashes::{is_sprung, restart, trap};
use super::world::Town;
use super::{World, small};
use crate::old_broker::{OldBroker, reservation};
use crate::on_kubernetes::until::until;

pub(super) async fn an_old_broker_is_understood(clusters: &[Cluster], mut world: World) {
    world.rome.kill().await;
    world.milan.kill().await;
    let broker = OldBroker::new().await;
    let options = |name| broker.authority.options(name, broker.address);
    let mut rome = Town::new(&clusters[0], "rome", options("rome")).await;
    let mut milan = Town::new(&clusters[1], "milan", options("milan")).await;
    rome.begin(None);
    milan.begin(None);
    let mut world = World { house: world.house, rome, milan };
    world.ask("old", small()).await;
    let request = world.in_phase("old", RequestPhase::Reserved).await;
    let id = request.status.unwrap().reservation_name;
    assert_eq!(id, "rsv-rome-1794780677613");
    broker.change(|script| script.instructions = Some(reservation(&id, "rome", "milan")));
    let name = format!("{id}-provider");
    let lent = until("the provider's instruction, in force", || async {
        let lent = world.milan.lent().get(&name).await.ok()?;
        lent.status.as_ref()?.enforced.then_some(lent)
    })
    .await;
    let spec = &lent.spec;
    assert_eq!(spec.message, "Hold 500m CPU / 256Mi Memory for requester rome");
    assert_eq!((spec.duty, spec.instruction_generation), (None, None), "as the Go agent has it");
    until("the requester's instruction, in force", || async {
        let borrowed = world.rome.borrowed().get(&id).await.ok()?;
        borrowed.status?.delivered.then_some(())
    })
    .await;
    world.delete("old").await;
    until("the request and its instruction to go", || async {
        let request = world.rome.requests().get_opt("old").await.unwrap();
        let borrowed = world.rome.borrowed().get_opt(&id).await.unwrap();
        (request.is_none() && borrowed.is_none()).then_some(())
    })
    .await;
    broker.change(|script| script.instructions = None);
    until("the provider's to go with the list", || async {
        world.milan.lent().get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(broker.count(RESERVE), 1);
    the_agent_may_die_and_does_not_ask_twice(&mut world, &broker).await;
    an_answer_is_kept_while_somebody_else_writes(&mut world, &broker).await;
    world.milan.http = Http::new(options("milan"), None).unwrap();
    what_is_only_mentioned_is_carried_out_and_stays(&mut world, &broker).await;
}

const RESERVE: &str = "POST /api/v1/reservations";

async fn goes(world: &World, name: &str) {
    world.delete(name).await;
    until("the request and its instruction to go", || async {
        let request = world.rome.requests().get_opt(name).await.unwrap();
        let borrowed = world.rome.borrowed().list(&ListParams::default()).await.unwrap();
        (request.is_none() && borrowed.items.is_empty()).then_some(())
    })
    .await;
}

async fn the_agent_may_die_and_does_not_ask_twice(world: &mut World, broker: &OldBroker) {
    for (at, phase) in
        [(Point::Answered, RequestPhase::Failed), (Point::Written, RequestPhase::Reserved)]
    {
        let before = broker.count(RESERVE);
        let (hook, sprung) = trap(at);
        restart(&mut world.rome, Some(hook)).await;
        world.ask("crash", small()).await;
        is_sprung(at, &sprung).await;
        restart(&mut world.rome, None).await;
        let message = world.in_phase("crash", phase).await.status.unwrap().message;
        let says = message.contains("create another request");
        assert_eq!(says, phase == RequestPhase::Failed, "{message}");
        goes(world, "crash").await;
        assert_eq!(broker.count(RESERVE), before + 1);
    }
}

async fn an_answer_is_kept_while_somebody_else_writes(world: &mut World, broker: &OldBroker) {
    let before = broker.count(RESERVE);
    let api = world.rome.requests();
    let hook: Hook = Arc::new(move |point| {
        let api = api.clone();
        async move {
            if point == Point::Answered {
                let label = json!({ "metadata": { "labels": { "touched": "yes" } } });
                let patch = Patch::Merge(&label);
                api.patch("touched", &PatchParams::default(), &patch).await.unwrap();
            }
        }
        .boxed()
    });
    restart(&mut world.rome, Some(hook)).await;
    world.ask("touched", small()).await;
    let request = world.in_phase("touched", RequestPhase::Reserved).await;
    assert!(request.metadata.labels.is_some());
    goes(world, "touched").await;
    assert_eq!(broker.count(RESERVE), before + 1);
}

/// The list is never asked for, as with `--instruction-poll-interval=0`: what an old broker has to say
/// comes with its answer to an advertisement, and who is missing there is not over.
async fn what_is_only_mentioned_is_carried_out_and_stays(world: &mut World, broker: &OldBroker) {
    restart(&mut world.milan, None).await;
    let ids = ["rsv-rome-1794780677614", "rsv-rome-1794780677615"];
    for id in ids {
        broker.change(|script| script.piggy_back = Some(reservation(id, "rome", "milan")));
        until("what was mentioned, in force", || async {
            // Said again and again, as an agent does: who hears it first may not listen yet.
            world.milan.advertise(16).await;
            let lent = world.milan.lent().get(&format!("{id}-provider")).await.ok()?;
            lent.status?.enforced.then_some(())
        })
        .await;
    }
    let first = world.milan.lent().get(&format!("{}-provider", ids[0])).await.unwrap();
    assert!(first.metadata.deletion_timestamp.is_none(), "it is in force until its end");
}
