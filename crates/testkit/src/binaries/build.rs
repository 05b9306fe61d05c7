//! Builds what is missing from Go modules, once per machine.
//!
//! Each program gets its name in the cache folder by a rename when it is whole, so nobody ever sees
//! half of one, and a build that was broken off goes on where it was. A lock keeps two builds apart:
//! the second waits, and finds everything there. Where modules come from is the machine's own affair
//! (`GOPROXY`); Go's build cache, some gigabytes, is kept beside the results until all are there.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::lock::Lock;
use super::module::GO;
use super::workshop::Workshop;
use super::{Binaries, Kit, Missing, Places, Program};
use crate::wait::Stopwatch;

/// On the path, or where Go's own installer puts it, which is often not on the path.
const GO_PROGRAMS: [&str; 2] = ["go", "/usr/local/go/bin/go"];
/// Since this one, Go fetches a newer version of itself where a module wants it.
const GO_MINOR_MIN: u32 = 21;

/// What somebody who waits may like to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process builds; this one waits for it.
    Waiting,
    /// A program is being built, the `number`th of `of`, for this long already.
    Building {
        /// Which.
        program: Program,
        /// Counted from 1.
        number: usize,
        /// How many there are to build.
        of: usize,
        /// For how long.
        elapsed: Duration,
    },
    /// A program is there.
    Built {
        /// Which.
        program: Program,
        /// How long it took.
        took: Duration,
    },
}

/// Why there are no programs.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no Go.
    #[error("{}.\nGo, which would build them, is not installed. {}", .missing.not_found(), install())]
    NoGo {
        /// What is wanted.
        missing: Missing,
    },
    /// There is an old Go.
    #[error("{}.\nGo, which would build them, is too old: {found}. {}", .missing.not_found(), install())]
    OldGo {
        /// What is wanted.
        missing: Missing,
        /// What it calls itself.
        found: String,
    },
    /// Go did not build one of them.
    #[error(
        "{} was not built: go ended with {status}. Its last words ({}):\n{said}",
        .program.name(),
        .log.display()
    )]
    Failed {
        /// Which.
        program: Program,
        /// How it ended.
        status: std::process::ExitStatus,
        /// Where all of it is.
        log: PathBuf,
        /// The end of it.
        said: String,
    },
    /// A file or a process was not to be had.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// Everything was built, and still something is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
}

fn install() -> String {
    let version = GO.trim_end_matches(".0");
    format!(
        "Install Go {version} or newer (1.{GO_MINOR_MIN} will do where it may fetch its own \
         toolchain). Debian, Ubuntu: apt-get install golang-go; Fedora: dnf install golang; macOS: \
         brew install go. Or name a folder that has the programs in SUBLET_KUBE_BIN"
    )
}

pub(super) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> BuildError {
    let what = what.into();
    move |source| BuildError::Io { what, source }
}

/// Finds the programs of a kit, and builds those that are missing.
pub fn build(
    places: &Places,
    kit: Kit,
    report: &mut dyn FnMut(Progress),
) -> Result<Binaries, BuildError> {
    let missing = match Binaries::find(places, kit) {
        Ok(binaries) => return Ok(binaries),
        Err(missing) => missing,
    };
    build_with(find_go(&missing)?, places, kit, report)
}

/// Builds what is missing with this Go, one process at a time.
fn build_with(
    go: &str,
    places: &Places,
    kit: Kit,
    report: &mut dyn FnMut(Progress),
) -> Result<Binaries, BuildError> {
    let lock = places.cache().join("lock");
    let lock = Lock::take(&lock, || report(Progress::Waiting))
        .map_err(failed(format!("{} was not locked", lock.display())))?;
    if let Err(missing) = Binaries::find(places, kit) {
        let workshop = Workshop::open(places, kit, go)?;
        let of = missing.programs.len();
        for (number, program) in (1..).zip(missing.programs) {
            let clock = Stopwatch::start();
            workshop.build(program, &mut || {
                report(Progress::Building { program, number, of, elapsed: clock.elapsed() });
            })?;
            report(Progress::Built { program, took: clock.elapsed() });
        }
        workshop.close()?;
    }
    drop(lock);
    Ok(Binaries::find(places, kit)?)
}

/// The first Go that there is, if it is not too old.
fn find_go(missing: &Missing) -> Result<&'static str, BuildError> {
    let Some((go, found)) = GO_PROGRAMS.iter().find_map(|go| Some((*go, version(go)?))) else {
        return Err(BuildError::NoGo { missing: missing.clone() });
    };
    match minor(&found) {
        Some(minor) if minor < GO_MINOR_MIN => {
            Err(BuildError::OldGo { missing: missing.clone(), found })
        }
        // What calls itself otherwise was built by somebody who knows what it is.
        _ => Ok(go),
    }
}

/// What a Go calls itself, if it is there.
fn version(go: &str) -> Option<String> {
    setting(go, "GOVERSION")
}

