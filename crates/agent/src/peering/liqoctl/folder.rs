//! The folder with a kubeconfig for each cluster, `<cluster>.kubeconfig`, as the Go agent has it.
//!
//! A file is used if it is in the folder (where Kubernetes mounts a Secret, through links that stay in
//! there), can be read as a kubeconfig, and is of the cluster that it is named after: liqoctl joins
//! whatever two clusters it is given.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client};
use sublet_core::id::ClusterId;
use tokio::time::timeout;

use super::arguments::{Kubeconfigs, place};
use crate::peering::liqo::kinds::Tenant;
use crate::peering::liqo::names::{ID_CONFIG_MAP, LIQO_NAMESPACE, tenant_namespace};

/// The largest file that is taken for a kubeconfig.
const SIZE_MAX: u64 = 1 << 20;
/// How long a cluster may take to say who it is.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// There is none.
    #[error("there is no kubeconfig of {cluster} at {}", path.display())]
    Missing {
        /// Of whom.
        cluster: ClusterId,
        /// Where it should be.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is somewhere else.
    #[error("{} is a link out of the folder, and is not followed", .0.display())]
    Outside(PathBuf),
    /// It is not a file, or a huge one.
    #[error("{} is not a file of at most {} KiB", .0.display(), SIZE_MAX >> 10)]
    NotAFile(PathBuf),
    /// It makes no sense.
    #[error("{} is not a kubeconfig that can be used: {}", path.display(), first_line(source))]
    Bad {
        /// Which.
        path: PathBuf,
        /// Why.
        source: KubeconfigError,
    },
    /// The cluster in it does not answer as it should.
    #[error(
        "the cluster of {} does not answer, or not who it is (ConfigMap {LIQO_NAMESPACE}/{ID_CONFIG_MAP}): {why}",
        path.display()
    )]
    Silent {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It is that of another cluster.
    #[error("{} is a kubeconfig of {found:?}, not of {cluster}", path.display())]
    OfAnother {
        /// Which.
        path: PathBuf,
        /// Whose it should be.
        cluster: ClusterId,
        /// Whose it is.
        found: String,
    },
}

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        // Whoever reads the paths in our messages, or starts in another folder, finds them all the same.
        Self(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
    }

    /// The kubeconfigs of a pair, each of the cluster that it is named after.
    pub(super) async fn pair(
        &self,
        own: &ClusterId,
        remote: &ClusterId,
    ) -> Result<Kubeconfigs, Error> {
        let [own_file, remote_file] = [self.file(own)?, self.file(remote)?];
        identify(&own_file, own).await?;
        identify(&remote_file, remote).await?;
        Ok(Kubeconfigs { own: own_file.path, remote: remote_file.path })
    }

    /// Does the provider have this cluster as a tenant?
    pub(super) async fn is_tenant(
        &self,
        own: &ClusterId,
        provider: &ClusterId,
    ) -> Result<bool, Error> {
        let file = self.file(provider)?;
        let silent = |why: String| Error::Silent { path: file.path.clone(), why };
        let client = client(&file).await?;
        let tenants: Api<Tenant> = Api::namespaced(client, &tenant_namespace(own));
        let answer = timeout(ANSWER_MAX, tenants.get_metadata_opt(own.as_str())).await;
        let answer = answer.map_err(|_| silent("no answer".to_owned()))?;
        answer.map(|found| found.is_some()).map_err(|error| silent(error.to_string()))
    }

    /// The kubeconfig of a cluster.
    pub(super) fn file(&self, cluster: &ClusterId) -> Result<File, Error> {
        let path = place(&self.0, cluster);
        let unreadable = |source| Error::Unreadable { path: path.clone(), source };
        let (real, folder) = match (path.canonicalize(), self.0.canonicalize()) {
            (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing { cluster: cluster.clone(), path });
            }
            (real, folder) => (real.map_err(unreadable)?, folder.map_err(unreadable)?),
        };
        if !real.starts_with(&folder) {
            return Err(Error::Outside(path));
        }
        let metadata = fs::metadata(&real).map_err(unreadable)?;
        if !metadata.is_file() || metadata.len() > SIZE_MAX {
            return Err(Error::NotAFile(path));
        }
        match Kubeconfig::read_from(&real) {
            Ok(content) => Ok(File { path, content }),
            Err(source) => Err(Error::Bad { path, source }),
        }
    }
}

/// A kubeconfig, read.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    content: Kubeconfig,
}

