//! How a link comes and goes, over a good relay and a bad one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::Mutex;

use futures_util::FutureExt;
use serde_json::Value;
use sublet_agent::peering::liqo::link::{Hook, LinkState, Links};
use sublet_core::instruction::Side;
use sublet_core::time::Span;
use sublet_testkit::wait::Stopwatch;
use tokio::sync::mpsc;

use super::super::network_to_milan;
use super::relay::{Fate, kind};
use super::world::{IDLE, Town, World};
use crate::on_kubernetes::until::until;

pub(super) async fn a_link_comes_from_nothing_and_leaves_nothing(world: &mut World) {
    let course = Arc::new(Mutex::new(Vec::new()));
    let clock = Stopwatch::start();
    let watching = |town: &'static str| -> Hook {
        let course = Arc::clone(&course);
        Arc::new(move |step| {
            let at = clock.elapsed().as_millis();
            course.lock().unwrap().push(format!("{at} ms {town}: {step}"));
            std::future::ready(()).boxed()
        })
    };
    world.rome.restart(Some(watching("rome"))).await;
    world.milan.restart(Some(watching("milan"))).await;
    world.linked().await;
    eprintln!("linked after {:?}", clock.elapsed());
    let letters: Vec<_> = world.relay.sent().iter().map(kind).collect();
    let nonce = Town::secret("rome", "liqo-nonce");
    let before = world.milan.api.get(&nonce).unwrap()["metadata"]["uid"].clone();
    assert_eq!(world.rome.counted("sublet_agent_links{side=\"requester\",state=\"ready\"}"), 1);

    // It is not made twice.
    world.linked().await;
    assert_eq!(world.milan.api.get(&nonce).unwrap()["metadata"]["uid"], before);
    eprintln!("{}\n{letters:?}", course.lock().unwrap().join("\n"));

    let clock = Stopwatch::start();
    world.unused().await;
    world.over().await;
    eprintln!("unlinked, with nothing left, after {:?}", clock.elapsed());
}

pub(super) async fn both_directions_of_a_pair_coexist(world: &mut World) {
    let (rome, milan) = (&world.rome, &world.milan);
    let clock = Stopwatch::start();
    until("four ends of two links", || async {
        let states = [
            rome.state(Side::Requester, milan).await,
            rome.state(Side::Provider, milan).await,
            milan.state(Side::Requester, rome).await,
            milan.state(Side::Provider, rome).await,
        ];
        states.iter().all(|state| *state == LinkState::Ready).then_some(())
    })
    .await;
    eprintln!("linked both ways after {:?}", clock.elapsed());

    // One goes, and the other stays as it is.
    world.unused().await;
    let tenant = "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-rome/tenants/rome";
    until("the end of one tenant", || async { milan.api.get(tenant).err().map(drop) }).await;
    let signed = Town::secret("milan", "liqo-signed-nonce");
    until("the end of one nonce", || async { rome.api.get(&signed).err().map(drop) }).await;
    assert_eq!(milan.state(Side::Requester, rome).await, LinkState::Ready);
    assert_eq!(rome.state(Side::Provider, milan).await, LinkState::Ready);
    for (town, peer) in [(rome, "milan"), (milan, "rome")] {
        let namespace = format!("/api/v1/namespaces/liqo-tenant-{peer}");
        let namespace = town.api.get(&namespace).unwrap();
        assert!(namespace["metadata"]["deletionTimestamp"].is_null());
    }
    milan.keeper.unused(Side::Requester, &rome.id).await;
    rome.keeper.unused(Side::Provider, &milan.id).await;
    world.over().await;
}

/// Since when nobody needs the link, as either side has it written down.
fn unused_since(world: &World) -> [Value; 2] {
    let sides = [(&world.rome, "milan", "requester"), (&world.milan, "rome", "provider")];
    sides.map(|(town, peer, side)| {
        let namespace = format!("/api/v1/namespaces/liqo-tenant-{peer}");
        let namespace = town.api.get(&namespace).unwrap();
        namespace["metadata"]["annotations"][format!("sublet.io/unused-as-{side}-since")].clone()
    })
}

/// Both agents begin anew, and keep what nobody needs for so long.
async fn keep_idle_for(world: &mut World, idle: Span) {
    for town in [&mut world.rome, &mut world.milan] {
        town.idle = idle;
        town.restart(None).await;
    }
}

pub(super) async fn a_link_that_is_needed_again_is_kept(world: &mut World) {
    keep_idle_for(world, Span::from_secs(600)).await;
    world.linked().await;
    let parts = |world: &World| {
        let nonce = world.milan.api.get(&Town::secret("rome", "liqo-nonce")).unwrap();
        let signed = world.rome.api.get(&Town::secret("milan", "liqo-signed-nonce")).unwrap();
        [nonce, signed].map(|secret| secret["metadata"]["uid"].clone())
    };
    let before = parts(world);
    world.unused().await;
    until("both to know that nobody needs it", || async {
        unused_since(world).iter().all(Value::is_string).then_some(())
    })
    .await;
    assert_eq!(parts(world), before, "its time is not over");
    // Whoever begins anew knows how long it was unused, and that it is not any more.
    world.rome.restart(None).await;
    world.milan.restart(None).await;
    world.linked().await;
    until("both to know that it is needed", || async {
        unused_since(world).iter().all(Value::is_null).then_some(())
    })
    .await;
    assert_eq!(parts(world), before, "the link was not kept");
    keep_idle_for(world, IDLE).await;
    world.unused().await;
    world.over().await;
}

