//! What there is of a pair in this cluster: nothing but facts, read by `observe`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sublet_core::instruction::Side;
use sublet_core::time::Time;
use x509_parser::pem::parse_x509_pem;

use super::keys;
use super::trouble::Trouble;
use crate::relay::{LinkId, Nonce, PublicKey};

/// Everything that is there.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) namespace: Option<Place>,
    /// The agent may not look into the namespace.
    pub(super) is_barred: bool,
    /// The networks in it, which an operator made with Liqo and which would go with it.
    pub(super) networks: usize,
    /// Liqo's word for the other cluster, and whether it goes with the link.
    pub(super) foreign: Option<Foreign>,
    pub(super) lent: Lent,
    pub(super) borrowed: Borrowed,
    /// What is pinned for the other cluster.
    pub(super) pin: Option<PublicKey>,
}

/// The namespace of the pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// Which one of that name it is.
    pub(super) uid: Option<String>,
    pub(super) is_ours: bool,
    pub(super) is_deleting: bool,
    pub(super) unused_as_provider: Option<Time>,
    pub(super) unused_as_requester: Option<Time>,
}

impl Place {
    /// Since when nobody has needed the link of which this cluster is that side.
    pub(super) fn unused(&self, side: Side) -> Option<Time> {
        match side {
            Side::Provider => self.unused_as_provider,
            Side::Requester => self.unused_as_requester,
        }
    }
}

/// Liqo's word for the other cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) is_marked: bool,
}

/// What there is as the provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Lent {
    pub(super) nonce: Option<Issued>,
    pub(super) tenant: Option<TenantSeen>,
    /// The request for which Liqo keeps a certificate.
    pub(super) certificate_for: Option<Vec<u8>>,
    pub(super) slices: usize,
}

/// The Secret with the nonce.
#[derive(Clone, Debug)]
pub(super) struct Issued {
    pub(super) is_ours: bool,
    pub(super) nonce: Option<Nonce>,
}

/// The requester, as Liqo knows it.
#[derive(Clone, Debug)]
pub(super) struct TenantSeen {
    pub(super) is_ours: bool,
    pub(super) is_deleting: bool,
    pub(super) key: Option<PublicKey>,
    pub(super) csr: Vec<u8>,
    pub(super) signature: Vec<u8>,
    /// For which link it was written.
    pub(super) link: Option<LinkId>,
    /// What Liqo granted for this very key.
    pub(super) access: Option<Access>,
    /// What Liqo said against it.
    pub(super) trouble: Option<Trouble>,
}

/// What there is as the requester.
#[derive(Clone, Debug, Default)]
pub(super) struct Borrowed {
    pub(super) signed: Option<SignedNonce>,
    pub(super) identity: Option<IdentitySeen>,
    /// The Secret with the kubeconfig that Liqo has made of the identity.
    pub(super) credential: Option<Credential>,
    pub(super) slices: usize,
    /// What the replicator still keeps, of a link that has no identity any more.
    pub(super) stranded: usize,
}

/// The Secret with the signed nonce.
#[derive(Clone, Debug)]
pub(super) struct SignedNonce {
    pub(super) is_ours: bool,
    pub(super) nonce: Option<Nonce>,
    /// Only one that our present key has made.
    pub(super) signature: Option<Vec<u8>>,
    /// Was Liqo made to look at it again because of our present key?
    pub(super) is_touched: bool,
}

/// This cluster, as the provider is to know it.
#[derive(Clone, Debug)]
pub(super) struct IdentitySeen {
    pub(super) is_ours: bool,
    pub(super) is_deleting: bool,
    pub(super) access: Access,
    /// The certificate is for our present key, and has not expired.
    pub(super) fits: bool,
}

/// The kubeconfig of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) is_deleting: bool,
    /// Is it there because Liqo's replicator wants it to be?
    pub(super) is_held: bool,
}

/// How a requester gets into its provider's cluster. Liqo's parameters are passed on as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Access {
    pub(super) auth_params: Value,
    pub(super) namespace: String,
}

impl Access {
    /// Whose key the certificate certifies, and until when; none if there is no certificate.
    pub(super) fn certified(&self) -> Option<(PublicKey, Time)> {
        let text = self.auth_params.get("signedCRT")?.as_str()?;
        let pem = BASE64.decode(text).ok()?;
        let (_, pem) = parse_x509_pem(&pem).ok()?;
        let certificate = pem.parse_x509().ok()?;
        let end = certificate.validity().not_after.timestamp();
        let end = u64::try_from(end).unwrap_or_default().saturating_mul(1000);
        Some((keys::public_key(certificate.public_key().raw)?, Time::from_millis(end)))
    }

    /// Does it let the owner of this key in, now?
    pub(super) fn fits(&self, key: &PublicKey, now: Time) -> bool {
        self.certified().is_some_and(|(certified, end)| certified == *key && end > now)
    }
}
