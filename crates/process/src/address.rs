//! Addresses as Go writes them: `:8081` is every address, `0` is nowhere.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;
use tokio::net::TcpListener;

/// Why a text is not an address.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not an address: write for example :8081, 127.0.0.1:8081 or [::1]:8081, or 0 for off"
)]
pub struct Error(String);

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

    /// Reads an address; `0` and nothing are none.
    pub fn parse(text: &str) -> Result<Option<Self>, Error> {
        if text.is_empty() || text == "0" {
            return Ok(None);
        }
        let refuse = || Error(text.chars().take(64).collect());
        if let Some(port) = text.strip_prefix(':') {
            return port.parse().map(|port| Some(Self::new(None, port))).map_err(|_| refuse());
        }
        let text = text.replace("localhost:", "127.0.0.1:");
        let address: SocketAddr = text.parse().map_err(|_| refuse())?;
        Ok(Some(Self::new(Some(address.ip()), address.port())))
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
        for bad in ["8081", ":x", ":65536", "host:1", "1.2.3.4"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
