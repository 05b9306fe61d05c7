//! What a thread needs of a cluster that it may not keep: its API, its folder, and a place for
//! processes that end with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use crate::api::Api;
use crate::error::Error;
use crate::guardian::Guardian;
use crate::kubeconfig::{Kubeconfig, User};
use crate::process::{Process, Recipe};

/// Longer than any test.
const TOKEN_SECONDS: u32 = 24 * 60 * 60;

/// A cluster, seen from a thread beside it.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) api: Api,
    pub(crate) port: u16,
    pub(crate) ca: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) guardian: Arc<Guardian>,
}

impl Host {
    /// A process that belongs to the cluster and does not run yet.
    pub(crate) fn process(&self, name: &str, recipe: Recipe) -> Process {
        Process::new(name, recipe, &self.folder, self.guardian.clone())
    }

    /// A kubeconfig for a service account, which must exist.
    pub(crate) fn account(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let ask = json!({ "spec": { "expirationSeconds": TOKEN_SECONDS } });
        let answer = self.api.create(&path, &ask)?;
        let token = answer["status"]["token"].as_str().unwrap_or_default();
        let path = self.folder.join(format!("{namespace}-{name}.kubeconfig"));
        self.write_kubeconfig(&path, User::Token(token))?;
        Ok(path)
    }

    /// Where its API is.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(crate) fn write_kubeconfig(&self, path: &Path, user: User<'_>) -> Result<(), Error> {
        let (cluster, url, ca) = (&*self.name, &*self.url(), &*self.ca);
        Kubeconfig { cluster, url, ca, user }.write(path)
    }
}
