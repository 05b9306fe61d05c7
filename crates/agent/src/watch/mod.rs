//! Watches of nodes, pods and grants, folded as they come.
//!
//! Nothing is kept of an object but what the [`Fold`] needs: there is no store of objects beside it.
//! A fresh list comes as a stream of single objects where the server can do that, and else in small
//! pages, so that it never stands in memory as a whole. A watch that breaks resumes where it was; one
//! that cannot is listed again, and until that list is complete the old sums stay.

mod blind;
mod source;

use std::sync::Arc;
use std::time::Duration;

use kube::runtime::watcher::Event;
use kube::{Api, Client};
use sublet_crds::ProviderInstruction;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::collect::seen::{Node, Pod};
use crate::collect::{Fold, Grant, Measured, NodeFacts, NodeRules, PodFacts};
use crate::metrics::Metrics;
use source::Source;

pub use blind::Blind;

/// How long events are gathered before the sums are told: a deployment of a hundred pods is one
/// piece of news, not a hundred.
const GATHER: Duration = Duration::from_millis(100);

/// What was measured last; none before everything was listed once.
pub type Told = watch::Receiver<Option<Arc<Measured>>>;

/// How many changes of grants may wait for whoever carries them out.
const AHEAD: usize = 64;

/// What happens to grants, for whoever carries them out: they are watched once, here.
pub type Grants = mpsc::Receiver<Event<ProviderInstruction>>;

/// Measures the cluster.
pub struct Collector {
    nodes: Source<Node>,
    pods: Source<Pod>,
    grants: Source<ProviderInstruction>,
    rules: NodeRules,
    fold: Fold,
    blind: Blind,
    metrics: Arc<Metrics>,
    tell: watch::Sender<Option<Arc<Measured>>>,
    passed_on: Option<mpsc::Sender<Event<ProviderInstruction>>>,
}

impl Collector {
    /// A collector that has not begun, and what it will say. Grants are in `namespace`.
    pub fn new(
        client: &Client,
        namespace: &str,
        rules: NodeRules,
        metrics: Arc<Metrics>,
    ) -> (Self, Told) {
        let (tell, told) = watch::channel(None);
        let counts = |what| metrics.watch(what);
        let blind = Blind::default();
        let blinded = || blind.clone();
        let instructions = Api::namespaced(client.clone(), namespace);
        let collector = Self {
            nodes: Source::new("nodes", Api::all(client.clone()), blinded(), counts("nodes")),
            pods: Source::new("pods", Api::all(client.clone()), blinded(), counts("pods")),
            grants: Source::new("instructions", instructions, blinded(), counts("instructions")),
            rules,
            fold: Fold::default(),
            blind,
            metrics,
            tell,
            passed_on: None,
        };
        (collector, told)
    }

    /// What happens to grants from the beginning, for one other.
    pub fn grants(&mut self) -> Grants {
        let (give, given) = mpsc::channel(AHEAD);
        self.passed_on = Some(give);
        given
    }

    /// What cannot be listed, now and whenever it is asked later.
    pub fn blind(&self) -> Blind {
        self.blind.clone()
    }

    /// Measures until the agent stops.
    pub async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let mut tell_at = None;
        loop {
            let (at, mut grant) = (tell_at.unwrap_or_else(Instant::now), None);
            tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return,
                () = sleep_until(at), if tell_at.is_some() => {
                    self.tell();
                    tell_at = None;
                    continue;
                }
                event = self.nodes.next() => fold_node(&mut self.fold, event, &self.rules),
                event = self.pods.next() => fold_pod(&mut self.fold, event),
                event = self.grants.next() => {
                    grant = Some(event.clone());
                    fold_grant(&mut self.fold, event);
                }
            }
            if let (Some(other), Some(event)) = (&self.passed_on, grant) {
                // Without the other one the agent ends anyhow.
                drop(other.send(event).await);
            }
            if tell_at.is_none() && self.fold.is_complete() {
                tell_at = Some(Instant::now() + GATHER);
            }
        }
    }

    /// Says what was measured, if it is news.
    fn tell(&self) {
        let measured = self.fold.measured();
        let known = self.tell.borrow().clone();
        if known.as_deref() == Some(&measured) {
            return;
        }
        if known.is_none_or(|known| known.problems != measured.problems) {
            for (subject, problem) in self.fold.problems() {
                tracing::warn!(?subject, %problem, "an amount cannot be read and is not counted");
            }
        }
        self.metrics.measured(&measured);
        self.tell.send_replace(Some(Arc::new(measured)));
    }
}

fn fold_node(fold: &mut Fold, event: Event<Node>, rules: &NodeRules) {
    match event {
        Event::Init => fold.begin_nodes(),
        Event::InitApply(node) | Event::Apply(node) => {
            fold.apply_node(node.key(), NodeFacts::of(&node, rules));
        }
        Event::InitDone => fold.finish_nodes(),
        Event::Delete(node) => fold.delete_node(node.key()),
    }
}

fn fold_pod(fold: &mut Fold, event: Event<Pod>) {
    match event {
        Event::Init => fold.begin_pods(),
        Event::InitApply(pod) | Event::Apply(pod) => {
            fold.apply_pod(&pod.key(), PodFacts::of(&pod));
        }
        Event::InitDone => fold.finish_pods(),
        Event::Delete(pod) => fold.delete_pod(&pod.key()),
    }
}

fn fold_grant(fold: &mut Fold, event: Event<ProviderInstruction>) {
    let name = |grant: &ProviderInstruction| grant.metadata.name.clone().unwrap_or_default();
    match event {
        Event::Init => fold.begin_grants(),
        Event::InitApply(grant) | Event::Apply(grant) => {
            fold.apply_grant(&name(&grant), Grant::of(&grant));
        }
        Event::InitDone => fold.finish_grants(),
        Event::Delete(grant) => fold.delete_grant(&name(&grant)),
    }
}
