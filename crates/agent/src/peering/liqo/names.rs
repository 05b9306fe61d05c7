//! Names, labels and annotations: Liqo's, as v1.2.0 has them, and ours beside them. Each is spelled
//! here and nowhere else.

use sublet_core::id::ClusterId;

/// Whose fields ours are, to the API server.
pub const WRITER: &str = "sublet-agent";

/// Where Liqo lives.
pub const LIQO_NAMESPACE: &str = "liqo";
/// In there, the key of the cluster (`privateKey`, `publicKey`, both PEM).
pub const KEYS_SECRET: &str = "authentication-keys";
/// In there, the id of the cluster (`CLUSTER_ID`).
pub const ID_CONFIG_MAP: &str = "liqo-clusterid-configmap";

/// The class of our slices: Liqo leaves those of a class that it does not know to whoever does.
pub const CLASS: &str = "sublet.io/reservation";
/// The label of a virtual node that says which reservation it is.
pub const RESERVATION: &str = "sublet.io/reservation";
/// The annotation of a requester's slice since when it is being taken down, in RFC 3339.
pub const LEAVING_SINCE: &str = "sublet.io/leaving-since";
/// The same on the provider's copy of it. Another one, because Liqo copies annotations, and because a
/// consumer may not touch this one.
pub const RECLAIMED_SINCE: &str = "sublet.io/reclaimed-since";
/// The annotation of a namespace's offloading that says for which reservations it goes where.
pub const RESERVATIONS: &str = "sublet.io/reservations";
/// The label of a namespace that requests of other namespaces may send away, with the value `true`.
pub const MAY_BE_OFFLOADED: &str = "sublet.io/may-be-offloaded";
/// The annotation of a slice, on either side, and of a map of namespaces, that says how old it was, in seconds, when Liqo
/// was last reminded of it.
pub const REMINDED: &str = "sublet.io/reminded";
/// The role that the agent binds itself to in each tenant namespace.
pub const TENANT_ROLE: &str = "sublet-agent-tenant";
/// The admission policy against grants that a consumer makes to itself.
pub const POLICY: &str = "sublet-liqo-slices";
/// The admission policy against pods that a consumer holds on to.
pub const POD_POLICY: &str = "sublet-liqo-pods";
/// The admission policy against what else a consumer holds on to.
pub const COPY_POLICY: &str = "sublet-liqo-copies";

/// The other cluster, on whatever is about one.
pub const REMOTE_CLUSTER_ID: &str = "liqo.io/remote-cluster-id";
/// Says of a namespace that it is a tenant's.
pub const TENANT_NAMESPACE: &str = "liqo.io/tenant-namespace";
/// Says of an object that it is to be copied to the other cluster, and to which.
pub const REPLICATION: &str = "liqo.io/replication";
/// See [`REPLICATION`].
pub const REMOTE_ID: &str = "liqo.io/remoteID";
/// Says of an object that it is a copy, and from where.
pub const REPLICATED: &str = "liqo.io/replicated";
/// See [`REPLICATED`].
pub const ORIGIN_ID: &str = "liqo.io/originID";
/// The annotation of a slice that makes a virtual node of it.
pub const CREATE_VIRTUAL_NODE: &str = "liqo.io/create-virtual-node";
/// The annotation of a slice's copy that lets no more pods in.
pub const CORDON: &str = "liqo.io/cordon";
/// The label of a virtual node's object that names its slice.
pub const SLICE_NAME: &str = "liqo.io/resourceslice-name";
/// The label of a node that is none, and its value.
pub const NODE_TYPE: &str = "liqo.io/type";
/// See [`NODE_TYPE`].
pub const VIRTUAL_NODE: &str = "virtual-node";
/// The lease that the virtual kubelets of a pair share.
pub const KUBELETS_LEASE: &str = "virtual-kubelet-leader-election";
/// The label of the requests for certificates that Liqo makes for other clusters.
pub const CSR_LABEL: &str = "liqo.io/remote-tenant-csr";
/// The annotation of a `ForeignCluster` that is given up.
pub const UNREACHABLE: &str = "liqo.io/foreign-cluster-permanently-unreachable";

/// Beside it, that it was us who gave it up.
pub const GIVEN_UP: &str = "sublet.io/given-up";

/// How the name of every tenant namespace begins.
pub const TENANT_PREFIX: &str = "liqo-tenant-";

/// The namespace in which everything about a pair is, on either side.
pub fn tenant_namespace(peer: &ClusterId) -> String {
    format!("{TENANT_PREFIX}{peer}")
}

/// With whom a tenant namespace is. Labels can be written by others; namespaces are not theirs.
pub fn tenant_of(namespace: &str) -> Option<ClusterId> {
    namespace.strip_prefix(TENANT_PREFIX)?.parse().ok()
}

/// The Secret in which Liqo keeps the certificate of a slice, at its provider.
pub fn certificate_secret(slice: &str) -> String {
    format!("liqo-remote-certificate-{slice}")
}

/// Who made an object, and the value that says that we did: nothing else is ever removed.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The annotation of a Tenant and of an Identity that names the link they belong to.
pub const LINK: &str = "sublet.io/link";
/// The annotation of a Tenant that says when it was last written, in RFC 3339.
pub const OFFERED_AT: &str = "sublet.io/offered-at";
/// The annotation of a signed nonce that says for which key Liqo was made to look at it.
pub const SIGN_FOR: &str = "sublet.io/sign-for";
/// The label of a `ForeignCluster` that goes with the link.
pub const FOREIGN_MARK: &str = "sublet.io/goes-with-link";
/// The annotation of a tenant namespace that says since when nothing is lent, in RFC 3339.
pub const UNUSED_AS_PROVIDER: &str = "sublet.io/unused-as-provider-since";
/// The same of what is borrowed.
pub const UNUSED_AS_REQUESTER: &str = "sublet.io/unused-as-requester-since";
/// The `ConfigMap` with the Liqo keys of other clusters.
pub const PINS: &str = "sublet-liqo-keys";

/// The Secret with the nonce of a provider, and its label.
pub const NONCE_SECRET: &str = "liqo-nonce";
/// See [`NONCE_SECRET`].
pub const NONCE: &str = "liqo.io/nonce";
/// The Secret with the nonce that a requester signs, and its label.
pub const SIGNED_NONCE_SECRET: &str = "liqo-signed-nonce";
/// See [`SIGNED_NONCE_SECRET`].
pub const SIGNED_NONCE: &str = "liqo.io/signed-nonce";
/// The Secret in which a provider's Liqo keeps the certificate of a requester.
pub const TENANT_CERTIFICATE: &str = "liqo-remote-certificate";
/// The label of a Secret with a kubeconfig that says whose it is, and its value for a whole cluster's.
pub const IDENTITY_TYPE: &str = "liqo.io/identity-type";
/// See [`IDENTITY_TYPE`].
pub const CONTROL_PLANE: &str = "ControlPlane";
/// With which the replicator keeps such a Secret until nothing is replicated any more.
pub const REPLICATOR_FINALIZER: &str = "crdreplicator.liqo.io/operator";
/// With which the replicator keeps what it has copied to the provider until the copy is gone.
pub const COPIED_FINALIZER: &str = "crdreplicator.liqo.io/resource";
/// The organization of a cluster's certificate in its provider.
pub const ORGANIZATION: &str = "liqo.io";

/// The identity of this cluster at a provider.
pub fn control_plane_identity(provider: &ClusterId) -> String {
    format!("controlplane-{provider}")
}
