//! Takes one step in this cluster. Each can be repeated, and can be the last thing that was done.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sublet_core::instruction::Side;
use sublet_core::time::Time;

use super::super::{csr, names};
use super::Error;
use super::ground::{Ground, apply, merge, our_labels, remove, text_of};
use super::keys::Keys;
use super::seen::Access;
use crate::relay::{LinkId, Nonce, TenantOffer};

const AUTHENTICATION: &str = "authentication.liqo.io/v1beta1";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

impl Ground {
    /// The namespace of the pair, as Liqo makes it. One that is there is taken as it is.
    pub(super) async fn make_namespace(&self) -> Result<(), Error> {
        let mut labels = our_labels(&self.peer);
        labels.insert(names::TENANT_NAMESPACE.to_owned(), "true".to_owned());
        for level in ["audit", "enforce", "warn"] {
            let level = format!("pod-security.kubernetes.io/{level}");
            labels.insert(level, "privileged".to_owned());
        }
        let namespace = Namespace {
            metadata: kube::api::ObjectMeta {
                name: Some(self.namespace.clone()),
                labels: Some(labels),
                ..Default::default()
            },
            ..Namespace::default()
        };
        match self.namespaces.create(&PostParams::default(), &namespace).await {
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
            made => made.map(drop)?,
        }
        // Not to lose time; if it is needed and did not work, it is tried again.
        if let Err(error) = self.bind().await {
            tracing::debug!(%error, peer = %self.peer, "the agent is not bound to its role yet");
        }
        Ok(())
    }

