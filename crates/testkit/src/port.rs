//! Ports on loopback that are free.
//!
//! They are taken from below the range that systems give to outgoing connections: otherwise one of
//! those could take the port of a server while it is being restarted. Between the look and the
//! server's own start another process may take it all the same; then the cluster is started anew.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// Nothing well known is up here, and outgoing connections begin at 32768 or above.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
/// If as many are in use, something else is wrong.
const TRIES: u16 = 2_000;

/// `N` ports that nobody listens on.
pub(crate) fn free<const N: usize>() -> Option<[u16; N]> {
    let start = u16::try_from(RandomState::new().hash_one("port") % u64::from(COUNT)).ok()?;
    let candidates = (0..TRIES).map(|step| FIRST + (start + step) % COUNT);
    let mut found = candidates.filter(|port| is_free(*port));
    let mut ports = [0; N];
    for port in &mut ports {
        *port = found.next()?;
    }
    Some(ports)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_different_and_nobody_listens_there() {
        let [one, other] = free().unwrap();
        assert_ne!(one, other);
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, one)).unwrap();
        assert!(!is_free(one));
    }
}
