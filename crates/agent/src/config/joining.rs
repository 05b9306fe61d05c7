//! How clusters are joined, as was said.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sublet_core::time::Span;

use super::flags::Flags;
use super::{given, print, some};
use crate::peering::Networking;

/// Nothing takes longer, nor ends before it has begun.
const TIMEOUT_MAX: Span = Span::from_secs(3600);
const TIMEOUT_MIN: Span = Span::from_secs(1);

/// What it is called where nobody says where it is.
pub(super) const LIQOCTL: &str = "liqoctl";

/// What liqoctl gets of our environment: where it finds the programs that kubeconfigs name, and the way to
/// API servers.
const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Why it makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A backend that is none.
    #[error("--peering={0} is not known: use liqo, liqoctl or none, or leave it out")]
    Peering(String),
    /// No kubeconfigs.
    #[error(
        "--kubeconfigs-dir is needed with --peering=liqoctl: a folder with <cluster>.kubeconfig of this \
         cluster and of every provider; --peering=liqo needs none"
    )]
    NoKubeconfigs,
    /// Too short, or too long.
    #[error("--liqoctl-timeout: from {TIMEOUT_MIN} to {TIMEOUT_MAX}")]
    Timeout,
    /// Not built yet.
    #[error(
        "--liqo-networking=managed is not available in this version: make the network with liqoctl \
         network connect, and say existing"
    )]
    Managed,
    /// A network that is none.
    #[error("--liqo-networking={0} is not known: use existing or disabled")]
    Networking(String),
}

/// How clusters are joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Joining {
    /// By Liqo's custom resources.
    Liqo,
    /// By Liqo's command line.
    Liqoctl(Liqoctl),
    /// Not at all.
    None,
}

/// Liqo's command line, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Liqoctl {
    /// The folder with kubeconfigs.
    pub kubeconfigs_dir: PathBuf,
    /// The program.
    pub path: PathBuf,
    /// How long it may take, each time.
    #[serde(serialize_with = "print::text")]
    pub timeout: Span,
    /// Its environment.
    #[serde(skip)]
    pub environment: Vec<(OsString, OsString)>,
}

impl Joining {
    /// What was said; nothing if it is to be looked what is installed.
    pub(super) fn of(flags: &Flags) -> Result<Option<Self>, Error> {
        let folder = folder(flags);
        match (flags.peering.as_deref().and_then(some), folder) {
            (None, None) => Ok(None),
            (Some("liqo"), _) => Ok(Some(Self::Liqo)),
            (Some("none"), _) => Ok(Some(Self::None)),
            (Some("liqoctl"), None) => Err(Error::NoKubeconfigs),
            // As the Go agent, which peers if it has kubeconfigs.
            (Some("liqoctl") | None, Some(folder)) => {
                Liqoctl::of(flags, folder).map(|liqoctl| Some(Self::Liqoctl(liqoctl)))
            }
            (Some(other), _) => Err(Error::Peering(other.to_owned())),
        }
    }
}

impl Liqoctl {
    fn of(flags: &Flags, kubeconfigs_dir: PathBuf) -> Result<Self, Error> {
        let timeout = flags.liqoctl_timeout;
        if timeout < TIMEOUT_MIN || timeout > TIMEOUT_MAX {
            return Err(Error::Timeout);
        }
        let path = given(Some(&flags.liqoctl_path)).unwrap_or(Path::new(LIQOCTL)).to_owned();
        Ok(Self { kubeconfigs_dir, path, timeout, environment: inherited() })
    }
}

/// The flags about liqoctl that were given, where it is not used: nobody else touches the network.
pub(super) fn without_effect(
    flags: &Flags,
    chosen: Option<&Joining>,
) -> impl Iterator<Item = &'static str> + use<> {
    let is_used = matches!(chosen, Some(Joining::Liqoctl(_)));
    let given = [
        ("kubeconfigs-dir", folder(flags).is_some()),
        ("liqo-networking", network(flags).is_some()),
    ];
    given.into_iter().filter_map(move |(flag, is_given)| (is_given && !is_used).then_some(flag))
}

/// Whose the network is.
pub(super) fn networking(flags: &Flags) -> Result<Networking, Error> {
    match network(flags) {
        None | Some("existing") => Ok(Networking::Existing),
        Some("disabled") => Ok(Networking::Disabled),
        Some("managed") => Err(Error::Managed),
        Some(other) => Err(Error::Networking(other.to_owned())),
    }
}

fn network(flags: &Flags) -> Option<&str> {
    flags.liqo_networking.as_deref().and_then(some)
}

/// Nothing means none, as in Go.
fn folder(flags: &Flags) -> Option<PathBuf> {
    flags.kubeconfigs_dir.as_deref().and_then(some).map(PathBuf::from)
}

fn inherited() -> Vec<(OsString, OsString)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the configuration: read once, at the start"
    )]
    let value = |name: &str| std::env::var_os(name).map(|value| (OsString::from(name), value));
    let mut all: Vec<_> = INHERITED.into_iter().filter_map(value).collect();
    if !all.iter().any(|(name, _)| name == "HOME") {
        // It does not start without one, and only looks for a cache there.
        all.push(("HOME".into(), std::env::temp_dir().into()));
    }
    // What it prints is read by a machine first.
    all.extend([("NO_COLOR", "1"), ("TERM", "dumb")].map(|(name, is)| (name.into(), is.into())));
    all
}
