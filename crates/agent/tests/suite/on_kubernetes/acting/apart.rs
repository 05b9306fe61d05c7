//! What agents take for granted and lose: their API server, their watches, the right time, each other.

use std::time::Duration;

use kube::api::ListParams;
use serde_json::json;
use sublet_agent::controllers::Clock;
use sublet_agent::transport::Broker as _;
use sublet_core::time::{Span, Time};
use sublet_crds::RequestPhase;
use sublet_testkit::{Cluster, Part};
use sublet_wire::client;
use sublet_wire::v1::ClusterDecision;

use super::crashes::restart;
use super::life::renewed;
use super::world::clock;
use super::{World, small};
use crate::on_kubernetes::until::until;

pub(super) async fn api_servers_may_die_and_come_back(world: &World, clusters: &[Cluster]) {
    world.milan.advertise(16).await;
    let [rome, milan] = clusters else { panic!("two clusters") };
    // The provider's: the grant stands, and is carried out when it is back.
    milan.part(Part::ApiServer).kill();
    world.ask("unheard", small()).await;
    world.in_phase("unheard", RequestPhase::Active).await;
    milan.start_part(Part::ApiServer).unwrap();
    world.balances(1).await;
    // The requester's: what happens meanwhile is seen when it is back.
    let request = world.rome.requests().get("unheard").await.unwrap();
    rome.part(Part::ApiServer).kill();
    world.milan.http.release(&request.status.unwrap().reservation_name).await.unwrap();
    until("the provider to have taken it down", || async {
        let held = world.rome.reservations().await;
        (!held.iter().any(super::is_live)).then_some(())
    })
    .await;
    rome.start_part(Part::ApiServer).unwrap();
    world.in_phase("unheard", RequestPhase::Failed).await;
    world.delete("unheard").await;
    world.is_clean().await;
}

pub(super) async fn watches_may_break_at_any_time(world: &World) {
    const MANY: usize = 12;
    world.milan.advertise(16).await;
    let names: Vec<_> = (0..MANY).map(|index| format!("cut-{index}")).collect();
    let cuts = async {
        loop {
            world.rome.line.cut();
            world.milan.line.cut();
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    };
    let life = async {
        for name in &names {
            world.ask(name, small()).await;
        }
        for name in &names {
            world.in_phase(name, RequestPhase::Active).await;
        }
        world.balances(MANY).await;
        for name in &names {
            world.delete(name).await;
        }
        world.is_clean().await;
    };
    tokio::select! {
        () = life => {}
        () = cuts => {}
    }
}

fn ahead() -> Time {
    clock().checked_add(Span::from_secs(3 * 3600)).unwrap()
}

fn behind() -> Time {
    Time::from_millis(clock().as_millis() - 3 * 3_600_000)
}

/// How often it was changed: each renewal is another generation of its instructions.
async fn renewals(world: &World, id: &str) -> u32 {
    let all = world.rome.reservations().await;
    all.iter().find(|one| one.id == id).unwrap().generation.unwrap()
}

/// Either may be right; the broker's clock rules.
pub(super) async fn clocks_may_be_hours_apart(world: &mut World) {
    let right = world.rome.clock;
    for (rome, milan) in [(ahead as Clock, behind as Clock), (behind, ahead)] {
        (world.rome.clock, world.milan.clock) = (rome, milan);
        restart(&mut world.rome, None).await;
        restart(&mut world.milan, None).await;
        world.milan.advertise(16).await;
        world.ask("lasts", small()).await;
        let brief = json!({ "requestedCPU": "1", "requestedMemory": "1Gi", "duration": "3s" });
        world.ask("brief", brief).await;
        world.ask("kept", renewed()).await;
        let since = clock();
        let status = world.in_phase("kept", RequestPhase::Active).await.status.unwrap();
        let (id, first) = (status.reservation_name, status.expires_at);
        let before = renewals(world, &id).await;
        world.in_phase("brief", RequestPhase::Released).await;
        until("the renewed one to outlive its time", || async {
            let status = world.rome.requests().get("kept").await.unwrap().status.unwrap();
            assert_eq!(status.phase, Some(RequestPhase::Active), "{}", status.message);
            let end = |time: &Option<sublet_crds::Time>| time.as_ref().unwrap().0.as_second();
            (end(&status.expires_at) - end(&first) >= 4).then_some(())
        })
        .await;
        // Now and then, and not at each look: a clock that is far ahead finds it over each time.
        let renewed = renewals(world, &id).await - before;
        let took = clock().since(since);
        let most = u32::try_from(took.as_millis() / 1000).unwrap() + 2;
        assert!(renewed >= 1 && renewed <= most, "{renewed} in {took}");
        world.in_phase("lasts", RequestPhase::Active).await;
        world.balances(2).await;
        for name in ["lasts", "brief", "kept"] {
            world.delete(name).await;
        }
        world.is_clean().await;
    }
    (world.rome.clock, world.milan.clock) = (right, right);
    restart(&mut world.rome, None).await;
    restart(&mut world.milan, None).await;
}

pub(super) async fn a_provider_may_disappear_and_come_back(world: &mut World) {
    world.milan.advertise(16).await;
    for name in ["given-back", "in-use"] {
        world.ask(name, small()).await;
        world.in_phase(name, RequestPhase::Active).await;
    }
    world.balances(2).await;
    world.milan.kill().await;
    // What is given back stays held: nobody has said that it is gone.
    world.delete("given-back").await;
    until("the broker to wait for the provider", || async {
        let held = world.rome.reservations().await;
        held.iter().any(|one| one.status.phase == "Releasing").then_some(())
    })
    .await;
    let options = world.house.authority.operator("anna", world.house.address());
    let anna = client::Client::new(options).unwrap();
    let what = ClusterDecision { why: "it burnt down".to_owned(), force: false };
    anna.declare_lost(&"milan".parse().unwrap(), &what).await.unwrap();
    let request = world.in_phase("in-use", RequestPhase::Failed).await;
    let ready = request.status.unwrap().conditions;
    let ready = ready.iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!((&*ready.status, &*ready.reason), ("False", "ProviderLost"));
    until("nothing held, and no instruction in Rome", || async {
        let held = world.rome.reservations().await;
        let borrowed = world.rome.borrowed().list(&ListParams::default()).await.unwrap();
        (!held.iter().any(super::is_live) && borrowed.items.is_empty()).then_some(())
    })
    .await;
    // It comes back with what it was told long ago, and is told that it is over.
    assert_eq!(world.milan.lent().list(&ListParams::default()).await.unwrap().items.len(), 2);
    world.milan.begin(None);
    world.delete("in-use").await;
    world.is_clean().await;
    world.milan.advertise(16).await;
    world.ask("after", small()).await;
    world.in_phase("after", RequestPhase::Active).await;
    world.delete("after").await;
    world.is_clean().await;
}

/// As after a Deployment without `--leader-elect` that was scaled up.
pub(super) async fn two_agents_of_one_cluster_do_no_harm(world: &mut World) {
    const MANY: usize = 12;
    world.milan.advertise(16).await;
    world.rome.begin(None);
    world.milan.begin(None);
    let names: Vec<_> = (0..MANY).map(|index| format!("twice-{index}")).collect();
    futures_util::future::join_all(names.iter().map(|name| world.ask(name, small()))).await;
    for name in &names {
        world.in_phase(name, RequestPhase::Active).await;
    }
    world.balances(MANY).await;
    for name in &names {
        world.delete(name).await;
    }
    world.is_clean().await;
    restart(&mut world.rome, None).await;
    restart(&mut world.milan, None).await;
}