/// Asks the cluster in a kubeconfig who it is; Liqo knows.
async fn identify(file: &File, cluster: &ClusterId) -> Result<(), Error> {
    let path = || file.path.clone();
    let silent = |why: String| Error::Silent { path: path(), why };
    let client = client(file).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, LIQO_NAMESPACE);
    let answer = timeout(ANSWER_MAX, maps.get(ID_CONFIG_MAP)).await;
    let answer = answer.map_err(|_| silent("no answer".to_owned()))?;
    let map = answer.map_err(|error| silent(error.to_string()))?;
    let found = map.data.and_then(|data| data.get("CLUSTER_ID").cloned()).unwrap_or_default();
    if found == cluster.as_str() {
        return Ok(());
    }
    Err(Error::OfAnother { path: path(), cluster: cluster.clone(), found })
}

/// What is wrong with a file, without the lines of it that are quoted: there are secrets in there.
fn first_line(error: &KubeconfigError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

async fn client(file: &File) -> Result<Client, Error> {
    let (path, content) = (|| file.path.clone(), file.content.clone());
    let config = kube::Config::from_custom_kubeconfig(content, &KubeConfigOptions::default()).await;
    let config = config.map_err(|source| Error::Bad { path: path(), source })?;
    Client::try_from(config).map_err(|error| Error::Silent { path: path(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const GOOD: &str =
        r#"{"apiVersion":"v1","kind":"Config","clusters":[],"users":[],"contexts":[]}"#;

    fn milan() -> ClusterId {
        "milan".parse().unwrap()
    }

    #[test]
    fn a_kubeconfig_is_named_after_its_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("milan.kubeconfig");
        let known = Folder::new(folder.path());
        let said = known.file(&milan()).unwrap_err().to_string();
        assert!(said.contains(&format!("milan at {}", path.display())), "{said}");
        fs::write(&path, GOOD).unwrap();
        assert_eq!(known.file(&milan()).unwrap().path, path);
        let nowhere = Folder::new(&folder.path().join("none")).file(&milan());
        assert!(matches!(nowhere, Err(Error::Missing { .. })));
    }

    #[test]
    fn a_secret_that_is_mounted_can_be_used_and_a_link_out_of_the_folder_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let (mount, elsewhere) = (folder.path().join("mount"), folder.path().join("elsewhere"));
        fs::create_dir_all(mount.join("..2026_11_16")).unwrap();
        fs::write(mount.join("..2026_11_16/milan.kubeconfig"), GOOD).unwrap();
        symlink("..2026_11_16", mount.join("..data")).unwrap();
        symlink("..data/milan.kubeconfig", mount.join("milan.kubeconfig")).unwrap();
        fs::write(&elsewhere, GOOD).unwrap();
        symlink(&elsewhere, mount.join("turin.kubeconfig")).unwrap();
        let known = Folder::new(&mount);
        assert!(known.file(&milan()).is_ok());
        assert!(matches!(known.file(&"turin".parse().unwrap()), Err(Error::Outside(_))));
    }

    #[test]
    fn what_is_no_kubeconfig_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("milan.kubeconfig");
        let known = Folder::new(folder.path());
        fs::write(&path, "clusters: [oh, dear").unwrap();
        let said = known.file(&milan()).unwrap_err().to_string();
        assert!(said.contains("is not a kubeconfig"), "{said}");
        assert!(!said.contains("dear") && !said.contains('\n'), "nothing of it is quoted: {said}");
        fs::write(&path, vec![b'#'; usize::try_from(SIZE_MAX + 1).unwrap()]).unwrap();
        assert!(matches!(known.file(&milan()), Err(Error::NotAFile(_))));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(known.file(&milan()), Err(Error::NotAFile(_))));
    }

    #[test]
    fn no_cluster_has_a_name_that_leads_out_of_the_folder() {
        for bad in ["../x", "a/b", "..", ".", "a.b", "/etc/x", "-x", ""] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_cluster_that_does_not_answer_is_not_joined() {
        let folder = tempfile::tempdir().unwrap();
        let nobody = r#"{"apiVersion":"v1","kind":"Config","current-context":"x",
            "clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}],
            "users":[{"name":"x","user":{}}],
            "contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}"#;
        for name in ["milan", "rome"] {
            fs::write(folder.path().join(format!("{name}.kubeconfig")), nobody).unwrap();
        }
        let known = Folder::new(folder.path());
        let said = known.pair(&"rome".parse().unwrap(), &milan()).await.unwrap_err();
        assert!(matches!(said, Error::Silent { .. }), "{said}");
    }
}
