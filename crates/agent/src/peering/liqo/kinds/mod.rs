//! Liqo's kinds, and of each only what is looked at or written. Every field may be absent: Liqo's
//! versions differ in the rest, and one object that cannot be read would stop a watch. None of these
//! is ever written as a whole: what is not named here would be lost.

mod condition;
mod foreign_cluster;
mod identity;
mod offloading;
mod quota;
mod shadow_pod;
mod slice;
mod tenant;
mod virtual_node;

pub use condition::{Condition, status};
pub use foreign_cluster::{ForeignCluster, ForeignClusterSpec, ForeignClusterStatus};
pub use identity::{Identity, IdentitySpec, Renew, RenewSpec, RenewStatus};
pub use offloading::{
    NamespaceMap, NamespaceMapSpec, NamespaceOffloading, NamespaceOffloadingSpec,
};
pub use quota::{Enforcement, Quota, QuotaSpec};
pub use shadow_pod::{ShadowPod, ShadowPodSpec};
pub use slice::{ResourceSlice, ResourceSliceSpec, ResourceSliceStatus};
pub use tenant::{Tenant, TenantSpec, TenantStatus};
pub use virtual_node::{VirtualNode, VirtualNodeSpec};
