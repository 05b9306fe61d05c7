//! What is in force is looked at again, and nothing is written because of that.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sublet_agent::peering::{Change, IsLive, NoPeering, Peering, Progress, Removal, Why};
use sublet_agent::transport::Order;
use sublet_core::advertisement::Backend;
use sublet_core::instruction::Side;
use sublet_crds::{Obstacle, RequestPhase};
use sublet_wire::v1::Message;
use tokio::sync::Notify;

use super::crashes::restart;
use super::{World, small};
use crate::on_kubernetes::until::until;

/// No peering, that counts how often it was asked to bring something about, can stir, remembers what it
/// was told, has something in the way when a test wants it, and takes its time to take something down.
#[derive(Default)]
pub(super) struct Counting {
    established: AtomicUsize,
    stirs: Notify,
    heard: Mutex<Vec<Message>>,
    obstacle: Mutex<Option<Obstacle>>,
    is_slow: AtomicBool,
}

impl Counting {
    fn count(&self) -> usize {
        self.established.load(Ordering::SeqCst)
    }

    /// From now on this is in the way, or nothing is; everything is looked at again.
    pub(super) fn hinder(&self, by: Option<Obstacle>) {
        *self.obstacle.lock().unwrap() = by;
        self.stirs.notify_one();
    }

    /// From now on nothing can be taken down, or everything can.
    pub(super) fn take_time(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::SeqCst);
        self.stirs.notify_one();
    }

    /// What other clusters' agents sent, as it came.
    pub(super) fn heard(&self) -> Vec<Message> {
        self.heard.lock().unwrap().clone()
    }
}

impl Peering for Counting {
    fn backend(&self) -> Backend {
        NoPeering.backend()
    }

    fn establish<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Progress> {
        self.established.fetch_add(1, Ordering::SeqCst);
        let obstacle = *self.obstacle.lock().unwrap();
        async move {
            match obstacle {
                Some(by) => Progress::Failed(Why::hindered(by, "it was said")),
                None => NoPeering.establish(order).await,
            }
        }
        .boxed()
    }

    fn withdraw<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Removal> {
        async {
            if self.is_slow.load(Ordering::SeqCst) {
                return Removal::Pending("it takes its time".into());
            }
            NoPeering.withdraw(order).await
        }
        .boxed()
    }

    fn sweep<'a>(&'a self, sides: &'a [Side], is_live: &'a IsLive) -> BoxFuture<'a, ()> {
        async { NoPeering.sweep(sides, is_live).await }.boxed()
    }

    fn changed(&self) -> BoxFuture<'_, Change> {
        self.stirs.notified().map(|()| Change::Everything).boxed()
    }

    fn hear(&self, message: Message) {
        self.heard.lock().unwrap().push(message);
    }
}

pub(super) async fn what_is_in_force_is_looked_at_again_and_not_written(world: &mut World) {
    world.milan.advertise(16).await;
    world.ask("kept", small()).await;
    let request = world.in_phase("kept", RequestPhase::Active).await;
    world.balances(1).await;
    let id = request.status.unwrap().reservation_name;
    let version =
        || async { world.rome.borrowed().get(&id).await.unwrap().metadata.resource_version };
    let before = version().await;
    let peering = world.rome.peering.clone();
    let again = |count: usize| {
        let peering = peering.clone();
        async move {
            until("another look", || async { (peering.count() > count).then_some(()) }).await;
        }
    };
    let count = peering.count();
    peering.stirs.notify_one();
    again(count).await;
    assert_eq!(version().await, before);
    let count = peering.count();
    restart(&mut world.rome, None).await;
    again(count).await;
    assert_eq!(world.rome.borrowed().get(&id).await.unwrap().metadata.resource_version, before);
    world.delete("kept").await;
    world.is_clean().await;
}
