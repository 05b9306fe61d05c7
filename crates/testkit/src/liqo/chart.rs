//! Liqo's chart, as it comes with its source: kinds, roles, settings and the two lists of webhooks.
//!
//! Helm is not wanted for the little of it that a cluster without pods needs. Nothing of it is in
//! our tree; what is not as expected here, in another version of Liqo, is an error that names it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::NAMESPACE;
use crate::error::{Error, during};

/// The kinds without which Liqo's controllers do not start, or do nothing; the other ten, of its
/// network, would double the time that all take.
const KINDS: [&str; 18] = [
    "authentication.liqo.io_identities",
    "authentication.liqo.io_renews",
    "authentication.liqo.io_resourceslices",
    "authentication.liqo.io_tenants",
    "core.liqo.io_foreignclusters",
    "ipam.liqo.io_ips",
    "ipam.liqo.io_networks",
    "networking.liqo.io_configurations",
    "networking.liqo.io_connections",
    "networking.liqo.io_gatewayclients",
    "networking.liqo.io_gatewayservers",
    "offloading.liqo.io_namespacemaps",
    "offloading.liqo.io_namespaceoffloadings",
    "offloading.liqo.io_quotas",
    "offloading.liqo.io_shadowendpointslices",
    "offloading.liqo.io_shadowpods",
    "offloading.liqo.io_virtualnodes",
    "offloading.liqo.io_vkoptionstemplates",
];

/// The two lists of webhooks, with placeholders.
const WEBHOOKS: [&str; 2] = ["liqo-mutating-webhook.yaml", "liqo-validating-webhook.yaml"];

/// A chart that was read.
#[derive(Debug)]
pub(super) struct Chart {
    folder: PathBuf,
    kinds: Vec<Value>,
    values: Value,
}

impl Chart {
    /// Reads it from its folder.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let definitions = folder.join("charts").join("liqo-crds").join("crds");
        let kinds = KINDS.map(|kind| parse(&definitions.join(format!("{kind}.yaml"))));
        let kinds = kinds.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { folder: folder.to_owned(), kinds, values: parse(&folder.join("values.yaml"))? })
    }

    /// The definitions of its kinds.
    pub(super) fn kinds(&self) -> &[Value] {
        &self.kinds
    }

    /// A setting by its path, as `/offloading/createNode`.
    pub(super) fn value(&self, path: &str) -> Result<&Value, Error> {
        let found = self.values.pointer(path);
        found.ok_or_else(|| Error::Chart(format!("values.yaml has no {path}")))
    }

    /// What a role allows: `liqo-webhook-ClusterRole`.
    pub(super) fn rules(&self, role: &str) -> Result<Value, Error> {
        let file = parse(&self.folder.join("files").join(format!("{role}.yaml")))?;
        let rules = file.get("rules").cloned();
        rules.ok_or_else(|| Error::Chart(format!("{role}.yaml has no rules")))
    }

    /// The lists of webhooks, as a cluster inside would have them.
    pub(super) fn webhooks(&self) -> Result<Vec<Value>, Error> {
        let folder = self.folder.join("templates").join("webhooks");
        let rendered = WEBHOOKS.map(|name| {
            let path = folder.join(name);
            understand(&path, &self.render(&read(&path)?)?)
        });
        rendered.into_iter().collect()
    }

    /// A template with its placeholders filled in. Lines that only set a variable, or put Helm's
    /// labels in, are left out.
    fn render(&self, template: &str) -> Result<String, Error> {
        let lines = template.lines().filter(|line| !line.trim_start().starts_with("{{-"));
        let mut text = String::new();
        for mut rest in lines {
            while let Some((before, after)) = rest.split_once("{{") {
                let (placeholder, after) = after
                    .split_once("}}")
                    .ok_or_else(|| Error::Chart(format!("half a placeholder: {rest}")))?;
                text += before;
                text += &self.fill(placeholder.trim())?;
                rest = after;
            }
            text += rest;
            text.push('\n');
        }
        Ok(text)
    }

    fn fill(&self, placeholder: &str) -> Result<String, Error> {
        if let Some(path) = placeholder.strip_prefix(".Values.") {
            let value = self.value(&format!("/{}", path.replace('.', "/")))?;
            return Ok(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        match placeholder {
            ".Release.Namespace" => Ok(NAMESPACE.to_owned()),
            "include \"liqo.prefixedName\" $webhookConfig" => Ok("liqo-webhook".to_owned()),
            other => Err(Error::Chart(format!("nobody knows what {{{{ {other} }}}} is"))),
        }
    }
}

fn parse(path: &Path) -> Result<Value, Error> {
    understand(path, &read(path)?)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(during(|| format!("reading {}", path.display())))
}

fn understand(path: &Path, text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text)
        .map_err(|error| Error::Chart(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chart() -> Chart {
        let values = json!({ "webhook": { "port": 9443, "failurePolicy": "Fail" } });
        Chart { folder: PathBuf::new(), kinds: Vec::new(), values }
    }

    #[test]
    fn placeholders_are_filled_in_and_what_only_helm_knows_is_left_out() {
        let template = "{{- $webhookConfig := (dict) -}}\nname: {{ include \"liqo.prefixedName\" \
                        $webhookConfig }}\nat: {{ .Release.Namespace }}:{{ .Values.webhook.port }}\n  \
                        {{- include \"liqo.labels\" $webhookConfig | nindent 4 }}\n";
        assert_eq!(chart().render(template).unwrap(), "name: liqo-webhook\nat: liqo:9443\n");
    }

    #[test]
    fn a_placeholder_that_nobody_knows_is_an_error_that_names_it() {
        for (template, known) in
            [("{{ .Chart.Name }}", ".Chart.Name"), ("{{ .Values.a.b }}", "/a/b"), ("{{ a", "{{ a")]
        {
            let said = chart().render(template).unwrap_err().to_string();
            assert!(said.contains(known), "{said}");
        }
    }
}
