//! An agent dies after a step and is started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use sublet_agent::controllers::{Hook, Point};
use sublet_crds::RequestPhase;

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

/// Who comes past a point while something is reserved, and while it is released. A new point does not
/// compile until it is listed here, and one that nobody comes past fails the test.
fn passers(at: Point) -> (&'static [Who], &'static [Who]) {
    use Who::{Provider, Requester};
    match at {
        Point::Finalized => (&[Requester], &[Requester]),
        Point::Answered | Point::Written => (&[Requester], &[]),
        Point::Recorded => (&[Requester, Provider], &[Requester, Provider]),
        Point::Established => (&[Requester, Provider], &[]),
        Point::Told => (&[Requester, Provider], &[Provider]),
        Point::Released => (&[], &[Requester]),
        Point::Withdrawn | Point::Removed => (&[], &[Requester, Provider]),
    }
}

pub(super) async fn the_agents_may_die_after_any_step_of_a_reservation(world: &mut World) {
    world.milan.advertise(16).await;
    for at in Point::ALL {
        for who in passers(at).0 {
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

pub(super) async fn the_agents_may_die_after_any_step_of_a_release(world: &mut World) {
    world.milan.advertise(16).await;
    for at in Point::ALL {
        for who in passers(at).1 {
            world.ask("crash", small()).await;
            world.in_phase("crash", RequestPhase::Active).await;
            world.balances(1).await;
            let (hook, sprung) = trap(at);
            restart(who.of(world), Some(hook)).await;
            // While the provider is quick, the requester may hear of the end before it takes down.
            let alone = matches!((who, at), (Who::Requester, Point::Recorded | Point::Withdrawn));
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