    /// Binds this agent, whoever it is, to the role that it needs in the namespace.
    pub(super) async fn bind(&self) -> Result<(), Error> {
        let reviews: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
        let user = review.status.and_then(|status| status.user_info?.username).unwrap_or_default();
        let subject = match user.strip_prefix(SERVICE_ACCOUNT).and_then(|at| at.split_once(':')) {
            Some((namespace, name)) => {
                json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name })
            }
            None => {
                json!({ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user })
            }
        };
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": { "name": names::TENANT_ROLE, "labels": our_labels(&self.peer) },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": names::TENANT_ROLE,
            },
            "subjects": [subject],
        });
        apply(&self.bindings, names::TENANT_ROLE, &binding).await
    }

    /// Writes down since when this direction is not needed, or that it is.
    pub(super) async fn mark(&self, side: Side, unused: Option<Time>) -> Result<(), Error> {
        let key = match side {
            Side::Provider => names::UNUSED_AS_PROVIDER,
            Side::Requester => names::UNUSED_AS_REQUESTER,
        };
        let since = unused.map(text_of);
        let change = json!({ "metadata": { "annotations": { key: since } } });
        merge(&self.namespaces, &self.namespace, &change).await
    }

    /// Has Liqo make a nonce.
    pub(super) async fn make_nonce(&self) -> Result<(), Error> {
        let secret = self.secret(names::NONCE_SECRET, names::NONCE, &json!({}));
        apply(&self.secrets, names::NONCE_SECRET, &secret).await
    }

    /// Has Liqo sign a nonce.
    pub(super) async fn write_signed(&self, nonce: &Nonce) -> Result<(), Error> {
        let data = json!({ "nonce": BASE64.encode(nonce.as_str()) });
        let secret = self.secret(names::SIGNED_NONCE_SECRET, names::SIGNED_NONCE, &data);
        apply(&self.secrets, names::SIGNED_NONCE_SECRET, &secret).await
    }

    /// Has Liqo look at the nonce again, because the key is another one.
    pub(super) async fn resign(&self, keys: &Keys) -> Result<(), Error> {
        let annotations = json!({ names::SIGN_FOR: keys.public().fingerprint() });
        let change = json!({ "metadata": { "annotations": annotations } });
        merge(&self.secrets, names::SIGNED_NONCE_SECRET, &change).await
    }

    fn secret(&self, name: &str, mark: &str, data: &Value) -> Value {
        let mut labels = our_labels(&self.peer);
        labels.insert(mark.to_owned(), "true".to_owned());
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "labels": labels },
            "data": data,
        })
    }

    /// Writes the tenant as it was offered.
    pub(super) async fn write_tenant(
        &self,
        link: &LinkId,
        offer: &TenantOffer,
        now: Time,
    ) -> Result<(), Error> {
        let tenant = json!({
            "apiVersion": AUTHENTICATION,
            "kind": "Tenant",
            "metadata": {
                "name": self.peer.as_str(),
                "labels": our_labels(&self.peer),
                "annotations": { names::LINK: link.as_str(), names::OFFERED_AT: text_of(now) },
            },
            "spec": {
                "clusterID": self.peer.as_str(),
                "publicKey": BASE64.encode(offer.public_key.to_pem()),
                "csr": BASE64.encode(&offer.csr),
                "signature": BASE64.encode(&offer.signature),
            },
        });
        apply(&self.tenants, self.peer.as_str(), &tenant).await
    }

    /// Writes the identity. What Liqo has renewed before would win over it, so that is put right
    /// first: after a change of keys it is of no use.
    pub(super) async fn write_identity(&self, link: &LinkId, access: &Access) -> Result<(), Error> {
        let name = names::control_plane_identity(&self.peer);
        let renewed = self.renews.get_opt(&name).await?.and_then(|renew| renew.status);
        if renewed.is_some_and(|renewed| {
            !renewed.auth_params.is_null() && renewed.auth_params != access.auth_params
        }) {
            let change = json!({ "status": { "authParams": access.auth_params } });
            let how = kube::api::PatchParams::default();
            let patch = kube::api::Patch::Merge(&change);
            self.renews.patch_status(&name, &how, &patch).await?;
        }
        let identity = json!({
            "apiVersion": AUTHENTICATION,
            "kind": "Identity",
            "metadata": {
                "name": name,
                "labels": our_labels(&self.peer),
                "annotations": { names::LINK: link.as_str() },
            },
            "spec": {
                "clusterID": self.peer.as_str(),
                "type": names::CONTROL_PLANE,
                "authParams": access.auth_params,
                "namespace": access.namespace,
            },
        });
        apply(&self.identities, &name, &identity).await
    }

    /// Lets a kubeconfig go that was deleted under living slices. The replicator has what it needs in
    /// memory, and takes the next one when it comes.
    pub(super) async fn free_credential(&self) -> Result<(), Error> {
        let name = format!("kubeconfig-{}", names::control_plane_identity(&self.peer));
        let Some(secret) = self.secrets.get_opt(&name).await? else { return Ok(()) };
        if secret.metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        let kept = secret.finalizers().iter().filter(|name| *name != names::REPLICATOR_FINALIZER);
        let kept: Vec<_> = kept.collect();
        let version = secret.resource_version();
        let change = json!({ "metadata": { "finalizers": kept, "resourceVersion": version } });
        merge(&self.secrets, &name, &change).await
    }

    /// Removes the identity.
    pub(super) async fn delete_identity(&self) -> Result<(), Error> {
        remove(&self.identities, &names::control_plane_identity(&self.peer)).await
    }

    /// Removes what Liqo leaves behind of a tenant, and the nonce last: while it is there, it is known
    /// that something is left.
    pub(super) async fn delete_nonce(&self) -> Result<(), Error> {
        let marked = ListParams::default().labels(names::CSR_LABEL);
        for request in &self.csrs.list(&marked).await? {
            // Those of slices name another user, and the cluster as their organization.
            let owner = csr::owner(&request.spec.request.0);
            if owner.is_some_and(|(name, group)| {
                name == self.peer.as_str() && group == names::ORGANIZATION
            }) {
                remove(&self.csrs, &request.name_any()).await?;
            }
        }
        remove(&self.secrets, names::TENANT_CERTIFICATE).await?;
        remove(&self.secrets, names::NONCE_SECRET).await
    }

    /// Says that Liqo's word for the other cluster goes with the link.
    pub(super) async fn mark_foreign(&self) -> Result<(), Error> {
        let change = json!({ "metadata": { "labels": { names::FOREIGN_MARK: "true" } } });
        merge(&self.foreign, self.peer.as_str(), &change).await
    }
}
