//! Why two clusters are not joined, or do not come apart: one word each that programs can read, with
//! what to do about it. `docs/peering.md` has the same list, and a test compares the two.

use std::fmt;

macro_rules! obstacles {
    ($($(#[$doc:meta])* $name:ident: $remedy:literal,)*) => {
        /// What is in the way between two clusters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Obstacle {
            $($(#[$doc])* $name,)*
        }

        impl Obstacle {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// As metrics, Events and conditions have it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The one of this word, if this version knows it.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }

            /// What to do, as the end of a sentence.
            pub fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)*
                }
            }
        }
    };
}

obstacles! {
    /// The other cluster has another Liqo key than the one that is pinned for it.
    KeyNotPinned: "if its Liqo was given a new key on purpose, compare the fingerprint with its \
        operator and change the pin in the ConfigMap sublet-liqo-keys",
    /// Liqo found that the nonce was not signed with the offered key.
    SignatureRefused: "restart liqo-controller-manager in the requester, so that it signs with its \
        present key",
    /// Liqo, or the provider's agent, does not take the request for a certificate.
    CsrRefused: "the id of the requester's agent must be the id of its Liqo cluster, and its Liqo key \
        must be Ed25519",
    /// Liqo keeps another request for a certificate from before.
    CsrChanged: "delete the Secret liqo-remote-certificate in the tenant namespace of the provider",
    /// Liqo does not do its part.
    LiqoSilent: "look at the pods in the namespace liqo, and at the Events there",
    /// There is no Liqo in this cluster.
    NoLiqo: "install Liqo, or run the agent with another --peering",
    /// The Liqo key of this cluster cannot be used.
    KeyUnusable: "the Secret liqo/authentication-keys must hold an Ed25519 or RSA key as PKCS #8",
    /// Somebody else's objects are in the way.
    NotOurs: "finish that peering with liqoctl, or undo it with liqoctl unauthenticate",
    /// This agent may not do what it has to.
    Forbidden: "apply deploy/agent/rbac.yaml and deploy/agent/rbac-liqo.yaml of this version",
    /// The broker carries no messages.
    BrokerTooOld: "upgrade the broker, or run the agents with --peering=none",
    /// The other cluster said no, for a reason that is not known here.
    PeerRefused: "see the other cluster's agent",
    /// The API server of this cluster does not answer, or not as it should.
    ApiServerSilent: "look at the API server of this cluster; it is tried again",
    /// Who is to be asked before an object is written does not answer.
    WebhookSilent: "see whether the pods of that webhook run: of Liqo's, the Deployment liqo-webhook in the \
        namespace liqo; it is tried again",
    /// A webhook or a policy of this cluster does not let the agent write, or remove, an object.
    AdmissionRefused: "see what that webhook or policy says, and let the agent's account pass if it is your own",
    /// The API server does not know who the agent is.
    NotAuthenticated: "give the agent a token, or a kubeconfig, that this cluster accepts",
    /// The API server does not take an object as the agent writes it.
    ObjectRefused: "see whether Liqo's version is the one that docs/peering.md names, and apply deploy/crds of \
        this version",
    /// No slice can be made of what is reserved.
    Unsuitable: "reserve some cpu and some memory",
    /// The provider cannot enforce what it would lend.
    NotLending: "the condition Lending of the provider's Advertisement says what is missing",
    /// The provider's operator lets the requester do no more, or nothing at all.
    TenantNotActive: "if it is to go on, set tenantCondition of that Tenant, in the provider, to Active again",
    /// The provider's Liqo does not believe who the slice is from.
    IdentityDenied: "look at the Events in the provider's tenant namespace; after a new Liqo key it passes \
        by itself when the provider has accepted that key",
    /// The provider's agent denied the slice.
    SliceDenied: "see the condition Resources of the ResourceSlice, and the provider's agent",
    /// The requester's slice asks to be somebody else at the provider.
    BadCertificateRequest: "take it for an attempt to break in: unlink that cluster and talk to its \
        operator",
    /// The slice is not of the class that reservations have.
    ForeignClass: "delete the requester's ResourceSlice: its agent makes it again",
    /// What was granted, or the node of it, has other amounts than are reserved.
    AmountsDiffer: "if it stays so, compare the ResourceSlice, the Quota and the node",
    /// The provider wants labels on the node that it has no right to.
    LabelsDiffer: "talk to the operator of the provider",
    /// There is another node of the name that the reservation's is to have.
    NodeNameTaken: "remove or rename that node",
    /// The virtual node is there for long and is not ready.
    NodeNotReady: "look at the virtual kubelet in the tenant namespace, and whether this cluster \
        reaches the provider's API server",
    /// Somebody else keeps changing the slice.
    SliceContested: "find out who writes to the ResourceSlice besides the agent",
    /// There is no kubeconfig of one of the clusters, or not one that can be used.
    KubeconfigUnusable: "put a kubeconfig of that cluster into --kubeconfigs-dir, as <cluster>.kubeconfig; \
        --peering=liqo in both clusters needs none",
    /// Liqo's command line is not there, or cannot be started.
    LiqoctlMissing: "install Liqo's command line beside the agent, or say with --liqoctl-path where it is",
    /// Liqo's command line did not do its work.
    LiqoctlFailed: "it is tried again; if it stays so, run liqoctl by hand with the same kubeconfigs",
    /// Something that is being deleted does not go.
    StillDeleting: "see which finalizers are on it, and look at whoever set them: mostly Liqo, which does \
        not reach the other cluster",
    /// The other cluster's agent does not do its part.
    PeerSilent: "see whether the other cluster's agent runs and reaches the broker, and what it says",
    /// Pods that were removed by force are kept by their finalizers.
    PodsHeld: "whoever set the finalizers must remove them",
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_obstacle_is_in_the_table_for_people_and_none_else() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/peering.md");
        let page = std::fs::read_to_string(path).unwrap();
        let table = page.lines().skip_while(|line| !line.starts_with("| reason |"));
        let rows = table.skip(2).take_while(|line| line.starts_with('|'));
        let words = rows.flat_map(|row| {
            let cell = row.split('|').nth(1).unwrap_or_default();
            cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        });
        let known = Obstacle::ALL.iter().map(|one| one.word().to_owned());
        assert_eq!(words.collect::<BTreeSet<_>>(), known.collect::<BTreeSet<_>>());
    }

    #[test]
    fn a_remedy_ends_a_sentence_that_somebody_else_began() {
        for one in Obstacle::ALL {
            let remedy = one.remedy();
            assert!(
                !remedy.is_empty() && !remedy.ends_with('.') && !remedy.contains("  "),
                "{one}"
            );
        }
    }
}
