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
mod offload;
mod slice;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::Client;
use sublet_core::advertisement::Backend;
use sublet_core::instruction::Side;
use sublet_crds::Obstacle;
use sublet_wire::v1::Message;
use tokio::sync::watch;
use tokio::time::timeout;

pub(super) use csr::owner;
pub use offload::Offloader;
pub use slice::{Extras, Keeper, Settings};
pub(super) use slice::{Ground, List, asked, is_same, text};

use super::{Change, IsLive, Peering, Progress, Removal, Unwilling, Why};
use crate::controllers::Clock;
use crate::metrics::Metrics;
use crate::transport::Order;
use link::Links;
use slice::{Provider, Requester, Wakes};

/// How long a look at one reservation may take. It is then begun anew, from what is there.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// Clusters joined by Liqo.
pub struct LiqoPeering {
    ground: Ground,
    requester: Requester,
    provider: Provider,
    links: Arc<dyn Links>,
    wakes: Arc<Wakes>,
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
        let (tell, unwilling) = watch::channel(Some("Liqo was not looked at yet".to_owned()));
        let requester = Requester::new(ground.clone(), Arc::clone(&links));
        let provider = Provider::new(ground.clone(), Arc::clone(&links), unwilling.clone());
        let wakes = Arc::new(Wakes::default());
        let keeper = Keeper {
            ground: ground.clone(),
            requester: requester.clone(),
            provider: provider.clone(),
            wakes: Arc::clone(&wakes),
            unwilling: tell,
        };
        (Self { ground, requester, provider, links, wakes, unwilling }, keeper)
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
            bounded(progress).await.unwrap_or_else(Progress::Pending)
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
            let removal = bounded(removal).await.unwrap_or_else(Removal::Pending);
            match removal {
                Removal::Gone => self.wakes.settled(order.side, &order.reservation),
                Removal::Pending(_) => self.wakes.soon(order.side, &order.reservation),
            }
            removal
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

/// What came of a look, within a bound; or why nothing did, for people.
async fn bounded<T>(look: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Why> {
    let silent = |why: String| Why::hindered(Obstacle::ApiServerSilent, why);
    match timeout(LOOK_MAX, look).await {
        Err(_) => Err(silent("the API server of this cluster does not answer".to_owned())),
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            Err(Why::hindered(Obstacle::Forbidden, status.message.clone()))
        }
        Ok(Err(kube::Error::Api(status))) => Err(status.message.clone().into()),
        Ok(looked) => looked.map_err(|error| silent(error.to_string())),
    }
}
