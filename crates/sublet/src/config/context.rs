//! One context: which broker, and as whom.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Stop};

/// More replicas than anybody runs.
const URLS_MAX: usize = 16;

/// Which broker, and as whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Context {
    /// Where it is reached; any of them will do.
    #[serde(default = "default_urls")]
    pub(crate) urls: Vec<String>,
    /// As whom.
    pub(crate) certificates: Certificates,
}

/// Where a broker on this machine is reached.
pub(crate) fn default_urls() -> Vec<String> {
    vec!["https://localhost:8443".into()]
}

/// Three files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "Written", into = "Written")]
pub(crate) struct Certificates {
    /// The client's certificate.
    pub(crate) certificate: PathBuf,
    /// Its key.
    pub(crate) key: PathBuf,
    /// Whom it believes.
    pub(crate) ca: PathBuf,
}

/// As it is written: a folder, or each file by itself.
#[derive(Serialize, Deserialize)]
#[serde(untagged, rename_all = "kebab-case")]
enum Written {
    Folder(PathBuf),
    Files { certificate: PathBuf, key: PathBuf, ca: PathBuf },
}

impl From<Written> for Certificates {
    fn from(written: Written) -> Self {
        match written {
            Written::Folder(folder) => Self::folder(&folder),
            Written::Files { certificate, key, ca } => Self { certificate, key, ca },
        }
    }
}

impl From<Certificates> for Written {
    fn from(certificates: Certificates) -> Self {
        if let Some(folder) = certificates.common_folder() {
            return Self::Folder(folder.into());
        }
        let Certificates { certificate, key, ca } = certificates;
        Self::Files { certificate, key, ca }
    }
}

impl Certificates {
    /// Those of a folder, under the names that Kubernetes secrets have.
    pub(crate) fn folder(folder: &Path) -> Self {
        let [certificate, key, ca] = ["tls.crt", "tls.key", "ca.crt"].map(|name| folder.join(name));
        Self { certificate, key, ca }
    }

    fn common_folder(&self) -> Option<&Path> {
        let folder = self.certificate.parent()?;
        (*self == Self::folder(folder)).then_some(folder)
    }

    /// In one line.
    pub(crate) fn display(&self) -> String {
        self.common_folder().unwrap_or(&self.certificate).display().to_string()
    }

    /// The same, with paths that are not absolute counted from `folder`.
    fn counted_from(&self, folder: &Path) -> Self {
        let [certificate, key, ca] =
            [&self.certificate, &self.key, &self.ca].map(|path| folder.join(path));
        Self { certificate, key, ca }
    }

    /// All three can be read.
    fn check(&self) -> Result<()> {
        for path in [&self.certificate, &self.key, &self.ca] {
            fs::File::open(path).with_context(|| {
                let message = format!("{} cannot be opened", path.display());
                Stop::new(Exit::NotFound, message)
            })?;
        }
        Ok(())
    }
}

impl Context {
    /// The same, with paths counted from the folder of the file that it stands in.
    pub(crate) fn in_folder(&self, folder: &Path) -> Self {
        Self { urls: self.urls.clone(), certificates: self.certificates.counted_from(folder) }
    }

    /// What can be seen without asking anybody.
    pub(crate) fn check(&self) -> Result<()> {
        let usage = |message: String| Err(Stop::new(Exit::Usage, message).into());
        if self.urls.is_empty() || self.urls.len() > URLS_MAX {
            return usage(format!("a context needs 1 to {URLS_MAX} broker URLs"));
        }
        for url in &self.urls {
            let rest = url.strip_prefix("https://").unwrap_or_default();
            if rest.is_empty() || rest.contains(char::is_whitespace) {
                return usage(format!("{url:?} is no broker URL: write https://HOST:8443"));
            }
        }
        self.certificates.check()
    }
}

/// The path as every folder sees it.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is no path", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_a_folder_or_three_files() {
        let folder: Context = toml::from_str("certificates = \"/a\"").unwrap();
        assert_eq!(folder.urls, default_urls());
        assert_eq!(folder.certificates.key, Path::new("/a/tls.key"));
        assert_eq!(folder.certificates.display(), "/a");
        let files = "certificates = { certificate = \"c\", key = \"/k\", ca = \"/x\" }";
        let files: Context = toml::from_str(files).unwrap();
        let files = files.in_folder(Path::new("/etc"));
        assert_eq!(files.certificates.certificate, Path::new("/etc/c"));
        assert_eq!(files.certificates.key, Path::new("/k"));
        for context in [folder, files] {
            let written = toml::to_string(&context).unwrap();
            assert_eq!(toml::from_str::<Context>(&written).unwrap(), context, "{written}");
        }
    }

    #[test]
    fn a_field_that_is_not_known_is_refused() {
        let wrong = "certificates = \"/a\"\nurl = \"https://b\"";
        assert!(toml::from_str::<Context>(wrong).unwrap_err().to_string().contains("url"));
    }
}
