//! The pair as its requester has it: one slice, as large as all its reservations together.
//!
//! What is wanted is compared with what this cluster shows; where they differ liqoctl is run, and then
//! it is looked again. That it says to have succeeded, or failed, is not believed.

use std::ffi::OsString;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_crds::{Obstacle, ProviderInstruction, ReservationInstruction};
use tokio::time::Instant;

use super::Site;
use super::arguments::{self, Kubeconfigs, named};
use super::board::{Pair, Trouble};
use super::folder;
use super::live::Live;
use super::program::Failure;
use super::view::{Answer, View, adopt, gone, make_namespace, mark, tidy};
use crate::controllers::Outcome;
use crate::peering::liqo::kinds::{ForeignCluster, Identity, ResourceSlice};
use crate::peering::liqo::names::{LEAVING_SINCE, WRITER, tenant_namespace};
use crate::peering::liqo::{List, asked, text};
use crate::peering::{Networking, Progress, Removal, Why};
use crate::transport::Order;

/// How soon it is looked again at what Liqo is doing; what it shows by itself is seen at once.
const SOON: Duration = Duration::from_millis(500);
/// How long Liqo may take to make what liqoctl asked it for, until liqoctl is run again.
const PATIENCE: Duration = Duration::from_secs(30);

/// After so many failures in a row it is begun from nothing.
const FAILURES_MAX: u32 = 2;

const DONE: Outcome = Outcome::Done(None);
const AGAIN: Outcome = Outcome::Done(Some(SOON));

impl Site {
    /// Whether these amounts are usable; if not, the pair is seen to.
    pub(super) async fn borrow(&self, order: &Order) -> Answer<Progress> {
        if order.amounts.cpu == 0 || order.amounts.memory == 0 {
            let why = "a virtual node without cpu or memory never becomes ready";
            return Ok(Progress::Failed(Why::hindered(Obstacle::Unsuitable, why)));
        }
        self.board.keep(order);
        let live = self.borrowed(&order.peer).await?;
        let view = View::of(&self.client, &order.peer).await?;
        let is_as_wanted = self.is_as_wanted(&view, &live);
        if !is_as_wanted {
            self.board.attend(&order.peer);
        }
        let needed = match live.needed_for(&order.reservation, &order.amounts) {
            Ok(needed) => needed,
            Err(error) => return Ok(Progress::Failed(error.to_string().into())),
        };
        let Some(lacking) = view.lacks(&needed) else { return Ok(Progress::Ready) };
        if is_as_wanted {
            // Liqo is at it; whether it needs help is decided there.
            self.board.attend(&order.peer);
        }
        Ok(match self.board.pair(&order.peer).trouble {
            // What was granted once does not end because somebody mislaid a file.
            Some(trouble) if trouble.is_lasting && view.slice.is_none() => {
                Progress::Failed(trouble.why)
            }
            Some(trouble) => Progress::Pending(trouble.why),
            None => Progress::Pending(lacking.into()),
        })
    }

    /// Whether nothing is left of this reservation: the slice is smaller by it, or gone with the last.
    pub(super) async fn give_back(&self, order: &Order) -> Answer<Removal> {
        self.board.leave(order);
        let live = self.borrowed(&order.peer).await?;
        let view = View::of(&self.client, &order.peer).await?;
        let is_gone = if live.is_empty() {
            !view.is_ours()
        } else {
            view.slice.is_none() || self.is_as_wanted(&view, &live) && view.is_granted()
        };
        // Also to remove what is left in the end.
        self.board.attend(&order.peer);
        if is_gone {
            self.board.settle(order);
            return Ok(Removal::Gone);
        }
        let trouble = self.board.pair(&order.peer).trouble.map(|trouble| trouble.why);
        let doing = if live.is_empty() {
            "liqoctl is taking the peering down"
        } else {
            "the slice is being made smaller"
        };
        Ok(Removal::Pending(trouble.unwrap_or_else(|| doing.into())))
    }

    /// Does what is to be done about a pair, if anything.
    pub(super) async fn see_to(&self, peer: &ClusterId) -> Answer<Outcome> {
        let live = self.borrowed(peer).await?;
        let view = View::of(&self.client, peer).await?;
        adopt(&self.client, peer, &view).await?;
        self.ground.welcome(peer).await?;
        if !live.is_empty() {
            return self.join(peer, &live, &view).await;
        }
        if view.is_ours() && self.board.pair(peer).may_end {
            return self.part(peer, &view).await;
        }
        let is_needed = view.is_ours() || !self.live::<ProviderInstruction>(peer).await?.is_empty();
        let is_tidy = is_needed || tidy(&self.client, &self.settings.cluster, peer, &view).await?;
        // Whoever is still at it may take his time.
        Ok(if is_tidy { DONE } else { Outcome::Retry(None) })
    }

    pub(super) async fn borrowed(&self, peer: &ClusterId) -> Answer<Live> {
        self.live::<ReservationInstruction>(peer).await
    }

