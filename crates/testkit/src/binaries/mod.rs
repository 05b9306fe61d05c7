//! The programs that a cluster is made of: which they are, where they are looked for, and how they
//! are built from Go modules where they are not.
//!
//! A program is looked for by name in `$SUBLET_KUBE_BIN`, in `$KUBEBUILDER_ASSETS` and in the cache
//! folder, in this order. Each is found by itself: what `setup-envtest` brings is only three of them,
//! and the cache supplies the rest. The folder that `$SUBLET_KUBE_BIN` names is believed; one in
//! `$KUBEBUILDER_ASSETS` is passed over unless it is of our Kubernetes minor version, because a
//! controller manager does not work with an older API server; and nothing of Liqo's is looked for
//! there, where `webhook` would be somebody else's.

mod build;
mod lock;
mod module;
mod release;
mod workshop;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub use build::{BuildError, Progress, build};
pub use release::{Kit, Program};

/// Where programs are looked for, as the environment says.
#[derive(Clone, Debug)]
pub struct Places {
    /// A folder that somebody chose for us: `$SUBLET_KUBE_BIN`.
    chosen: Option<PathBuf>,
    /// What other Kubernetes projects use: `$KUBEBUILDER_ASSETS`.
    shared: Option<PathBuf>,
    /// Where builds are kept: `$XDG_CACHE_HOME/sublet/kube` or `~/.cache/sublet/kube`.
    cache: PathBuf,
}

/// A program for each purpose.
#[derive(Clone, Debug)]
pub struct Binaries(BTreeMap<Program, PathBuf>);

/// Some programs are not on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: run `{}`", self.not_found(), .kit.command())]
pub struct Missing {
    /// Of what.
    pub kit: Kit,
    /// Which.
    pub programs: Vec<Program>,
    /// Where builds are kept, and these are not.
    pub cache: PathBuf,
}

impl Missing {
    /// What was looked for, and where.
    fn not_found(&self) -> String {
        let names: Vec<_> = self.programs.iter().map(|program| program.name()).collect();
        let (names, cache) = (names.join(", "), self.cache.display());
        let shared = if self.kit == Kit::Kubernetes { ", $KUBEBUILDER_ASSETS" } else { "" };
        format!("{names} not found in $SUBLET_KUBE_BIN{shared} or {cache}")
    }
}

impl Places {
    /// What the environment of this process says.
    pub fn from_environment() -> Self {
        let folder = |name| variable(name).map(PathBuf::from);
        let base = folder("XDG_CACHE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join(".cache")))
            .unwrap_or_else(std::env::temp_dir);
        Self {
            chosen: folder("SUBLET_KUBE_BIN"),
            shared: folder("KUBEBUILDER_ASSETS"),
            cache: base.join("sublet").join("kube"),
        }
    }

    /// The folder in the cache that holds, or would hold, the release that we use.
    pub fn built(&self, kit: Kit) -> PathBuf {
        self.cache.join(kit.release())
    }

    fn cache(&self) -> &Path {
        &self.cache
    }

    /// Where a program is.
    fn find(&self, program: Program) -> Option<PathBuf> {
        let inside = |folder: &PathBuf| {
            let path = folder.join(program.name());
            let wanted = if program == Program::LiqoChart { path.is_dir() } else { path.is_file() };
            wanted.then_some(path)
        };
        let chosen = self.chosen.as_ref().and_then(inside);
        let shared = self.shared.as_ref().filter(|_| program.kit() == Kit::Kubernetes);
        let shared = || shared.and_then(inside).filter(|path| fits(program, path));
        let built = || inside(&self.built(program.kit()));
        chosen.or_else(shared).or_else(built)
    }
}

/// Whether a program that somebody else put there is of our minor version; of those that are not
/// part of Kubernetes any version will do.
fn fits(program: Program, path: &Path) -> bool {
    let Some(minor) = program.kubernetes_minor() else { return true };
    let asked = match program {
        Program::Kubectl => ["version", "--client"].as_slice(),
        _ => &["--version"],
    };
    let output = Command::new(path).args(asked).stdin(Stdio::null()).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(&minor))
}

impl Binaries {
    /// Finds all of a kit, or says which are missing.
    pub fn find(places: &Places, kit: Kit) -> Result<Self, Missing> {
        let (mut found, mut programs) = (BTreeMap::new(), Vec::new());
        for &program in kit.programs() {
            match places.find(program) {
                Some(path) => drop(found.insert(program, path)),
                None => programs.push(program),
            }
        }
        if programs.is_empty() {
            Ok(Self(found))
        } else {
            Err(Missing { kit, programs, cache: places.built(kit) })
        }
    }

