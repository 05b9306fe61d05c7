//! Kubeconfig files: where a cluster is, and who one is there.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::{Error, during};
use crate::pki::Pair;

/// Who one is.
pub(crate) enum User<'a> {
    /// By certificate.
    Certificate(&'a Pair),
    /// By token.
    Token(&'a str),
}

/// A kubeconfig: the cluster's name, its address, its CA and a user.
pub(crate) struct Kubeconfig<'a> {
    pub(crate) cluster: &'a str,
    pub(crate) url: &'a str,
    pub(crate) ca: &'a Path,
    pub(crate) user: User<'a>,
}

impl Kubeconfig<'_> {
    /// Writes it; JSON is YAML.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let text = format!("{:#}\n", self.value());
        fs::write(path, text).map_err(during(|| format!("writing {}", path.display())))
    }

    fn value(&self) -> Value {
        let name = self.cluster;
        let user = match self.user {
            User::Certificate(pair) => {
                json!({ "client-certificate": pair.certificate, "client-key": pair.key })
            }
            User::Token(token) => json!({ "token": token }),
        };
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": name,
                "cluster": { "server": self.url, "certificate-authority": self.ca },
            }],
            "users": [{ "name": name, "user": user }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
            "current-context": name,
        })
    }
}
