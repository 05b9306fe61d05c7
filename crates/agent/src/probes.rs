//! A small server without TLS for what never leaves the machine or the cluster: probes and metrics.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::metrics::Metrics;

/// Connections at the same time: a kubelet and a Prometheus need one each.
const CONNECTIONS_MAX: usize = 16;
/// For a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// What Prometheus reads.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the agent can do its work: everything was listed once, or another agent works.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    /// From now on, or no longer.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    fn is(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What is served.
#[derive(Clone)]
pub enum Page {
    /// `/healthz`: the process is there. `/readyz`: see [`Ready`].
    Probes(Ready),
    /// `/metrics`.
    Metrics(Arc<Metrics>),
}

impl Page {
    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let get = method == Method::GET || method == Method::HEAD;
        match (self, path) {
            _ if !get => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET"),
            (Self::Probes(_), "/healthz" | "/healthz/healthz") => plain(StatusCode::OK, "ok"),
            (Self::Probes(ready), "/readyz" | "/readyz/readyz") if ready.is() => {
                plain(StatusCode::OK, "ok")
            }
            (Self::Probes(_), "/readyz" | "/readyz/readyz") => {
                plain(StatusCode::SERVICE_UNAVAILABLE, "not ready")
            }
            (Self::Metrics(metrics), "/metrics") => {
                let mut response = Response::new(Full::from(metrics.page()));
                let kind = HeaderValue::from_static(METRICS_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            _ => plain(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

/// Serves until the agent stops.
pub async fn run(listener: TcpListener, page: Page, mut stopping: watch::Receiver<bool>) {
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
                tasks.spawn(connection(stream, page.clone()));
            }
            Ok(_) => {}
            Err(error) => pause_after(&error).await,
        }
    }
    tasks.shutdown().await;
}

/// Too many open files, mostly: waiting helps, and nothing else does.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn connection(stream: TcpStream, page: Page) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = page.answer(request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(16 * 1024);
    // A probe that went away is its own affair.
    drop(builder.serve_connection(TokioIo::new(stream), service).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_alive_before_it_is_ready() {
        let ready = Ready::default();
        let page = Page::Probes(ready.clone());
        let status = |path: &str| page.answer(&Method::GET, path).status().as_u16();
        assert_eq!((status("/healthz"), status("/readyz"), status("/metrics")), (200, 503, 404));
        ready.set(true);
        assert_eq!(status("/readyz"), 200);
        assert_eq!(page.answer(&Method::POST, "/readyz").status().as_u16(), 405);
    }

    #[test]
    fn the_metrics_have_a_page_of_their_own() {
        let metrics = Arc::new(Metrics::new());
        metrics.published(true, Duration::from_millis(3));
        assert!(metrics.page().contains("sublet_agent_published_total{result=\"ok\"} 1"));
        let page = Page::Metrics(metrics);
        assert_eq!(page.answer(&Method::GET, "/metrics").status().as_u16(), 200);
    }
}
