//! What Liqo's webhook lets into the provider, per slice.

use std::collections::BTreeMap;

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use sublet_crds::Quantity;

/// What is let in.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "Quota",
    plural = "quotas",
    schema = "disabled",
    namespaced
)]
#[serde(default, rename_all = "camelCase")]
pub struct QuotaSpec {
    /// By whom.
    pub user: String,
    /// How much.
    pub resources: BTreeMap<String, Quantity>,
    /// How strictly.
    pub limits_enforcement: Enforcement,
    /// Nothing more, for now.
    pub cordoned: Option<bool>,
}

/// How strictly a quota is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Enforcement {
    /// Pods that ask for nothing get in, and take what they want.
    #[default]
    None,
    /// Pods must say what they ask for.
    Soft,
    /// And may not take more than that.
    Hard,
}
