//! The ports: all of them are taken before anything else is begun.

use std::net::SocketAddr;

use serde::Serialize;
use tokio::net::TcpListener;

use crate::config::{Address, Config};
use crate::run::Error;

/// Where the broker is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// The API.
    pub http: SocketAddr,
    /// Probes.
    pub health: Option<SocketAddr>,
    /// Metrics.
    pub metrics: Option<SocketAddr>,
}

/// What is listened on.
pub(crate) struct Listeners {
    pub(crate) http: TcpListener,
    pub(crate) health: Option<TcpListener>,
    pub(crate) metrics: Option<TcpListener>,
    pub(crate) addresses: Addresses,
}

impl Listeners {
    pub(crate) async fn bind(config: &Config) -> Result<Self, Error> {
        let (http, http_at) = bind("http-port", config.http_address).await?;
        let (health, health_at) =
            bind_some("health-probe-bind-address", config.health_probe_address).await?;
        let (metrics, metrics_at) =
            bind_some("metrics-bind-address", config.metrics_address).await?;
        let addresses = Addresses { http: http_at, health: health_at, metrics: metrics_at };
        Ok(Self { http, health, metrics, addresses })
    }
}

async fn bind(flag: &'static str, address: Address) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Bind { flag, address, source };
    let listener = address.bind().await.map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    Ok((listener, at))
}

async fn bind_some(
    flag: &'static str,
    address: Option<Address>,
) -> Result<(Option<TcpListener>, Option<SocketAddr>), Error> {
    match address {
        Some(address) => bind(flag, address).await.map(|(l, at)| (Some(l), Some(at))),
        None => Ok((None, None)),
    }
}
