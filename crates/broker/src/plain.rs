//! A small server without TLS for what never leaves the machine or the cluster: probes, and metrics
//! where the operator wants them so.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::get;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::connection::Peer;
use crate::metrics::Metrics;
use crate::revoked::Shut;

/// Connections at the same time: a kubelet and a Prometheus need one each.
const CONNECTIONS_MAX: usize = 64;
/// For a request and its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// What Prometheus reads.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves until the broker stops.
pub async fn run(
    listener: TcpListener,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                drop::<Result<(), _>>(ended);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if tasks.len() < CONNECTIONS_MAX => {
                tasks.spawn(connection(stream, router.clone()));
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    tasks.shutdown().await;
    Ok(())
}

async fn connection(stream: TcpStream, router: Router) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(16 * 1024);
    // A probe that went away is its own affair.
    drop(builder.serve_connection(TokioIo::new(stream), service).await);
}

/// Whether the broker can do its work.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    /// From now on, or no longer.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    /// Can it?
    pub fn is(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// `/healthz`: the process is there. `/readyz`: the log is loaded, the engine runs, and the broker
/// is not about to end.
pub fn probes(ready: Ready) -> Router {
    let alive = || async { "ok" };
    let able = |State(ready): State<Ready>| async move {
        if ready.is() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready")
        }
    };
    Router::new()
        .route("/healthz", get(alive))
        .route("/healthz/healthz", get(alive))
        .route("/readyz", get(able))
        .route("/readyz/readyz", get(able))
        .with_state(ready)
}

/// `/metrics`.
pub fn metrics(metrics: Arc<Metrics>) -> Router {
    let page = |State(metrics): State<Arc<Metrics>>| async move {
        let mut response = Response::new(Body::from(metrics.page()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
        response
    };
    Router::new().route("/metrics", get(page)).with_state(metrics)
}

/// `/metrics`, but not for a certificate that was revoked.
pub fn secure_metrics(counts: Arc<Metrics>, revoked: Shut) -> Router {
    metrics(counts).layer(from_fn_with_state(revoked, unless_revoked))
}

async fn unless_revoked(
    State(revoked): State<Shut>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let peer = request.extensions().get::<Arc<Peer>>();
    let identity = peer.and_then(|peer| peer.identity.as_ref().ok());
    if identity.is_some_and(|identity| revoked.covers(identity)) {
        let mut response = Response::new(Body::from("this certificate was revoked\n"));
        *response.status_mut() = StatusCode::FORBIDDEN;
        return response;
    }
    next.run(request).await
}
