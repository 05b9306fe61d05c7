//! Reads what there is of a pair in this cluster. Some lists at once, and nothing is kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::{try_join3, try_join4};
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::ResourceExt;
use kube::api::{ListParams, ObjectList};
use serde_json::Value;
use sublet_core::time::Time;

use super::super::kinds::{Identity, ResourceSlice, Tenant};
use super::super::{names, networks};
use super::Error;
use super::ground::{Ground, is_ours, time_of};
use super::keys::Keys;
use super::pins::Pins;
use super::seen::{
    Access, Borrowed, Credential, Foreign, IdentitySeen, Issued, Lent, Place, Seen, SignedNonce,
    TenantSeen,
};
use super::trouble::{Reason, Trouble, of_event};

/// One look at a pair.
pub(super) struct Look<'a> {
    pub(super) ground: &'a Ground,
    pub(super) pins: &'a Pins,
    pub(super) keys: &'a Keys,
    pub(super) now: Time,
    pub(super) freshness: Freshness,
}

/// How new what is read must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// As the API server has it at hand, which may be a moment old. A list that must be newer can take it
    /// a tenth of a second, in which it asks its store.
    AtHand,
    /// As it is.
    Exact,
}

/// Everything in the namespace of the pair.
struct Content {
    secrets: ObjectList<Secret>,
    tenants: ObjectList<Tenant>,
    identities: ObjectList<Identity>,
    slices: ObjectList<ResourceSlice>,
}

impl Look<'_> {
    /// What there is.
    pub(super) async fn run(&self) -> Result<Seen, Error> {
        let ground = self.ground;
        let (namespace, foreign, pin) = try_join3(
            async { Ok(ground.namespaces.get_metadata_opt(&ground.namespace).await?) },
            async { Ok(ground.foreign.get_metadata_opt(ground.peer.as_str()).await?) },
            self.pins.of(&ground.peer),
        )
        .await?;
        let mut seen = Seen {
            foreign: foreign.map(|foreign| Foreign {
                is_marked: foreign.labels().contains_key(names::FOREIGN_MARK),
            }),
            pin,
            ..Seen::default()
        };
        let Some(namespace) = namespace else { return Ok(seen) };
        let at = |key: &str| namespace.annotations().get(key).and_then(|text| time_of(text));
        seen.namespace = Some(Place {
            uid: namespace.uid(),
            is_ours: is_ours(&namespace.metadata),
            is_deleting: namespace.metadata.deletion_timestamp.is_some(),
            unused_as_provider: at(names::UNUSED_AS_PROVIDER),
            unused_as_requester: at(names::UNUSED_AS_REQUESTER),
        });
        match self.content().await {
            Ok(content) => {
                seen.lent = self.lent(&content).await?;
                seen.borrowed = self.borrowed(&content);
                seen.borrowed.stranded = self.stranded(&seen).await?;
                seen.networks = self.networks(&seen).await?;
            }
            Err(Error::Kube(kube::Error::Api(no))) if no.code == 403 => seen.is_barred = true,
            Err(Error::Kube(kube::Error::Api(no))) if no.code == 404 => {
                let why = "the API server does not know Liqo's kinds";
                return Err(Error::Trouble(Trouble::new(Reason::NoLiqo, why)));
            }
            Err(error) => return Err(error),
        }
        Ok(seen)
    }

    async fn content(&self) -> Result<Content, Error> {
        let ground = self.ground;
        let all = match self.freshness {
            Freshness::AtHand => ListParams::default().match_any(),
            Freshness::Exact => ListParams::default(),
        };
        let (secrets, tenants, identities, slices) = try_join4(
            ground.secrets.list(&all),
            ground.tenants.list(&all),
            ground.identities.list(&all),
            ground.slices.list(&all),
        )
        .await?;
        Ok(Content { secrets, tenants, identities, slices })
    }

    async fn lent(&self, content: &Content) -> Result<Lent, Error> {
        let peer = self.ground.peer.as_str();
        let nonce = content.secret(names::NONCE_SECRET).map(|secret| Issued {
            is_ours: is_ours(&secret.metadata),
            nonce: text(secret, "nonce").and_then(|text| text.parse().ok()),
        });
        let certificate = content.secret(names::TENANT_CERTIFICATE);
        let tenant = content.tenants.iter().find(|tenant| tenant.spec.cluster_id == peer);
        let mut seen = tenant.map(tenant_seen);
        if let (Some(seen), Some(tenant)) = (&mut seen, tenant)
            && seen.access.is_none()
        {
            seen.trouble = self.objection(tenant).await?;
        }
        Ok(Lent {
            nonce,
            tenant: seen,
            certificate_for: certificate.map(|secret| bytes(secret, "csr").unwrap_or_default()),
            slices: content.slices(names::REPLICATED, names::ORIGIN_ID, peer),
        })
    }

    /// What Liqo said against a tenant since it was last written: it says so in Events alone.
    async fn objection(&self, tenant: &Tenant) -> Result<Option<Trouble>, Error> {
        let Some(uid) = tenant.uid() else { return Ok(None) };
        let selector = format!("involvedObject.uid={uid},type=Warning");
        let events = self.ground.events.list(&ListParams::default().fields(&selector)).await?;
        let since = tenant.annotations().get(names::OFFERED_AT).and_then(|text| time_of(text));
        let newer = |event: &&Event| said_at(event) >= since;
        let said = events.iter().filter(newer).max_by_key(|event| said_at(event));
        Ok(said.and_then(|event| {
            let message = event.message.as_deref().unwrap_or_default();
            let reason = of_event(event.reason.as_deref()?, message)?;
            Some(Trouble::new(reason, format!("Liqo says: {message}")))
        }))
    }

    fn borrowed(&self, content: &Content) -> Borrowed {
        let peer = self.ground.peer.as_str();
        let signed = content.secret(names::SIGNED_NONCE_SECRET).map(|secret| {
            let nonce = text(secret, "nonce");
            let has_signed = |signature: &Vec<u8>| {
                nonce.as_deref().is_some_and(|nonce| self.keys.has_signed(nonce, signature))
            };
            let fingerprint = self.keys.public().fingerprint();
            SignedNonce {
                is_ours: is_ours(&secret.metadata),
                signature: bytes(secret, "signedNonce").filter(has_signed),
                is_touched: secret.annotations().get(names::SIGN_FOR) == Some(&fingerprint),
                nonce: nonce.and_then(|text| text.parse().ok()),
            }
        });
        let identity = content.identities.iter().find(|identity| {
            identity.spec.type_ == names::CONTROL_PLANE && identity.spec.cluster_id == peer
        });
        let is_credential = |secret: &&Secret| {
            let label = |key: &str| secret.labels().get(key).map(String::as_str);
            label(names::IDENTITY_TYPE) == Some(names::CONTROL_PLANE)
                && label(names::REMOTE_CLUSTER_ID) == Some(peer)
        };
        let credential = content.secrets.iter().find(is_credential);
        Borrowed {
            signed,
            identity: identity.map(|identity| self.identity_seen(identity)),
            credential: credential.map(|secret| Credential {
                is_deleting: secret.metadata.deletion_timestamp.is_some(),
                is_held: secret.finalizers().iter().any(|name| name == names::REPLICATOR_FINALIZER),
            }),
            slices: content.slices(names::REPLICATION, names::REMOTE_ID, peer),
            stranded: 0,
        }
    }

    /// How much the replicator keeps although it has no way to the provider any more. It is looked for
    /// only where something may be taken down.
    async fn stranded(&self, seen: &Seen) -> Result<usize, Error> {
        let is_exact = self.freshness == Freshness::Exact;
        let is_cut = seen.borrowed.identity.is_none() && seen.borrowed.credential.is_none();
        if is_exact && is_cut { Ok(self.ground.stranded().await?.len()) } else { Ok(0) }
    }

    /// The networks in the namespace, where that may be about to go.
    async fn networks(&self, seen: &Seen) -> Result<usize, Error> {
        let is_exact = self.freshness == Freshness::Exact;
        let is_empty = seen.lent.tenant.is_none() && seen.borrowed.identity.is_none();
        let Ground { client, namespace, .. } = self.ground;
        if is_exact && is_empty { Ok(networks(client, namespace).await?) } else { Ok(0) }
    }

    fn identity_seen(&self, identity: &Identity) -> IdentitySeen {
        let spec = &identity.spec;
        let access =
            Access { auth_params: spec.auth_params.clone(), namespace: spec.namespace.clone() };
        IdentitySeen {
            is_ours: is_ours(&identity.metadata),
            is_deleting: identity.metadata.deletion_timestamp.is_some(),
            fits: access.fits(self.keys.public(), self.now),
            access,
        }
    }
}