    /// Those of this process, looked for once.
    pub fn of_this_machine(kit: Kit) -> Result<&'static Self, Missing> {
        static FOUND: [OnceLock<Result<Binaries, Missing>>; 3] = [const { OnceLock::new() }; 3];
        let found = match kit {
            Kit::Kubernetes => &FOUND[0],
            Kit::Liqo => &FOUND[1],
            Kit::Liqoctl => &FOUND[2],
        };
        let found = found.get_or_init(|| Self::find(&Places::from_environment(), kit));
        found.as_ref().map_err(Clone::clone)
    }

    /// Where one of them is.
    pub fn path(&self, program: Program) -> &Path {
        // All of its kit are in the map, or there would be no value of this type.
        self.0.get(&program).map_or_else(|| Path::new(program.name()), PathBuf::as_path)
    }
}

/// A variable of the environment, unless it is unset or empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the testkit reads the environment"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(folder: &Path, names: &[&str]) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        for name in names {
            std::fs::write(folder.join(name), "").unwrap();
        }
        folder.to_owned()
    }

    fn all() -> Vec<&'static str> {
        Kit::Kubernetes.programs().iter().map(|program| program.name()).collect()
    }

    #[test]
    fn each_program_is_found_in_the_first_place_that_has_it() {
        let home = tempfile::tempdir().unwrap();
        let mut places = Places { chosen: None, shared: None, cache: home.path().join("cache") };
        with(&places.built(Kit::Kubernetes), &all());
        places.shared = Some(with(&home.path().join("shared"), &["etcd"]));
        places.chosen = Some(with(&home.path().join("chosen"), &["kubectl"]));
        let found = Binaries::find(&places, Kit::Kubernetes).unwrap();
        assert_eq!(found.path(Program::Kubectl), home.path().join("chosen/kubectl"));
        assert_eq!(found.path(Program::Etcd), home.path().join("shared/etcd"));
        assert_eq!(found.path(Program::Kwok), places.built(Kit::Kubernetes).join("kwok"));
    }

    #[test]
    fn what_does_not_tell_our_version_is_passed_over_unless_it_was_chosen_for_us() {
        let home = tempfile::tempdir().unwrap();
        let other = with(&home.path().join("other"), &["kube-apiserver"]);
        let cache = home.path().join("cache");
        let mut places = Places { chosen: None, shared: Some(other.clone()), cache };
        with(&places.built(Kit::Kubernetes), &all());
        let path = |places: &Places| places.find(Program::ApiServer).unwrap();
        assert_eq!(path(&places), places.built(Kit::Kubernetes).join("kube-apiserver"));
        places.chosen = Some(other.clone());
        assert_eq!(path(&places), other.join("kube-apiserver"));
    }

    #[test]
    fn what_is_missing_is_named_with_the_command_that_brings_it() {
        let home = tempfile::tempdir().unwrap();
        let places = Places { chosen: None, shared: None, cache: home.path().to_owned() };
        with(
            &places.built(Kit::Kubernetes),
            &["etcd", "kube-apiserver", "kube-scheduler", "kubectl"],
        );
        let said = Binaries::find(&places, Kit::Kubernetes).unwrap_err().to_string();
        assert!(said.starts_with("kube-controller-manager, kwok not found"), "{said}");
        assert!(said.ends_with("run `cargo xtask kube`"), "{said}");
    }

    #[test]
    fn liqo_is_a_kit_of_its_own_and_nothing_of_it_is_looked_for_where_others_keep_theirs() {
        let home = tempfile::tempdir().unwrap();
        let shared = Some(with(&home.path().join("shared"), &["webhook"]));
        let places = Places { chosen: None, shared, cache: home.path().join("cache") };
        let names = ["liqo-controller-manager", "crd-replicator", "virtual-kubelet"];
        with(&places.built(Kit::Liqo), &names);
        with(&places.built(Kit::Liqo).join("liqo-chart"), &[]);
        let missing = Binaries::find(&places, Kit::Liqo).unwrap_err();
        assert_eq!(missing.programs, [Program::LiqoWebhook]);
        let said = missing.to_string();
        assert!(!said.contains("KUBEBUILDER"), "{said}");
        let said = Binaries::find(&places, Kit::Liqoctl).unwrap_err().to_string();
        assert!(said.ends_with("run `cargo xtask kube --liqoctl`"), "{said}");
    }
}
