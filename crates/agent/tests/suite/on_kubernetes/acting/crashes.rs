//! The agents die after a step and are started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use sublet_agent::controllers::{Hook, Point};
use sublet_crds::RequestPhase;

use super::world::until;
use super::{World, small};

/// Hangs for ever at a point, and says so.
fn trap(at: Point) -> (Hook, Arc<AtomicBool>) {
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

async fn restart(world: &mut World, trap: Option<Hook>) {
    world.rome.kill().await;
    world.milan.kill().await;
    world.rome.begin(trap.clone());
    world.milan.begin(trap);
}

async fn is_sprung(at: Point, sprung: &AtomicBool) {
    until(&format!("a step that ends with {at:?}"), || async {
        sprung.load(Ordering::SeqCst).then_some(())
    })
    .await;
}

pub(super) async fn the_agent_may_die_after_any_step_of_a_reservation(world: &mut World) {
    use Point::{Answered, Established, Finalized, Recorded, Told, Written};
    world.milan.advertise(16).await;
    for at in [Finalized, Answered, Written, Recorded, Established, Told] {
        let (hook, sprung) = trap(at);
        restart(world, Some(hook)).await;
        world.ask("crash", small()).await;
        is_sprung(at, &sprung).await;
        restart(world, None).await;
        world.in_phase("crash", RequestPhase::Active).await;
        let held = world.rome.reservations().await;
        let live = held.iter().filter(|one| one.status.phase == "Active").count();
        assert_eq!(live, 1, "after a crash at {at:?}");
        world.delete("crash").await;
        world.is_clean().await;
    }
}

pub(super) async fn the_agent_may_die_after_any_step_of_a_release(world: &mut World) {
    use Point::{Recorded, Released, Removed, Told, Withdrawn};
    world.milan.advertise(16).await;
    for at in [Released, Recorded, Withdrawn, Told, Removed] {
        restart(world, None).await;
        world.ask("crash", small()).await;
        world.in_phase("crash", RequestPhase::Active).await;
        let (hook, sprung) = trap(at);
        restart(world, Some(hook)).await;
        world.delete("crash").await;
        is_sprung(at, &sprung).await;
        restart(world, None).await;
        world.is_clean().await;
    }
}
