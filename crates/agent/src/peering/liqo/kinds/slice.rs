//! A slice of a provider. The requester makes it, Liqo copies it to the provider, and copies the
//! status back.

use std::collections::BTreeMap;

use kube::{CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};
use sublet_crds::Quantity;

use super::super::names::RECLAIMED_SINCE;
use super::condition::{self, Condition};

/// What is asked for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "ResourceSlice",
    plural = "resourceslices",
    status = "ResourceSliceStatus",
    schema = "disabled",
    namespaced
)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSliceSpec {
    /// Who decides about it.
    pub class: String,
    /// From whom.
    #[serde(rename = "providerClusterID")]
    pub provider_cluster_id: String,
    /// How much.
    pub resources: BTreeMap<String, Quantity>,
    /// The consumer's request for a certificate: PEM, as base64. Written by Liqo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csr: Option<String>,
}

/// What was granted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSliceStatus {
    /// How far it is.
    pub conditions: Vec<Condition>,
    /// How much.
    pub resources: BTreeMap<String, Quantity>,
    /// The labels of its virtual node.
    pub node_labels: BTreeMap<String, String>,
}

impl ResourceSlice {
    /// Whether the consumer is who it says: decided by Liqo.
    pub const AUTHENTICATION: &str = "Authentication";
    /// Whether the amounts are granted: decided by the class.
    pub const RESOURCES: &str = "Resources";
    /// Yes.
    pub const ACCEPTED: &str = "Accepted";
    /// No.
    pub const DENIED: &str = "Denied";

    /// What is said about one of these.
    pub fn condition(&self, about: &str) -> Option<&Condition> {
        condition::status(&self.status.as_ref()?.conditions, about)
    }

    /// Was it denied by its class, and nothing is left to be taken back? Such a one counts for nobody.
    pub fn is_worthless(&self) -> bool {
        let is_denied =
            self.condition(Self::RESOURCES).is_some_and(|said| said.status == Self::DENIED);
        is_denied && !self.annotations().contains_key(RECLAIMED_SINCE)
    }

    /// Was it granted by its class?
    pub fn is_granted(&self) -> bool {
        self.condition(Self::RESOURCES).is_some_and(|said| said.status == Self::ACCEPTED)
    }
}
