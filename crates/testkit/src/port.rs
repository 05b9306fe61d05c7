//! Ports on loopback that are ours for as long as we want.
//!
//! They are taken from outside the range that the system gives to outgoing connections: otherwise one
//! of those could take the port of a server while it is being restarted. A lock on a file for each
//! port, which all processes of this machine see, keeps two tests from choosing the same one. Whoever
//! knows nothing of these files can take a port all the same, between the look and the server's own
//! start; so whoever starts a server for the first time tries again with another one.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;

use crate::error::{Error, during};

/// Nothing well known is up here, and most systems give outgoing connections ports from 32768 on.
const USUAL: Range<u16> = 20_000..32_000;
/// Below it, ports are for the system's own servers.
const LOWEST: u16 = 1_024;
/// With fewer, it would be better to be where outgoing connections are.
const FEWEST: usize = 1_000;
/// Says which ports are given to outgoing connections, on Linux.
const OUTGOING: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The files are in this folder, in the one for temporary files.
const FOLDER: &str = "sublet-ports";

/// How often other ports are tried, when somebody was faster.
const TRIES: u32 = 5;
/// How all of the programs put that.
const TAKEN: &str = "address already in use";

/// A port on loopback, which no other test gets until this value is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// One that nobody listens on.
    pub fn reserve() -> Result<Self, Error> {
        let looking = || during(|| "looking for a port".to_owned());
        let folder = std::env::temp_dir().join(FOLDER);
        fs::create_dir_all(&folder).map_err(looking())?;
        let range = range(outgoing());
        let random = RandomState::new().hash_one("port");
        let start = usize::try_from(random % range.len() as u64).unwrap_or_default();
        let mut candidates = range.clone().skip(start).chain(range.take(start));
        let found = candidates.find_map(|number| Self::take(&folder, number));
        found.ok_or_else(|| looking()(io::Error::other("none is free")))
    }

    /// Some of them.
    pub(crate) fn reserve_all<const N: usize>() -> Result<[Self; N], Error> {
        let ports = (0..N).map(|_| Self::reserve()).collect::<Result<Vec<_>, _>>()?;
        let wrong = |_| during(|| "looking for ports".to_owned())(io::Error::other("too few"));
        ports.try_into().map_err(wrong)
    }

    /// Its number.
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// This one, if it is nobody's.
    fn take(folder: &Path, number: u16) -> Option<Self> {
        let path = folder.join(number.to_string());
        let lock = File::options().create(true).append(true).open(path).ok()?;
        lock.try_lock().ok()?;
        is_free(number).then_some(Self { number, _lock: lock })
    }
}

/// Starts something, and starts it again, with other ports, as often as somebody was faster.
pub(crate) fn start_on_free<T>(mut start: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..TRIES {
        match start() {
            Err(error) if is_taken(&error) => {}
            done => return done,
        }
    }
    start()
}

/// Whether a program has ended because its port is somebody else's.
pub(crate) fn is_taken(error: &Error) -> bool {
    matches!(error, Error::Ended { tail, .. } if tail.contains(TAKEN))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The first and the last port that outgoing connections get, if the system says so.
fn outgoing() -> Option<(u16, u16)> {
    let text = fs::read_to_string(OUTGOING).ok()?;
    let mut words = text.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Ports that outgoing connections do not get, where there are enough.
fn range(outgoing: Option<(u16, u16)>) -> Range<u16> {
    let (first, last) = outgoing.unwrap_or((USUAL.end, u16::MAX));
    let above = last.saturating_add(1);
    let candidates = [
        USUAL.start..USUAL.end.min(first),
        USUAL.start.max(above)..USUAL.end,
        LOWEST..first,
        above..u16::MAX,
    ];
    candidates.into_iter().find(|range| range.len() > FEWEST).unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_port_is_nobody_elses_until_it_is_given_back() {
        let [one, other] = Port::reserve_all().unwrap();
        assert_ne!(one.number(), other.number());
        // In a folder that nobody else looks at; `one` keeps all others away.
        let (home, number) = (tempfile::tempdir().unwrap(), one.number());
        let take = || Port::take(home.path(), number);
        let taken = take().unwrap();
        assert!(take().is_none(), "it is ours, although nobody listens there");
        drop(taken);
        drop(take().unwrap());
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        assert!(take().is_none(), "somebody listens there");
    }

    #[test]
    fn outgoing_connections_get_others() {
        for (outgoing, expected) in [
            (None, USUAL),
            (Some((32_768, 60_999)), USUAL),
            (Some((30_000, 60_999)), 20_000..30_000),
            (Some((15_000, 64_000)), 1_024..15_000),
            (Some((1_024, 60_999)), 61_000..65_535),
            (Some((1_024, 10_000)), USUAL),
            (Some((1_024, 65_535)), USUAL),
        ] {
            assert_eq!(range(outgoing), expected, "{outgoing:?}");
        }
    }

    fn ended(said: &str) -> Error {
        let (process, tail) = ("etcd".to_owned(), said.to_owned());
        Error::Ended { process, status: ExitStatus::default(), log: PathBuf::new(), tail }
    }

    #[test]
    fn what_finds_its_port_taken_is_started_again_and_what_fails_otherwise_is_not() {
        let taken = || ended("listen tcp 127.0.0.1:1: bind: address already in use");
        let mut starts = 0;
        let started = start_on_free(|| {
            starts += 1;
            if starts < 3 { Err(taken()) } else { Ok(starts) }
        });
        assert_eq!(started.unwrap(), 3);
        starts = 0;
        let failed = start_on_free(|| {
            starts += 1;
            Err::<(), _>(ended("unknown flag"))
        });
        assert!(!is_taken(&failed.unwrap_err()));
        assert_eq!(starts, 1);
        starts = 0;
        let failed = start_on_free(|| {
            starts += 1;
            Err::<(), _>(taken())
        });
        assert!(is_taken(&failed.unwrap_err()));
        assert_eq!(starts, TRIES);
    }
}