/// A setting of a Go, if it is there.
pub(super) fn setting(go: &str, name: &str) -> Option<String> {
    let output = Command::new(go).args(["env", name]).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// The 26 of `go1.26.8`.
fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("go1.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_version_of_go_is_read_from_what_it_calls_itself() {
        assert_eq!(minor("go1.26.8"), Some(26));
        assert_eq!(minor("go1.26rc1"), Some(26));
        assert_eq!(minor("devel +abc"), None);
    }

    /// A program that answers as `go build … -o FILE PACKAGE` does, and fails for one package; and as
    /// `go mod download -json` does, and as `go env`.
    fn go_that_fails_for(folder: &Path, package: &str) -> String {
        let text = format!(
            "#!/bin/sh\ncase $1 in env) exit;; mod) echo '{{\"Dir\": \"{}/module\"}}'; exit;; esac\n\
             while [ \"$1\" != -o ]; do shift; done\n\
             case $3 in *{package}) echo no such thing as \"$3\"; exit 1;; esac\n\
             if [ -d \"$2\" ]; then echo built > \"$2/server\"; else echo built > \"$2\"; fi\n",
            folder.display()
        );
        script(folder, &text)
    }

    /// A program that is a text.
    fn script(folder: &Path, program: &str) -> String {
        let (text, path) = (folder.join("go.sh"), folder.join("go"));
        fs::write(&text, program).unwrap();
        // By another process: a file that this one has written may still be open in a child that
        // another test starts just now, and then it cannot be run.
        let made = Command::new("install").args(["-m", "755"]).args([&text, &path]).status();
        assert!(made.unwrap().success());
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn what_is_built_is_found_and_a_build_that_was_broken_off_goes_on_where_it_was() {
        let home = tempfile::tempdir().unwrap();
        let places = Places { chosen: None, shared: None, cache: home.path().join("kube") };
        let mut built = Vec::new();
        let mut report = |progress| {
            if let Progress::Built { program, .. } = progress {
                built.push(program);
            }
        };
        let go = go_that_fails_for(home.path(), "/kwok");
        let error = build_with(&go, &places, Kit::Kubernetes, &mut report).unwrap_err().to_string();
        assert!(error.contains("kwok was not built"), "{error}");
        assert!(error.ends_with("no such thing as sigs.k8s.io/kwok/cmd/kwok"), "{error}");
        assert_eq!(Binaries::find(&places, Kit::Kubernetes).unwrap_err().programs, [Program::Kwok]);

        let go = go_that_fails_for(home.path(), "/nothing");
        let binaries = build_with(&go, &places, Kit::Kubernetes, &mut report).unwrap();
        assert_eq!(built, Kit::Kubernetes.programs());
        assert_eq!(binaries.path(Program::Etcd), places.built(Kit::Kubernetes).join("etcd"));
        let left: Vec<_> = fs::read_dir(&places.cache).unwrap().flatten().collect();
        assert_eq!(left.len(), 2, "the release and the lock: {left:?}");
    }

    #[test]
    fn without_go_it_says_what_to_install() {
        let programs = vec![Program::Etcd];
        let missing = Missing { kit: Kit::Kubernetes, programs, cache: PathBuf::from("/cache") };
        let said = BuildError::NoGo { missing }.to_string();
        assert!(said.contains("etcd not found"), "{said}");
        assert!(said.contains("apt-get install golang-go"), "{said}");
        assert!(said.contains("SUBLET_KUBE_BIN"), "{said}");
    }

    #[test]
    fn the_chart_of_liqo_is_taken_from_its_module() {
        let home = tempfile::tempdir().unwrap();
        let roles = home.path().join("module/deployments/liqo/files");
        fs::create_dir_all(&roles).unwrap();
        fs::write(roles.join("role.yaml"), "rules: []").unwrap();
        let places = Places { chosen: None, shared: None, cache: home.path().join("kube") };
        let go = go_that_fails_for(home.path(), "/nothing");
        let binaries = build_with(&go, &places, Kit::Liqo, &mut |_| ()).unwrap();
        let chart = binaries.path(Program::LiqoChart);
        assert_eq!(fs::read_to_string(chart.join("files/role.yaml")).unwrap(), "rules: []");
        assert_eq!(binaries.path(Program::LiqoWebhook), places.built(Kit::Liqo).join("webhook"));
    }

    #[test]
    fn what_go_says_in_json_is_shown_when_it_fails() {
        let home = tempfile::tempdir().unwrap();
        let places = Places { chosen: None, shared: None, cache: home.path().join("kube") };
        let text =
            "#!/bin/sh\n[ $1 = env ] && exit\necho '{\"Error\": \"no such host\"}'; exit 1\n";
        let go = script(home.path(), text);
        let said = build_with(&go, &places, Kit::Liqo, &mut |_| ()).unwrap_err().to_string();
        assert!(said.starts_with("liqo-chart was not built"), "{said}");
        assert!(said.contains("no such host"), "{said}");
    }
}