/// What `liqoctl network connect` makes is in the same namespace, and is not ours to remove.
pub(super) async fn a_network_of_the_operators_keeps_the_namespace_it_is_in(world: &mut World) {
    world.linked().await;
    let rome = &world.rome;
    let network = network_to_milan(&rome.api);
    world.unused().await;
    // The other side ends its part after this one has.
    let other = "/api/v1/namespaces/liqo-tenant-rome";
    until("the end of the link", || async { world.milan.api.get(other).err().map(drop) }).await;
    let signed = Town::secret("milan", "liqo-signed-nonce");
    until("the end of the nonce", || async { rome.api.get(&signed).err().map(drop) }).await;
    let namespace = rome.api.get("/api/v1/namespaces/liqo-tenant-milan").unwrap();
    assert!(namespace["metadata"]["deletionTimestamp"].is_null(), "{namespace}");
    rome.api.delete(&network).unwrap();
    world.over().await;
}

/// Each kind of letter in turn: the first of it is lost, or comes twice, or after the next one.
pub(super) async fn letters_may_be_lost_doubled_and_late(world: &mut World) {
    for fate in [Fate::IsLost, Fate::ArrivesTwice, Fate::IsLate] {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let known = Arc::clone(&seen);
        world.relay.judge(move |letter| {
            if known.lock().unwrap().insert(kind(letter)) { fate } else { Fate::Arrives }
        });
        let clock = Stopwatch::start();
        world.linked().await;
        let linked = clock.elapsed();
        world.unused().await;
        world.over().await;
        eprintln!(
            "each first letter {fate:?}: linked after {linked:?}, gone after {:?}",
            clock.elapsed()
        );
        let all = ["IdentityOffer", "Nonce", "TenantOffer", "Unlink", "Unlinked"];
        let seen = seen.lock().unwrap();
        assert!(all.iter().all(|kind| seen.contains(*kind)), "{seen:?}");
    }
}

/// Every step of a link's life, and whose it is.
const STEPS: [(&str, &str); 22] = [
    ("milan", "make namespace"),
    ("milan", "make nonce"),
    ("milan", "nonce"),
    ("milan", "write tenant"),
    ("milan", "identity offer"),
    ("milan", "mark unused"),
    ("milan", "delete tenant"),
    ("milan", "delete nonce"),
    ("milan", "unlinked"),
    ("milan", "delete namespace"),
    ("milan", "delete foreign cluster"),
    ("rome", "make namespace"),
    ("rome", "write signed nonce"),
    ("rome", "tenant offer"),
    ("rome", "write identity"),
    ("rome", "mark unused"),
    ("rome", "delete identity"),
    ("rome", "unlink"),
    ("rome", "delete signed nonce"),
    ("rome", "mark foreign cluster"),
    ("rome", "delete namespace"),
    ("rome", "delete foreign cluster"),
];

/// For a whole life of a link, either agent ends after each kind of step, twice. Not for ever: the key
/// that opens the answer to an offer is in memory alone, and a letter that the broker still has is
/// answered again after each start.
pub(super) async fn both_agents_may_end_after_each_step(world: &mut World) {
    let (ended, mut who) = mpsc::channel(64);
    let ends: Arc<Mutex<BTreeMap<(&str, &str), usize>>> = Arc::default();
    let hook = |town: &'static str| -> Hook {
        let (ended, ends) = (ended.clone(), Arc::clone(&ends));
        Arc::new(move |step| {
            let ended = ended.clone();
            let times = {
                let mut ends = ends.lock().unwrap();
                let times = ends.entry((town, step)).or_default();
                *times += 1;
                *times
            };
            async move {
                if times <= 2 {
                    ended.send(town).await.unwrap();
                    std::future::pending::<()>().await;
                }
            }
            .boxed()
        })
    };
    let clock = Stopwatch::start();
    world.rome.restart(Some(hook("rome"))).await;
    world.milan.restart(Some(hook("milan"))).await;
    for needed in [true, false] {
        loop {
            let all = async {
                if needed {
                    world.linked().await;
                } else {
                    world.unused().await;
                    world.rome.as_before().await;
                    world.milan.as_before().await;
                }
            };
            tokio::select! {
                Some(town) = who.recv() => match town {
                    "rome" => world.rome.restart(Some(hook("rome"))).await,
                    _ => world.milan.restart(Some(hook("milan"))).await,
                },
                () = all => break,
            }
        }
    }
    eprintln!("a life with an end after each step took {:?}", clock.elapsed());
    let ends = ends.lock().unwrap().clone();
    eprintln!("{ends:?}");
    for step in STEPS {
        assert!(ends.contains_key(&step), "{step:?} was not cut");
    }
    world.over().await;
}
