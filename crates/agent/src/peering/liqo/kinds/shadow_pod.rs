//! A pod of the requester's, at the provider.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// Which pod; only its labels are looked at.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "ShadowPod",
    plural = "shadowpods",
    schema = "disabled",
    namespaced
)]
#[serde(default)]
pub struct ShadowPodSpec {}