    fn is_as_wanted(&self, view: &View, live: &Live) -> bool {
        let sizes = live.total().map(|total| asked(&total, self.settings.extras));
        sizes.is_ok_and(|sizes| view.asks_for(&sizes, &named(&live.names())))
    }

    /// Brings it about that the slice is as large as all that live.
    async fn join(&self, peer: &ClusterId, live: &Live, view: &View) -> Answer<Outcome> {
        if let Some(what) = view.leaving() {
            self.board.note(peer, |pair| {
                pair.waits_unless_failed(&format!("{what} of an earlier peering is still going"));
            });
            return Ok(AGAIN);
        }
        let total = match live.total() {
            Ok(total) => total,
            Err(error) => {
                self.board.note(peer, |pair| pair.waits(error.to_string().into()));
                return Ok(DONE);
            }
        };
        self.stay(view.node.as_ref()).await?;
        let pair = self.board.pair(peer);
        if self.is_as_wanted(view, live) {
            let is_late = pair.ran.is_none_or(|ran| ran.elapsed() > PATIENCE);
            match view.lacks(&total) {
                None => {
                    self.board.note(peer, Pair::is_well);
                    return Ok(DONE);
                }
                Some(_) if !is_late => return Ok(AGAIN),
                Some(_) => {}
            }
        }
        if let Some(rest) = pair.pause(Instant::now()) {
            return Ok(Outcome::Done(Some(rest)));
        }
        self.peer(peer, live, &asked(&total, self.settings.extras)).await?;
        Ok(AGAIN)
    }

    /// Runs `liqoctl peer`, and looks what came of it.
    async fn peer(&self, peer: &ClusterId, live: &Live, sizes: &List) -> Answer<()> {
        let (names, limit) = (live.names(), self.limit());
        self.ground.expect_back(peer).await?;
        tracing::info!(provider = %peer, sizes = text(sizes), reservations = names.len(), "liqoctl peer");
        let arguments = |pair: &Kubeconfigs| arguments::peer(pair, sizes, &names, limit);
        let ran = match self.kubeconfigs(peer).await {
            Ok(pair) => {
                make_namespace(&self.client, peer).await?;
                mark(&self.client, peer, true).await?;
                self.run(peer, &arguments(&pair)).await
            }
            Err(trouble) => Err(trouble),
        };
        let after = View::of(&self.client, peer).await?;
        match ran {
            Ok(()) if self.is_as_wanted(&after, live) => self.board.note(peer, Pair::is_well),
            Ok(()) => self.failed(peer, unseen("liqoctl peer", &after.slice_text(), peer)),
            Err(trouble) => self.failed(peer, trouble),
        }
        if self.board.pair(peer).failures >= FAILURES_MAX {
            self.begin_from_nothing(peer, &after).await?;
        }
        Ok(())
    }

    /// Takes the peering down: pods leave first.
    async fn part(&self, peer: &ClusterId, view: &View) -> Answer<Outcome> {
        if let Some(node) = &view.node {
            let since = self.ground.node_leaving_since(node).await?;
            if let Some(why) = self.ground.empty(node, since).await? {
                self.board.note(peer, |pair| pair.waits(why));
                return Ok(AGAIN);
            }
        }
        if self.give_up_if_lost(peer, view).await? {
            return Ok(AGAIN);
        }
        let pair = self.board.pair(peer);
        if let Some(rest) = pair.pause(Instant::now()) {
            return Ok(Outcome::Done(Some(rest)));
        }
        if let Some(what) = self.remove(peer, view).await? {
            self.board.note(peer, |pair| pair.waits_unless_failed(what));
            return Ok(AGAIN);
        }
        let arguments = match self.settings.networking {
            Networking::Disabled => arguments::unpeer,
            // The other would take the network down, which is somebody else's.
            Networking::Existing => arguments::unauthenticate,
        };
        tracing::info!(provider = %peer, "the clusters are unpeered by liqoctl");
        let pair = match self.kubeconfigs(peer).await {
            Ok(pair) => pair,
            Err(trouble) => {
                self.failed(peer, trouble);
                return Ok(AGAIN);
            }
        };
        let ran = self.run(peer, &arguments(&pair, self.limit())).await;
        match (self.folder.is_tenant(&self.settings.cluster, peer).await, ran) {
            (Ok(false), _) => {
                mark(&self.client, peer, false).await?;
                self.board.note(peer, Pair::is_well);
            }
            (Ok(true), Ok(())) => {
                self.failed(peer, unseen("liqoctl", "our tenant is still there", peer));
            }
            (_, Err(trouble)) => self.failed(peer, trouble),
            (Err(error), Ok(())) => self.failed(peer, misplaced(error)),
        }
        Ok(AGAIN)
    }

    /// What a handshake that failed leaves here may be in the way of the next one.
    async fn begin_from_nothing(&self, peer: &ClusterId, view: &View) -> Answer<()> {
        if view.slice.is_none() && view.identity.is_none() {
            mark(&self.client, peer, false).await?;
            let view = View::of(&self.client, peer).await?;
            tidy(&self.client, &self.settings.cluster, peer, &view).await?;
        }
        Ok(())
    }

