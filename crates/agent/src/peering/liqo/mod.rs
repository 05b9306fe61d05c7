//! Clusters joined by Liqo, through its custom resources alone: no kubeconfig of anybody else's
//! cluster, one slice per reservation, granted by the provider's agent in exactly the amounts that
//! are reserved, and taken back at the end.
//!
//! [`LiqoPeering`] does what the controllers want done; the [`Keeper`] beside it watches, says what
//! changed, and keeps what was granted as it was granted.

mod csr;
pub mod kinds;
pub mod link;
pub mod names;
mod network;
mod offload;
mod slice;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::Client;
use sublet_core::advertisement::Backend;
use sublet_core::instruction::Side;
use sublet_crds::condition::Reason;
use sublet_wire::v1::Message;
use tokio::sync::watch;

pub(super) use csr::owner;
pub(super) use network::networks;
pub use offload::Offloader;
pub use slice::{Extras, Keeper, Settings};
pub(super) use slice::{Ground, List, asked, is_same, text};

use super::answer::bounded;
use super::{Change, IsLive, Peering, Progress, Removal, Unwilling, Why, WhyNot};
use crate::controllers::Clock;
use crate::metrics::Metrics;
use crate::transport::Order;
use link::Links;
use slice::{Foreign, Guard, Lasting, Provider, Requester, Wakes};

/// Clusters joined by Liqo.
pub struct LiqoPeering {
    ground: Ground,
    requester: Requester,
    provider: Provider,
    links: Arc<dyn Links>,
    wakes: Arc<Wakes>,
    lasting: Lasting,
    unwilling: Unwilling,
}

impl LiqoPeering {
    /// The peering, and the task that is to run beside it.
    pub fn new(
        client: Client,
        links: Arc<dyn Links>,
        settings: Settings,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> (Self, Keeper) {
        let ground = Ground::new(client, settings, clock, metrics);
        let (tell, unwilling) = watch::channel(Some(unseen_yet()));
        let requester = Requester::new(ground.clone(), Arc::clone(&links));
        let provider = Provider::new(ground.clone(), Arc::clone(&links), unwilling.clone());
        let wakes = Arc::new(Wakes::default());
        let keeper = Keeper {
            ground: ground.clone(),
            requester: requester.clone(),
            provider: provider.clone(),
            wakes: Arc::clone(&wakes),
            guard: Guard::new(tell),
            foreign: Foreign::new(ground.client()),
        };
        let lasting = Lasting::default();
        (Self { ground, requester, provider, links, wakes, lasting, unwilling }, keeper)
    }

    fn judge(&self, order: &Order, why: Why) -> Why {
        self.lasting.judge(order, why, self.ground.now())
    }
}

impl Peering for LiqoPeering {
    fn backend(&self) -> Backend {
        Backend::Liqo
    }

    fn establish<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Progress> {
        async move {
            self.wakes.settled(order.side, &order.reservation);
            let progress = async {
                match order.side {
                    Side::Requester => self.requester.establish(order).await,
                    Side::Provider => self.provider.keep(order).await,
                }
            };
            match bounded(progress).await.unwrap_or_else(Progress::Pending) {
                Progress::Pending(why) => Progress::Pending(self.judge(order, why)),
                settled => {
                    self.lasting.settled(order);
                    settled
                }
            }
        }
        .boxed()
    }

    fn withdraw<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Removal> {
        async move {
            let removal = async {
                match order.side {
                    Side::Requester => self.requester.release(order).await,
                    Side::Provider => self.provider.reclaim(order).await,
                }
            };
            match bounded(removal).await.unwrap_or_else(Removal::Pending) {
                Removal::Gone => {
                    self.wakes.settled(order.side, &order.reservation);
                    self.lasting.settled(order);
                    Removal::Gone
                }
                Removal::Pending(why) => {
                    self.wakes.soon(order.side, &order.reservation);
                    Removal::Pending(self.judge(order, why))
                }
            }
        }
        .boxed()
    }

    fn sweep<'a>(&'a self, sides: &'a [Side], is_live: &'a IsLive) -> BoxFuture<'a, ()> {
        async move {
            if let Err(error) = slice::sweep(&self.ground, sides, is_live).await {
                tracing::warn!(%error, "what nobody wants could not be looked for");
            }
            if [Side::Provider, Side::Requester].iter().all(|side| sides.contains(side)) {
                self.links.listed();
            }
        }
        .boxed()
    }

    fn changed(&self) -> BoxFuture<'_, Change> {
        async move {
            tokio::select! {
                change = self.wakes.next() => change,
                () = self.links.changed() => Change::Everything,
            }
        }
        .boxed()
    }

    fn hear(&self, message: Message) {
        self.links.hear(message);
    }

    fn unwilling(&self) -> Option<Unwilling> {
        Some(self.unwilling.clone())
    }
}

fn unseen_yet() -> WhyNot {
    WhyNot::new(Reason::EnforcementUnknown, "Liqo was not looked at yet")
}
