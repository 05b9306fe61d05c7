//! Kubeconfig files: where a cluster is, and who one is there.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
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
        let text = format!("{:#}\n", self.value()?);
        fs::write(path, text).map_err(during(|| format!("writing {}", path.display())))
    }

    fn value(&self) -> Result<Value, Error> {
        let name = self.cluster;
        let (user, ca) = match self.user {
            User::Certificate(pair) => {
                let user =
                    json!({ "client-certificate": pair.certificate, "client-key": pair.key });
                (user, json!({ "certificate-authority": self.ca }))
            }
            User::Token(token) => {
                // In the file itself: Liqo hands it on to other clusters, where no path would help.
                let ca = fs::read(self.ca).map_err(during(|| format!("{}", self.ca.display())))?;
                let ca = json!({ "certificate-authority-data": BASE64.encode(ca) });
                (json!({ "token": token }), ca)
            }
        };
        let mut cluster = ca;
        cluster["server"] = json!(self.url);
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": name, "cluster": cluster }],
            "users": [{ "name": name, "user": user }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
            "current-context": name,
        }))
    }
}