    /// Removes what this cluster has of the peering, in the order that strands nothing: slice and virtual
    /// node, then the identity. liqoctl does not wait for Liqo to let go of that before it removes the
    /// tenant, and without the tenant Liqo cannot. Says what is still there.
    async fn remove(&self, peer: &ClusterId, view: &View) -> Answer<Option<&'static str>> {
        let within = tenant_namespace(peer);
        let this = |uid| DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        };
        if let Some(slice) = &view.slice {
            let slices: Api<ResourceSlice> = Api::namespaced(self.client.clone(), &within);
            gone(slices.delete(peer.as_str(), &this(slice.uid())).await)?;
            return Ok(Some("Liqo is giving the slice back to the provider"));
        }
        if view.virtual_node || view.node.is_some() {
            return Ok(Some("the virtual node is being removed"));
        }
        if let Some(identity) = &view.identity {
            let identities: Api<Identity> = Api::namespaced(self.client.clone(), &within);
            gone(identities.delete(&identity.name_any(), &this(identity.uid())).await)?;
            return Ok(Some("Liqo is letting go of the identity"));
        }
        Ok((!view.is_unpeered()).then_some("Liqo is letting go of the identity"))
    }

    /// The provider is lost, and nobody waits for it: Liqo is told so, and the rest of the peering goes
    /// with its namespace. Says whether that is so. One that has confirmed, and is not reached for a moment,
    /// is unpeered when it is reached again; one where somebody else has something is not given up.
    async fn give_up_if_lost(&self, peer: &ClusterId, view: &View) -> Answer<bool> {
        if !self.board.pair(peer).is_over || view.has_others() {
            return Ok(false);
        }
        let clusters: Api<ForeignCluster> = Api::all(self.client.clone());
        let cluster = clusters.get_opt(peer.as_str()).await?;
        let Some(cluster) = cluster.filter(|cluster| self.ground.is_lost(cluster)) else {
            return Ok(false);
        };
        self.ground.give_up(&cluster).await?;
        self.board.note(peer, |pair| pair.waits("the provider is lost: Liqo gives it up".into()));
        if self.remove(peer, view).await?.is_none() {
            mark(&self.client, peer, false).await?;
        }
        Ok(true)
    }

    /// The pair is needed again: its node is a node like any other.
    async fn stay(&self, node: Option<&Node>) -> Answer<()> {
        let leaving = node.filter(|node| node.annotations().contains_key(LEAVING_SINCE));
        let Some(node) = leaving else { return Ok(()) };
        let nodes: Api<Node> = Api::all(self.client.clone());
        let change = json!({
            "metadata": { "annotations": { LEAVING_SINCE: null } },
            "spec": { "unschedulable": null },
        });
        gone(nodes.patch(&node.name_any(), &writer(), &Patch::Merge(&change)).await).map(drop)
    }

    async fn kubeconfigs(&self, peer: &ClusterId) -> Result<Kubeconfigs, Trouble> {
        let pair = self.folder.pair(&self.settings.cluster, peer).await.map_err(misplaced);
        self.board.note(peer, |pair| pair.ran = Some(Instant::now()));
        pair
    }

    async fn run(&self, peer: &ClusterId, arguments: &[OsString]) -> Result<(), Trouble> {
        let ran = self.program.run(arguments).await;
        self.board.note(peer, |pair| pair.ran = Some(Instant::now()));
        self.metrics.liqoctl_ran(ran.as_ref().err().map_or("succeeded", Failure::word));
        ran.map_err(failure)
    }

    /// What liqoctl is told to keep to, so that it can still say what it waited for.
    fn limit(&self) -> Duration {
        self.program.timeout / 10 * 9
    }

    fn failed(&self, peer: &ClusterId, trouble: Trouble) {
        tracing::warn!(provider = %peer, why = %trouble.why, "the clusters are not as they should be");
        self.board.note(peer, |pair| pair.failed(trouble));
    }
}

/// What only people can put right ends what has not begun, so that it is known at once.
fn misplaced(error: folder::Error) -> Trouble {
    let is_lasting = !matches!(error, folder::Error::Silent { .. });
    Trouble { why: Why::hindered(Obstacle::KubeconfigUnusable, error.to_string()), is_lasting }
}

fn failure(failure: Failure) -> Trouble {
    let is_lasting = matches!(failure, Failure::Missing { .. } | Failure::NotStarted { .. });
    let obstacle = if is_lasting { Obstacle::LiqoctlMissing } else { Obstacle::LiqoctlFailed };
    Trouble { why: Why::hindered(obstacle, failure.to_string()), is_lasting }
}

/// It said that it did it, and did not.
fn unseen(what: &str, seen: &str, peer: &ClusterId) -> Trouble {
    let text = format!("{what} ended well, but with {peer} {seen}");
    Trouble { why: Why::hindered(Obstacle::LiqoctlFailed, text), is_lasting: false }
}

pub(super) fn writer() -> PatchParams {
    PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() }
}
