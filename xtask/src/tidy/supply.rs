//! What comes in from outside: licences, sources and banned crates, as `deny.toml` lists them.
//!
//! `deny.toml` has cargo-deny's own syntax, so that whoever has that tool can run it. Most machines
//! do not, and a check that runs only where a tool happens to be installed is none: so the three
//! lists are checked here, from what `cargo metadata` says.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::metadata::Package;
use crate::tidy::Violation;
use crate::tidy::licence;

/// Where the lists are.
pub(crate) const PATH: &str = "deny.toml";

/// The part of `deny.toml` that is read here.
#[derive(Deserialize)]
pub(crate) struct Deny {
    pub(crate) graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

/// The platforms that count.
#[derive(Deserialize)]
pub(crate) struct Graph {
    pub(crate) targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Licences that one crate alone may have.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

impl Deny {
    /// Reads the lists.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).with_context(|| format!("reading {PATH}"))
    }

    /// What is wrong with any of these packages.
    pub(crate) fn check(&self, packages: &[Package]) -> Vec<Violation> {
        packages.iter().filter_map(|package| self.objection(package)).collect()
    }

    fn objection(&self, package: &Package) -> Option<Violation> {
        let name = format!("{} {}", package.name, package.version);
        let found = |what: String, remedy: &str| Some(Violation::at(PATH, 1, what, remedy));
        if let Some(ban) = self.bans.deny.iter().find(|ban| ban.name == package.name) {
            return found(
                format!("{name} is banned: {}", ban.reason),
                "`cargo tree --invert` shows who brings it in",
            );
        }
        if package.source.as_deref().is_some_and(|source| !self.knows(source)) {
            return found(format!("{name} comes from an unknown source"), "use the registry");
        }
        let licence = package.license.as_deref().unwrap_or_default();
        if !licence::accepted(licence, &|one| self.accepts(&package.name, one)) {
            return found(
                format!("the licence of {name} is not accepted: `{licence}`"),
                "use another crate, or accept the licence in an ADR and there",
            );
        }
        None
    }

    fn knows(&self, source: &str) -> bool {
        let address = source.strip_prefix("registry+").or_else(|| source.strip_prefix("sparse+"));
        address
            .is_some_and(|address| self.sources.allow_registry.iter().any(|known| known == address))
    }

    fn accepts(&self, package: &str, licence: &str) -> bool {
        let mut exceptions =
            self.licenses.exceptions.iter().filter(|exception| exception.name == package);
        let is = |allowed: &String| allowed == licence;
        self.licenses.allow.iter().any(is)
            || exceptions.any(|exception| exception.allow.iter().any(is))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: &str = r#"
        [graph]
        targets = ["x86_64-unknown-linux-gnu"]
        [licenses]
        allow = ["MIT"]
        exceptions = [{ crate = "unicode-ident", allow = ["Unicode-3.0"] }]
        [bans]
        deny = [{ crate = "openssl", reason = "rustls is enough" }]
        [sources]
        allow-registry = ["https://example.com/registry"]
    "#;

    fn said(name: &str, licence: &str, source: &str) -> Vec<String> {
        let mut package = Package::sample(name, &[]);
        package.license = Some(licence.to_owned());
        package.source = Some(source.to_owned());
        let deny = Deny::parse(LISTS).expect("readable lists");
        deny.check(&[package]).iter().map(ToString::to_string).collect()
    }

    const KNOWN: &str = "registry+https://example.com/registry";

    #[test]
    fn an_accepted_licence_from_a_known_source_is_fine() {
        assert_eq!(said("serde", "MIT OR GPL-3.0", KNOWN), Vec::<String>::new());
    }

    #[test]
    fn an_exception_is_for_one_crate_alone() {
        assert!(said("unicode-ident", "MIT AND Unicode-3.0", KNOWN).is_empty());
        assert!(
            said("other", "MIT AND Unicode-3.0", KNOWN)[0]
                .contains("licence of other 1.0.0 is not accepted")
        );
    }

    #[test]
    fn a_banned_crate_is_named_with_the_reason() {
        assert!(
            said("openssl", "MIT", KNOWN)[0].contains("openssl 1.0.0 is banned: rustls is enough")
        );
    }

    #[test]
    fn git_and_foreign_registries_are_unknown_sources() {
        assert!(
            said("serde", "MIT", "git+https://example.com/registry")[0].contains("unknown source")
        );
        assert!(
            said("serde", "MIT", "registry+https://example.com/other")[0]
                .contains("unknown source")
        );
    }
}
