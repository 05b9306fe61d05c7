//! Why there is no link, in words that a person can act on.

use std::fmt;

use sublet_core::id::ClusterId;

use crate::relay::Objection;

/// Why there is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The other cluster has another Liqo key than the one that is pinned for it.
    KeyNotPinned,
    /// Liqo found that the nonce was not signed with the offered key.
    SignatureRefused,
    /// Liqo does not take the request for a certificate.
    CsrRefused,
    /// Liqo keeps another request for a certificate from before.
    CsrChanged,
    /// Liqo does not do its part.
    LiqoSilent,
    /// There is no Liqo in this cluster.
    NoLiqo,
    /// The Liqo key of this cluster cannot be used.
    KeyUnusable,
    /// Somebody else's objects are in the way.
    NotOurs,
    /// This agent may not do what it has to.
    Forbidden,
    /// The broker carries no messages.
    BrokerTooOld,
    /// The other cluster said no.
    Refused,
}

impl Reason {
    /// As metrics, Events and conditions have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::KeyNotPinned => "KeyNotPinned",
            Self::SignatureRefused => "SignatureRefused",
            Self::CsrRefused => "CsrRefused",
            Self::CsrChanged => "CsrChanged",
            Self::LiqoSilent => "LiqoSilent",
            Self::NoLiqo => "NoLiqo",
            Self::KeyUnusable => "KeyUnusable",
            Self::NotOurs => "NotOurs",
            Self::Forbidden => "Forbidden",
            Self::BrokerTooOld => "BrokerTooOld",
            Self::Refused => "Refused",
        }
    }

    /// What the reason of a Liqo Event about a Tenant means; none if it is no refusal.
    pub(super) fn of_event(reason: &str) -> Option<Self> {
        match reason {
            "SignatureVerificationFailed" => Some(Self::SignatureRefused),
            "InvalidCSR" => Some(Self::CsrRefused),
            "AuthParamsFailed" => Some(Self::CsrChanged),
            "NonceNotFound"
            | "TenantNamespaceCreationFailed"
            | "ClusterRolesBindingFailed"
            | "ClusterRolesClusterWideBindingFailed"
            | "CertificateRenewalCheckFailed"
            | "UpdateFailed" => Some(Self::LiqoSilent),
            _ => None,
        }
    }

    /// As a provider says it to its requester.
    pub(super) fn objection(self) -> Objection {
        match self {
            Self::KeyNotPinned => Objection::KeyNotPinned,
            Self::SignatureRefused => Objection::BadSignature,
            Self::CsrRefused => Objection::InvalidCsr,
            Self::CsrChanged => Objection::CsrChanged,
            Self::LiqoSilent | Self::NoLiqo => Objection::LiqoFailed,
            _ => Objection::Other,
        }
    }

    /// What to do, as a sentence.
    fn remedy(self) -> &'static str {
        match self {
            Self::KeyNotPinned => {
                "if its Liqo was given a new key on purpose, compare the fingerprint with its operator \
                 and change the pin in the ConfigMap sublet-liqo-keys"
            }
            Self::SignatureRefused => {
                "restart liqo-controller-manager in the requester, so that it signs with its present key"
            }
            Self::CsrRefused => {
                "the id of the requester's agent must be the id of its Liqo cluster"
            }
            Self::CsrChanged => {
                "delete the Secret liqo-remote-certificate in the tenant namespace of the provider"
            }
            Self::LiqoSilent => "look at the pods in the namespace liqo, and at the Events there",
            Self::NoLiqo => "install Liqo, or run the agent with another --peering",
            Self::KeyUnusable => {
                "the Secret liqo/authentication-keys must hold an Ed25519 or RSA key as PKCS #8"
            }
            Self::NotOurs => {
                "finish that peering with liqoctl, or undo it with liqoctl unauthenticate"
            }
            Self::Forbidden => {
                "apply deploy/agent/rbac.yaml and deploy/agent/rbac-liqo.yaml of this version"
            }
            Self::BrokerTooOld => "upgrade the broker, or run the agents with --peering=none",
            Self::Refused => "see the other cluster's agent",
        }
    }
}

/// Why there is no link, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Why.
    pub reason: Reason,
    /// What happened.
    pub message: String,
}

impl Trouble {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// What a provider said to us.
    pub(super) fn refused(by: &ClusterId, why: Objection, message: &str) -> Self {
        let reason = match why {
            Objection::BadSignature => Reason::SignatureRefused,
            Objection::KeyNotPinned => Reason::KeyNotPinned,
            Objection::InvalidCsr => Reason::CsrRefused,
            Objection::CsrChanged => Reason::CsrChanged,
            Objection::LiqoFailed => Reason::LiqoSilent,
            _ => Reason::Refused,
        };
        // It is another cluster's text.
        let message: String = message.chars().filter(|c| !c.is_control()).take(300).collect();
        Self::new(reason, format!("{by} says: {message}"))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.reason.word(), self.message, self.reason.remedy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_may_not_do_names_the_roles_that_let_it() {
        let said = Trouble::new(Reason::Forbidden, "no").to_string();
        for role in ["deploy/agent/rbac.yaml", "deploy/agent/rbac-liqo.yaml"] {
            assert!(said.contains(role), "{said}");
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(role);
            assert!(path.is_file(), "{path:?}");
        }
    }
}
