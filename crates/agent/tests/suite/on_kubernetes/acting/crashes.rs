//! An agent dies after a step and is started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sublet_agent::controllers::{Hook, Point};
use sublet_crds::{Obstacle, RequestPhase};

use super::world::Town;
use super::{World, small};
use crate::on_kubernetes::until::until;

/// Hangs for ever at a point, and says so.
pub(super) fn trap(at: Point) -> (Hook, Arc<AtomicBool>) {
    let sprung = Arc::new(AtomicBool::new(false));
    let inside = Arc::clone(&sprung);
    let hook: Hook = Arc::new(move |point| {
        if point != at {
            return std::future::ready(()).boxed();
        }
        inside.store(true, Ordering::SeqCst);
        std::future::pending().boxed()
    });
    (hook, sprung)
}

/// As a crash and a new start.
pub(super) async fn restart(town: &mut Town, trap: Option<Hook>) {
    town.kill().await;
    town.begin(trap);
}

pub(super) async fn is_sprung(at: Point, sprung: &AtomicBool) {
    until(&format!("a step that ends with {at:?}"), || async {
        sprung.load(Ordering::SeqCst).then_some(())
    })
    .await;
}

/// Which of the two dies.
#[derive(Clone, Copy, Debug)]
enum Who {
    Requester,
    Provider,
}

impl Who {
    fn of(self, world: &mut World) -> &mut Town {
        match self {
            Self::Requester => &mut world.rome,
            Self::Provider => &mut world.milan,
        }
    }
}

/// Who comes past a point.
#[derive(Clone, Copy, Default)]
struct Passers {
    /// While something is reserved.
    reserving: &'static [Who],
    /// While it is changed.
    changing: &'static [Who],
    /// While the clusters cannot be joined.
    failing: &'static [Who],
    /// While it is released.
    releasing: &'static [Who],
}

/// Who comes past a point, and when. A new point does not compile until it is listed here, and one that
/// nobody comes past fails the test.
fn passers(at: Point) -> Passers {
    use Who::{Provider, Requester};
    const BOTH: &[Who] = &[Requester, Provider];
    const ONE: &[Who] = &[Requester];
    let none = Passers::default();
    match at {
        Point::Finalized => Passers { reserving: ONE, releasing: ONE, ..none },
        Point::Answered => Passers { reserving: ONE, ..none },
        Point::Written => Passers { reserving: ONE, changing: ONE, ..none },
        Point::Resized | Point::Renewed => Passers { changing: ONE, ..none },
        Point::Recorded => Passers { reserving: BOTH, changing: BOTH, releasing: BOTH, ..none },
        Point::Established => Passers { reserving: BOTH, changing: BOTH, ..none },
        Point::Told => Passers { reserving: BOTH, changing: BOTH, releasing: &[Provider], ..none },
        Point::Noted => Passers { reserving: BOTH, releasing: &[Provider], ..none },
        Point::Hindered => Passers { failing: ONE, ..none },
        Point::Failed => Passers { failing: BOTH, ..none },
        Point::Released => Passers { releasing: ONE, ..none },
        Point::Withdrawn | Point::TakenDown | Point::Removed => Passers { releasing: BOTH, ..none },
    }
}

pub(super) async fn the_agents_may_die_after_any_step_of_a_reservation(world: &mut World) {
    world.milan.advertise(16).await;
    for at in Point::ALL {
        for who in passers(at).reserving {
            let (hook, sprung) = trap(at);
            restart(who.of(world), Some(hook)).await;
            world.ask("crash", small()).await;
            is_sprung(at, &sprung).await;
            restart(who.of(world), None).await;
            world.in_phase("crash", RequestPhase::Active).await;
            world.balances(1).await;
            world.delete("crash").await;
            world.is_clean().await;
        }
    }
}

/// Other amounts and another duration: a resize and a renewal.
pub(super) async fn the_agents_may_die_after_any_step_of_a_change(world: &mut World) {
    const HOURS: i64 = 3600;
    world.milan.advertise(16).await;
    for at in Point::ALL {
        for who in passers(at).changing {
            world.ask("crash", small()).await;
            let status = world.in_phase("crash", RequestPhase::Active).await.status.unwrap();
            world.balances(1).await;
            let (id, first) = (status.reservation_name, status.expires_at.unwrap());
            let (hook, sprung) = trap(at);
            restart(who.of(world), Some(hook)).await;
            let change = json!({ "spec": { "requestedCPU": "1", "duration": "3h" } });
            let (api, how) = (world.rome.requests(), PatchParams::default());
            api.patch("crash", &how, &Patch::Merge(&change)).await.unwrap();
            is_sprung(at, &sprung).await;
            restart(who.of(world), None).await;
            until("the change to be dealt with", || async {
                let found = world.rome.requests().get("crash").await.unwrap();
                let status = found.status.unwrap();
                assert_eq!(status.phase, Some(RequestPhase::Active), "{}", status.message);
                assert_eq!(status.reservation_name, id);
                let later = status.expires_at.unwrap().0.as_second() - first.0.as_second();
                let is_observed = status.observed_generation == found.metadata.generation;
                (is_observed && (2 * HOURS..=3 * HOURS).contains(&later)).then_some(())
            })
            .await;
            until("both sides to have the new amounts", || async {
                let lent = world.milan.lent().get(&format!("{id}-provider")).await.unwrap();
                let borrowed = world.rome.borrowed().get(&id).await.unwrap();
                let is_told = lent.spec.amounts.cpu == "1" && borrowed.spec.amounts.cpu == "1";
                let (number, lent) = (lent.spec.instruction_generation, lent.status?);
                (is_told && lent.enforced && lent.acknowledged_generation == number).then_some(())
            })
            .await;
            world.balances(1).await;
            world.delete("crash").await;
            world.is_clean().await;
        }
    }
}

/// Something is in the way that does not go away by itself: the broker hears of it, and ends it.
pub(super) async fn the_agents_may_die_after_any_step_of_a_failure(world: &mut World) {
    world.milan.advertise(16).await;
    for at in Point::ALL {
        for who in passers(at).failing {
            let (hook, sprung) = trap(at);
            who.of(world).peering.hinder(Some(Obstacle::KeyNotPinned));
            restart(who.of(world), Some(hook)).await;
            world.ask("crash", small()).await;
            is_sprung(at, &sprung).await;
            restart(who.of(world), None).await;
            let request = world.in_phase("crash", RequestPhase::Failed).await;
            let conditions = request.status.unwrap().conditions;
            assert!(conditions.iter().any(|one| one.reason == "KeyNotPinned"), "{conditions:?}");
            who.of(world).peering.hinder(None);
            world.delete("crash").await;
            world.is_clean().await;
        }
    }
}

pub(super) async fn the_agents_may_die_after_any_step_of_a_release(world: &mut World) {
    world.milan.advertise(16).await;
    for at in Point::ALL {
        for who in passers(at).releasing {
            world.ask("crash", small()).await;
            world.in_phase("crash", RequestPhase::Active).await;
            world.balances(1).await;
            let (hook, sprung) = trap(at);
            restart(who.of(world), Some(hook)).await;
            // While the provider is quick, the requester may hear of the end before it takes down.
            let alone = matches!(
                (who, at),
                (Who::Requester, Point::Recorded | Point::Withdrawn | Point::TakenDown)
            );
            if alone {
                world.milan.kill().await;
            }
            world.delete("crash").await;
            is_sprung(at, &sprung).await;
            restart(who.of(world), None).await;
            if alone {
                world.milan.begin(None);
            }
            world.is_clean().await;
        }
    }
}
