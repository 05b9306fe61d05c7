//! A pod of the requester's, at the provider.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// Which pod; only its labels and how far it is are looked at.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "ShadowPod",
    plural = "shadowpods",
    status = "ShadowPodStatus",
    schema = "disabled",
    namespaced
)]
#[serde(default)]
pub struct ShadowPodSpec {}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowPodStatus {
    /// That of the pod.
    pub phase: String,
}

impl ShadowPod {
    /// Liqo makes no pod of one that has ended.
    pub const FAILED: &'static str = "Failed";

    /// Has it ended, so that Liqo makes no pod of it any more?
    pub fn is_over(&self) -> bool {
        let phase = self.status.as_ref().map(|status| status.phase.as_str());
        matches!(phase, Some(Self::FAILED | "Succeeded"))
    }
}
