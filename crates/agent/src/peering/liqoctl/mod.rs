//! Clusters joined by Liqo's command line, with a folder of kubeconfigs: the way of the Go agent, whose
//! flags start it. Unlike there it is sized, verified and undone.
//!
//! liqoctl has one slice per pair of clusters, so it is as large as all live reservations of that pair
//! together; it changes when one comes, goes or is resized, and is unpeered after the last.
//! [`LiqoctlPeering`] says how far a reservation is, by what the cluster shows; the [`Keeper`] beside it
//! runs liqoctl. The other backend, `liqo`, needs no kubeconfigs and has a slice per reservation.

mod arguments;
mod board;
mod folder;
mod keeper;
mod live;
mod names;
mod program;
mod provider;
mod requester;
mod view;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use sublet_core::advertisement::Backend;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::Span;

pub use keeper::Keeper;
pub use program::Program;

use super::answer::bounded;
use super::liqo::kinds::ResourceSlice;
use super::liqo::names::tenant_of;
use super::liqo::{Extras, Ground};
use super::{Change, IsLive, Networking, Peering, Progress, Removal};
use crate::controllers::{Clock, Record};
use crate::metrics::Metrics;
use crate::transport::Order;
use board::Board;
use folder::Folder;
use live::Live;
use names::{BORROWS_BY, RESERVATIONS};
use view::Answer;

/// What is to be known.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This cluster.
    pub cluster: ClusterId,
    /// Where instructions are.
    pub namespace: String,
    /// The folder with `<cluster>.kubeconfig` of this cluster and of every provider.
    pub folder: PathBuf,
    /// liqoctl.
    pub program: Program,
    /// Whose the network between the clusters is.
    pub networking: Networking,
    /// What a virtual node has beyond what is reserved.
    pub extras: Extras,
    /// How long pods may take to leave before they are forced to.
    pub eviction: Span,
    /// How long a requester has, at its provider's, to give back what is over.
    pub patience: Span,
}

/// What both sides work with.
struct Site {
    client: Client,
    settings: Settings,
    folder: Folder,
    program: Program,
    clock: Clock,
    board: Board,
    metrics: Arc<Metrics>,
    /// For the pods on virtual nodes.
    ground: Ground,
}

impl Site {
    /// The reservations of a pair that live.
    async fn live<K: Record>(&self, peer: &ClusterId) -> Answer<Live> {
        Live::of::<K>(&self.client, &self.settings.namespace, &self.board, peer).await
    }
}

/// Clusters joined by liqoctl.
pub struct LiqoctlPeering(Arc<Site>);

impl LiqoctlPeering {
    /// The peering, and the task that is to run beside it.
    pub fn new(
        client: Client,
        settings: Settings,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> (Self, Keeper) {
        let slices = super::liqo::Settings {
            extras: settings.extras,
            eviction: settings.eviction,
            patience: settings.patience,
            // There are no slices of our class here, to be waited for or denied.
            grace: Span::ZERO,
            denied: Span::ZERO,
            refresh: Span::ZERO,
            namespace: settings.namespace.clone(),
        };
        let site = Arc::new(Site {
            folder: Folder::new(&settings.folder),
            program: settings.program.clone(),
            board: Board::default(),
            metrics: Arc::clone(&metrics),
            ground: Ground::new(client.clone(), slices, clock, metrics),
            client,
            settings,
            clock,
        });
        (Self(Arc::clone(&site)), Keeper(site))
    }

    /// What is missing here that is needed to borrow; one who only lends needs none of it.
    pub fn missing(&self) -> Option<String> {
        let own = self.0.folder.file(&self.0.settings.cluster);
        own.err().map(|error| error.to_string())
    }
}

impl Peering for LiqoctlPeering {
    fn backend(&self) -> Backend {
        Backend::Liqoctl
    }

    fn establish<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Progress> {
        let progress = async {
            match order.side {
                Side::Requester => self.0.borrow(order).await,
                Side::Provider => self.0.lend(order).await,
            }
        };
        async move { bounded(progress.boxed()).await.unwrap_or_else(Progress::Pending) }.boxed()
    }

    fn withdraw<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Removal> {
        let removal = async {
            match order.side {
                Side::Requester => self.0.give_back(order).await,
                Side::Provider => self.0.take_back(order).await,
            }
        };
        async move { bounded(removal.boxed()).await.unwrap_or_else(Removal::Pending) }.boxed()
    }

    fn sweep<'a>(&'a self, sides: &'a [Side], is_live: &'a IsLive) -> BoxFuture<'a, ()> {
        async move {
            if !sides.contains(&Side::Requester) {
                return;
            }
            if let Err(error) = self.0.sweep(is_live).await {
                tracing::warn!(%error, "what nobody wants could not be looked for");
            }
        }
        .boxed()
    }

    fn changed(&self) -> BoxFuture<'_, Change> {
        self.0.board.changed().boxed()
    }
}

impl Site {
    /// Lets go of peerings that no reservation is left of.
    async fn sweep(&self, is_live: &IsLive) -> Answer<()> {
        let (label, value) = BORROWS_BY;
        let ours = ListParams::default().labels(&format!("{label}={value}"));
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for namespace in namespaces.list_metadata(&ours).await?.items {
            let Some(peer) = tenant_of(&namespace.name_any()) else { continue };
            let slices: Api<ResourceSlice> =
                Api::namespaced(self.client.clone(), &namespace.name_any());
            let slice = slices.get_metadata_opt(peer.as_str()).await?;
            let named = slice.as_ref().and_then(|slice| slice.annotations().get(RESERVATIONS));
            let mut named = arguments::read_named(named.map_or("", String::as_str));
            if !named.any(|name| is_live(Side::Requester, name)) {
                tracing::info!(provider = %peer, "no reservation of this peering is left");
                self.board.note(&peer, |pair| pair.may_end = true);
                self.board.attend(&peer);
            }
        }
        Ok(())
    }
}
