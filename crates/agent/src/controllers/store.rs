//! Writing objects, so that a write on what somebody else has changed or removed does no harm.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cluster::{code, present};

/// The objects of one kind in one namespace.
pub(crate) struct Store<K>(pub(crate) Api<K>);

type Result<T> = std::result::Result<T, kube::Error>;

impl<K> Store<K>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
    K::DynamicType: Default,
{
    /// Makes it; if it is there already, it is taken as it is.
    pub(crate) async fn create(&self, object: &K) -> Result<K> {
        match self.0.create(&PostParams::default(), object).await {
            Err(error) if code(&error) == Some(409) => self.0.get(&object.name_any()).await,
            made => made,
        }
    }

    /// Writes it unless it was changed meanwhile; none if it is gone.
    pub(crate) async fn replace(&self, object: &K) -> Result<Option<K>> {
        let name = object.name_any();
        present(self.0.replace(&name, &PostParams::default(), object).await)
    }

    /// Writes its status unless it was changed meanwhile; none if it is gone.
    pub(crate) async fn replace_status(&self, object: &K) -> Result<Option<K>> {
        let name = object.name_any();
        present(self.0.replace_status(&name, &PostParams::default(), object).await)
    }

    /// Sets its finalizers unless it was changed meanwhile; none if it is gone.
    pub(crate) async fn set_finalizers(&self, object: &K, to: &[String]) -> Result<Option<K>> {
        let version = object.resource_version();
        let change = json!({ "metadata": { "finalizers": to, "resourceVersion": version } });
        let patch = Patch::Merge(&change);
        present(self.0.patch(&object.name_any(), &PatchParams::default(), &patch).await)
    }

    /// Removes this very object.
    pub(crate) async fn delete(&self, object: &K) -> Result<()> {
        let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
        let how = DeleteParams { preconditions, ..DeleteParams::default() };
        present(self.0.delete(&object.name_any(), &how).await).map(drop)
    }
}
