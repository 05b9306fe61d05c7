//! One pod: what Kubernetes' scheduler sets aside for it, and where.
//!
//! The formula is that of `PodRequests` in Kubernetes' component helpers, per resource:
//!
//! - containers and sidecars run together, so their requests add up;
//! - an init container runs beside the sidecars that were started before it, so if that is ever more,
//!   it is what is needed;
//! - what the pod as a whole asks for replaces that, for cpu, memory and huge pages;
//! - the overhead of the runtime comes on top.
//!
//! While a container is being resized it may still have what it had, so the larger one counts.

use std::sync::Arc;

use sublet_core::quantity::Round;
use sublet_core::resources::Resources;
use sublet_crds::Invalid;

use super::amounts::Reader;
use super::guest::Guest;
use super::seen::{Container, ContainerStatus, Pod, PodStatus};

/// What is kept of a pod that takes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Where it was bound to.
    pub node: Arc<str>,
    /// What is set aside for it, rounded up.
    pub request: Resources,
    /// Whose it is, if it is not at home here.
    pub guest: Option<Guest>,
    /// What could not be read.
    pub problems: Box<[Invalid]>,
}

impl PodFacts {
    /// What is kept of this pod; none if it takes nothing, because it is not bound to a node yet or
    /// has finished.
    pub fn of(pod: &Pod) -> Option<Self> {
        let finished = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        if pod.spec.node_name.is_empty() || finished {
            return None;
        }
        let mut reader = Reader::default();
        Some(Self {
            node: pod.spec.node_name.as_str().into(),
            request: request(pod, &mut reader),
            guest: pod.metadata.labels.as_ref().and_then(Guest::of),
            problems: reader.problems(),
        })
    }
}

/// What a pod takes, or will once it is bound; none if it has finished.
pub(crate) fn asked_by(pod: &Pod) -> Option<Resources> {
    let is_finished = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
    (!is_finished).then(|| request(pod, &mut Reader::default()))
}

/// The same of all of these; more than anybody has, where that cannot be added up.
pub(crate) fn asked_by_all<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Resources {
    let all = pods.into_iter().filter_map(asked_by);
    all.fold(Resources::default(), |sum, one| {
        sum.checked_add(&one).unwrap_or_else(|_| Resources::new(u64::MAX, u64::MAX))
    })
}

fn request(pod: &Pod, reader: &mut Reader) -> Resources {
    const WHOLE: &str = "spec.resources.requests";
    const OVERHEAD: &str = "spec.overhead";
    let containers = together(pod, reader);
    // Of what a pod asks for as a whole, Kubernetes takes notice of these alone.
    let noticed = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let whole = pod.spec.resources.requests.iter().filter(|(name, _)| noticed(name));
    let asked = reader.replaced(WHOLE, containers, whole, Round::Up);
    let overhead = reader.list(OVERHEAD, &pod.spec.overhead, Round::Up);
    reader.sum(OVERHEAD, &asked, &overhead)
}

/// What containers, sidecars and init containers need at most at one time.
fn together(pod: &Pod, reader: &mut Reader) -> Resources {
    const AT: &str = "spec.containers";
    let status = &pod.status;
    let mut running = Resources::default();
    for container in &pod.spec.containers {
        let has = has(&status.container_statuses, container);
        let request = current(container, has, status, reader);
        running = reader.sum(AT, &running, &request);
    }
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for container in &pod.spec.init_containers {
        if container.restart_policy == "Always" {
            let has = has(&status.init_container_statuses, container);
            let request = current(container, has, status, reader);
            running = reader.sum(AT, &running, &request);
            sidecars = reader.sum(AT, &sidecars, &request);
            peak = peak.max(&sidecars);
        } else {
            let request = current(container, None, status, reader);
            peak = peak.max(&reader.sum(AT, &sidecars, &request));
        }
    }
    running.max(&peak)
}

fn has<'a>(all: &'a [ContainerStatus], container: &Container) -> Option<&'a ContainerStatus> {
    all.iter().find(|status| status.name == container.name && status.resources.is_some())
}

/// What one container asks for, or still has.
fn current(
    container: &Container,
    has: Option<&ContainerStatus>,
    status: &PodStatus,
    reader: &mut Reader,
) -> Resources {
    let name = &container.name;
    let at = format!("spec.containers[{name}].resources.requests");
    let asked = reader.list(&at, &container.resources.requests, Round::Up);
    let Some(has) = has else { return asked };
    let runs = has.resources.as_ref().map(|runs| {
        let at = format!("status.containerStatuses[{name}].resources.requests");
        reader.list(&at, &runs.requests, Round::Up)
    });
    let at = format!("status.containerStatuses[{name}].allocatedResources");
    let agreed = reader.list(&at, &has.allocated_resources, Round::Up);
    let has = agreed.max(&runs.unwrap_or_default());
    if is_infeasible(status) { has } else { asked.max(&has) }
}

/// Will the node never do the resize that was asked for?
fn is_infeasible(status: &PodStatus) -> bool {
    let pending = status.conditions.iter().find(|one| one.kind == "PodResizePending");
    pending.is_some_and(|pending| pending.reason == "Infeasible")
}

#[cfg(test)]
mod tests;
