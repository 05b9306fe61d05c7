//! Why there is no link, in words that a person can act on.

use std::fmt;

use sublet_core::id::ClusterId;

use crate::peering::{NEUTRAL, Why, is_shared, quoted};
use crate::relay::Objection;

/// What is in the way of a link.
pub use sublet_crds::Obstacle as Reason;

/// The reasons of Liqo's Events about a Tenant that are refusals, and what they mean.
pub const LIQO_WORDS: [(&str, Reason); 9] = [
    ("SignatureVerificationFailed", Reason::SignatureRefused),
    ("InvalidCSR", Reason::CsrRefused),
    ("AuthParamsFailed", Reason::LiqoSilent),
    ("NonceNotFound", Reason::LiqoSilent),
    ("TenantNamespaceCreationFailed", Reason::LiqoSilent),
    ("ClusterRolesBindingFailed", Reason::LiqoSilent),
    ("ClusterRolesClusterWideBindingFailed", Reason::LiqoSilent),
    ("CertificateRenewalCheckFailed", Reason::LiqoSilent),
    ("UpdateFailed", Reason::LiqoSilent),
];

/// What Liqo says in place of all else where a tenant's request for a certificate is another than before: it has no
/// reason of its own for that.
const CSR_DIFFERS: &str = "the stored and the provided CSR do not match";

/// What a Liqo Event about a Tenant means; none if it is no refusal.
pub fn of_event(reason: &str, message: &str) -> Option<Reason> {
    let (_, meaning) = LIQO_WORDS.iter().find(|(word, _)| *word == reason)?;
    Some(if message.contains(CSR_DIFFERS) { Reason::CsrChanged } else { *meaning })
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
            _ => Reason::PeerRefused,
        };
        Self::new(reason, format!("{by} says: {}", quoted(message)))
    }

    /// What a provider tells its requester of what happened: nothing of what is only its own business.
    pub(super) fn told(&self) -> String {
        if is_shared(self.reason) { self.message.clone() } else { NEUTRAL.to_owned() }
    }

    /// As a provider says it to its requester.
    pub(super) fn objection(&self) -> Objection {
        match self.reason {
            Reason::KeyNotPinned => Objection::KeyNotPinned,
            Reason::SignatureRefused => Objection::BadSignature,
            Reason::CsrRefused => Objection::InvalidCsr,
            Reason::CsrChanged => Objection::CsrChanged,
            Reason::LiqoSilent | Reason::NoLiqo => Objection::LiqoFailed,
            _ => Objection::Other,
        }
    }
}

impl From<Trouble> for Why {
    fn from(trouble: Trouble) -> Self {
        Self::hindered(trouble.reason, trouble.message)
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
    fn a_requester_hears_what_concerns_it() {
        let told = |reason: Reason| Trouble::new(reason, "Secret inner/key").told();
        assert_eq!(told(Reason::NoLiqo), NEUTRAL);
        assert_eq!(told(Reason::Forbidden), NEUTRAL);
        assert_eq!(told(Reason::CsrRefused), "Secret inner/key");
    }

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
