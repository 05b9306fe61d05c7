//! The connections, with the credentials of now: files that were renewed are used for whatever is
//! connected from then on. Agents run for longer than their certificates are good.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;

use super::{Credentials, CredentialsError, Options};

/// How long an idle connection is kept, and how often one that carries streams is checked.
const IDLE: Duration = Duration::from_mins(1);
const PING_EVERY: Duration = Duration::from_secs(20);
/// How often the files are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Connections that share their credentials.
pub(super) type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The connections of now.
pub(super) struct Pools {
    connect_timeout: Duration,
    current: Mutex<Current>,
}

struct Current {
    pool: Pool,
    credentials: Credentials,
    looked_at: Instant,
}

impl Pools {
    pub(super) fn new(options: &Options) -> Result<Self, CredentialsError> {
        let credentials = options.credentials.clone();
        let pool = build(&credentials, options.connect_timeout)?;
        let looked_at = Instant::now();
        let current = Mutex::new(Current { pool, credentials, looked_at });
        Ok(Self { connect_timeout: options.connect_timeout, current })
    }

    /// Where the next request goes. When the files have changed and can be used, it goes to a new
    /// connection; what is open on old ones is finished there. Files that cannot be used, as while
    /// they are being written, change nothing.
    pub(super) fn pool(&self) -> Pool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.looked_at.elapsed() >= LOOK_EVERY {
            current.looked_at = Instant::now();
            if let Some(renewed) = current.credentials.renewed()
                && let Ok(pool) = build(&renewed, self.connect_timeout)
            {
                (current.pool, current.credentials) = (pool, renewed);
            }
        }
        current.pool.clone()
    }
}

fn build(credentials: &Credentials, connect_timeout: Duration) -> Result<Pool, CredentialsError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(connect_timeout));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(credentials.config()?)
        .https_only()
        .enable_all_versions()
        .wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http2_keep_alive_interval(PING_EVERY)
        .build(connector))
}
