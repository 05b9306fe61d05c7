//! What an operator says of a cluster: its name, its labels, what lending costs.

use std::collections::BTreeMap;

use sublet_core::id::ClusterId;
use sublet_core::time::Time;
use sublet_wire::Invalid;
use sublet_wire::v1::{Capabilities, Cost};

use super::{Audience, advertisement};
use crate::collect::Measured;
use crate::offer::Offer;

/// What an operator says of a cluster.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Who; the CN of the agent's certificate.
    pub cluster: ClusterId,
    /// What the Go system calls it: the name of the Advertisement object.
    pub name: String,
    /// Free labels, matched by the constraints of a request.
    pub labels: BTreeMap<String, String>,
    /// Where it is; told as a label.
    pub region: Option<String>,
    /// What lending costs.
    pub cost: Option<Cost>,
    /// What the agent can do.
    pub capabilities: Capabilities,
    /// False when it takes part but does not lend now.
    pub lending: bool,
    /// What of the spare capacity is offered.
    pub offer: Offer,
}

/// Why a text is not a list of labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// A label without a value.
    #[error("{0:?} is not a label: write one such as tier=gold")]
    NoValue(String),
    /// The same label twice.
    #[error("the label {0} is given twice: leave one out")]
    Twice(String),
}

impl Profile {
    /// The label of the region, as Kubernetes has it on nodes.
    pub const REGION: &str = "topology.kubernetes.io/region";

    /// A cluster that lends everything, without labels or price.
    pub fn plain(cluster: ClusterId) -> Self {
        Self {
            cluster,
            name: "cluster-advertisement".to_owned(),
            labels: BTreeMap::new(),
            region: None,
            cost: None,
            capabilities: Capabilities::default(),
            lending: true,
            offer: Offer::default(),
        }
    }

    /// Would the broker take it? To be asked once at the start, so that a wrong price or label is an
    /// error there, and not in every answer of the broker.
    pub fn check(&self) -> Result<(), Invalid> {
        let (nothing, start) = (Measured::default(), Time::from_millis(0));
        let number = sublet_crds::Number::default();
        let told = advertisement(self, &nothing, Audience::Broker, number, start);
        told.to_core(self.cluster.clone()).map(drop)
    }

    /// The labels, with that of the region.
    pub(super) fn all_labels(&self) -> BTreeMap<String, String> {
        let region = self.region.iter().map(|region| (Self::REGION.to_owned(), region.clone()));
        self.labels.clone().into_iter().chain(region).collect()
    }
}

/// Labels as an operator writes them: `tier=gold,gpu-model=h100`.
pub fn labels(text: &str) -> Result<BTreeMap<String, String>, LabelError> {
    let mut labels = BTreeMap::new();
    for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let Some((key, value)) = one.split_once('=').filter(|(key, _)| !key.trim().is_empty())
        else {
            return Err(LabelError::NoValue(one.to_owned()));
        };
        let key = key.trim().to_owned();
        if labels.insert(key.clone(), value.trim().to_owned()).is_some() {
            return Err(LabelError::Twice(key));
        }
    }
    Ok(labels)
}
