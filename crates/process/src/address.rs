//! Addresses as Go writes them: `:8081` is every address, `0` is nowhere.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use serde::Serialize;
use tokio::net::TcpListener;

/// Why a text is not an address.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a name nor a number.
    #[error(
        "{0:?} is not an address: write for example :8081, 127.0.0.1:8081, localhost:8081 or \
         [::1]:8081, or 0 for off"
    )]
    Text(String),
    /// A name of nothing.
    #[error("no address is known of {name:?}")]
    Name {
        /// Which.
        name: String,
        /// Why.
        source: io::Error,
    },
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// One address; none means all.
    pub ip: Option<IpAddr>,
    /// The port; 0 takes a free one.
    pub port: u16,
}

impl Address {
    /// One address, or all.
    pub fn new(ip: Option<IpAddr>, port: u16) -> Self {
        Self { ip, port }
    }

    /// Reads an address; `0` and nothing are none. Of the addresses of a name one is taken, an IPv4
    /// one where there is one, as Go does.
    pub fn parse(text: &str) -> Result<Option<Self>, Error> {
        if text.is_empty() || text == "0" {
            return Ok(None);
        }
        let refuse = || Error::Text(text.chars().take(64).collect());
        if let Some(port) = text.strip_prefix(':') {
            return port.parse().map(|port| Some(Self::new(None, port))).map_err(|_| refuse());
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Some(Self::new(Some(address.ip()), address.port())));
        }
        let (name, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let port = port.parse().map_err(|_| refuse())?;
        if !is_name(name) {
            return Err(refuse());
        }
        let unknown = |source| Error::Name { name: name.to_owned(), source };
        let found: Vec<_> = (name, port).to_socket_addrs().map_err(unknown)?.collect();
        let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
        let first = first.ok_or_else(|| unknown(io::ErrorKind::NotFound.into()))?;
        Ok(Some(Self::new(Some(first.ip()), port)))
    }

    /// Listens there.
    pub async fn bind(self) -> io::Result<TcpListener> {
        match self.ip {
            Some(ip) => TcpListener::bind((ip, self.port)).await,
            // The first takes both kinds of address, where there are both.
            None => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, self.port)).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.port)).await
                }
                bound => bound,
            },
        }
    }
}

/// Can it be the name of a machine? What cannot is not asked for.
fn is_name(text: &str) -> bool {
    let fits = |label: &str| {
        let bytes = label.bytes();
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && bytes.into_iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.len() <= 253 && !is_number && text.trim_end_matches('.').split('.').all(fits)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip {
            Some(ip) => SocketAddr::new(ip, self.port).fmt(f),
            None => write!(f, ":{}", self.port),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let read = |text| Address::parse(text).unwrap();
        assert_eq!(read("0"), None);
        assert_eq!(read(":8081"), Some(Address::new(None, 8081)));
        let loopback = Address::new(Some([127, 0, 0, 1].into()), 1);
        assert_eq!(read("127.0.0.1:1"), Some(loopback));
        assert_eq!(read("localhost:1"), Some(loopback));
        assert_eq!(read("[::1]:5").unwrap().to_string(), "[::1]:5");
        for bad in ["8081", ":x", ":65536", "host", "a host:1", "x:", "1.2.3.4", "1.2.3:4", "::1:5"]
        {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
