//! Writing objects, so that a write on what somebody else has changed or removed does no harm; and so
//! that what a foreign schema loses of it is noticed.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cluster::{code, present};
use crate::kinds::{WriteError, kept};

/// The objects of one kind in one namespace.
pub(crate) struct Store<K>(pub(crate) Api<K>);

type Result<T> = std::result::Result<T, WriteError>;

impl<K> Store<K>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
    K::DynamicType: Default,
{
    /// Makes it; if it is there already, it is taken as it is.
    pub(crate) async fn create(&self, object: &K) -> Result<K> {
        match self.0.create(&PostParams::default(), object).await {
            Err(error) if code(&error) == Some(409) => Ok(self.0.get(&object.name_any()).await?),
            made => {
                let made = made?;
                kept("spec", object, &made)?;
                Ok(made)
            }
        }
    }

    /// Writes it unless it was changed meanwhile; none if it is gone.
    pub(crate) async fn replace(&self, object: &K) -> Result<Option<K>> {
        let name = object.name_any();
        let back = present(self.0.replace(&name, &PostParams::default(), object).await)?;
        back.as_ref().map_or(Ok(()), |back| kept("spec", object, back))?;
        Ok(back)
    }

    /// Writes its status unless it was changed meanwhile; none if it is gone.
    pub(crate) async fn replace_status(&self, object: &K) -> Result<Option<K>> {
        let name = object.name_any();
        let back = present(self.0.replace_status(&name, &PostParams::default(), object).await)?;
        back.as_ref().map_or(Ok(()), |back| kept("status", object, back))?;
        Ok(back)
    }

    /// Sets its finalizers unless it was changed meanwhile; none if it is gone.
    pub(crate) async fn set_finalizers(&self, object: &K, to: &[String]) -> Result<Option<K>> {
        let version = object.resource_version();
        let change = json!({ "metadata": { "finalizers": to, "resourceVersion": version } });
        let patch = Patch::Merge(&change);
        Ok(present(self.0.patch(&object.name_any(), &PatchParams::default(), &patch).await)?)
    }

    /// Removes this very object.
    pub(crate) async fn delete(&self, object: &K) -> Result<()> {
        let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
        let how = DeleteParams { preconditions, ..DeleteParams::default() };
        Ok(present(self.0.delete(&object.name_any(), &how).await).map(drop)?)
    }
}