impl Content {
    fn secret(&self, name: &str) -> Option<&Secret> {
        self.secrets.iter().find(|secret| secret.metadata.name.as_deref() == Some(name))
    }

    /// How many slices are marked so, and are about that cluster.
    fn slices(&self, mark: &str, whose: &str, cluster: &str) -> usize {
        // What is denied has nothing here, and keeps nobody a tenant.
        let is = |slice: &&ResourceSlice| {
            let label = |key: &str| slice.labels().get(key).map(String::as_str);
            let counts = mark != names::REPLICATED || !slice.is_worthless();
            label(mark) == Some("true") && label(whose) == Some(cluster) && counts
        };
        self.slices.iter().filter(is).count()
    }
}

fn tenant_seen(tenant: &Tenant) -> TenantSeen {
    let decode = |text: &str| BASE64.decode(text).unwrap_or_default();
    let spec = &tenant.spec;
    let key = String::from_utf8(decode(&spec.public_key)).ok().and_then(|pem| pem.parse().ok());
    let status = tenant.status.clone().unwrap_or_default();
    let access = Access { auth_params: status.auth_params, namespace: status.tenant_namespace };
    // What was granted to a key that was offered before is not granted to this one.
    let granted = access
        .certified()
        .is_some_and(|(certified, _)| key.as_ref().is_none_or(|key| *key == certified));
    TenantSeen {
        is_ours: is_ours(&tenant.metadata),
        is_deleting: tenant.metadata.deletion_timestamp.is_some(),
        csr: decode(&spec.csr),
        signature: decode(&spec.signature),
        link: tenant.annotations().get(names::LINK).and_then(|link| link.parse().ok()),
        access: granted.then_some(access),
        trouble: None,
        key,
    }
}

fn bytes(secret: &Secret, key: &str) -> Option<Vec<u8>> {
    Some(secret.data.as_ref()?.get(key)?.0.clone())
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(bytes(secret, key)?).ok()
}

/// When it was last said, in whole seconds as Liqo's Events have it.
fn said_at(event: &Event) -> Option<Time> {
    let value = serde_json::to_value(event.last_timestamp.as_ref()?).ok()?;
    let Value::String(text) = value else { return None };
    time_of(&text)
}
