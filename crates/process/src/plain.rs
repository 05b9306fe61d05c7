//! A small server without TLS for what never leaves the machine or the cluster: probes, and metrics
//! where the operator wants them so.
//!
//! Nobody can hold it. A connection is for one request and ends after a while, whether the peer
//! does not ask or does not take the answer; and when all places are taken, the oldest goes, so that
//! a probe is answered beside any number of those.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// After an error that concerns the listener and not one peer (no more file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// More than the head of any probe.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// An answer in one piece.
pub type Answer = Response<Full<Bytes>>;

/// What is answered to a method and a path.
pub type Pages = Arc<dyn Fn(&Method, &str) -> Answer + Send + Sync>;

/// What is served, and to how many for how long.
#[derive(Clone)]
pub struct Plain {
    /// What is served.
    pub pages: Pages,
    /// Connections at the same time; a kubelet and a Prometheus need one each.
    pub connections: usize,
    /// For a request and for taking its answer, together.
    pub patience: Duration,
}

impl Plain {
    /// Serves these, within the usual bounds.
    pub fn new(pages: Pages) -> Self {
        Self { pages, connections: 64, patience: Duration::from_secs(10) }
    }

    /// Serves until the process stops.
    pub async fn run(self, listener: TcpListener, mut stopping: watch::Receiver<bool>) {
        let (mut tasks, mut open) = (JoinSet::new(), VecDeque::<AbortHandle>::new());
        loop {
            let accepted = tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => break,
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    // One that had to go has ended as it should.
                    drop::<Result<(), _>>(ended);
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    open.retain(|task| !task.is_finished());
                    if open.len() >= self.connections {
                        open.pop_front().inspect(AbortHandle::abort);
                    }
                    open.push_back(tasks.spawn(self.clone().connection(stream)));
                }
                Err(error) => pause_after(&error).await,
            }
        }
        tasks.shutdown().await;
    }

    async fn connection(self, stream: TcpStream) {
        let pages = self.pages;
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = pages(request.method(), request.uri().path());
            async move { Ok::<_, Infallible>(answer) }
        });
        let mut builder = http1::Builder::new();
        builder.keep_alive(false).max_buf_size(HEAD_BYTES_MAX);
        let served = builder.serve_connection(TokioIo::new(stream), service);
        // A probe that went away, or does not take its answer, is its own affair.
        drop(tokio::time::timeout(self.patience, served).await);
    }
}

async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::pages::{Ready, metrics, probes};

    const PROBE: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

    async fn serve(plain: Plain) -> (SocketAddr, JoinSet<()>, watch::Sender<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, (stop, stopping)) = (listener.local_addr().unwrap(), watch::channel(false));
        let mut tasks = JoinSet::new();
        tasks.spawn(plain.run(listener, stopping));
        (at, tasks, stop)
    }

    async fn ask(at: SocketAddr, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream
    }

    /// All that comes until the server closes; fails when it does not.
    async fn all(mut stream: TcpStream) -> usize {
        let mut read = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut read));
        // Closed in the middle is closed.
        drop(end.await.expect("the server should have closed"));
        read.len()
    }

    #[tokio::test]
    async fn a_probe_is_answered_beside_any_number_of_peers_that_do_not_ask() {
        let probes = Plain { connections: 3, ..Plain::new(probes(Ready::default())) };
        let (at, mut tasks, stop) = serve(probes).await;
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(ask(at, b"GET /healthz HTTP/1.1\r\n").await);
        }
        let mut answer = String::new();
        ask(at, PROBE).await.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
        stop.send_replace(true);
        tasks.join_next().await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_is_not_kept() {
        const SIZE: usize = 64 << 20;
        let page = || "x".repeat(SIZE);
        let patience = Duration::from_millis(200);
        let metrics = Plain { patience, ..Plain::new(metrics(page)) };
        let (at, mut tasks, stop) = serve(metrics).await;
        let reader = ask(at, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        // Long enough that the server has given up; what it had sent until then can still be read.
        tokio::time::sleep(patience * 5).await;
        let got = all(reader).await;
        assert!(got < SIZE, "{got}");
        let mute = ask(at, b"").await;
        assert_eq!(all(mute).await, 0);
        stop.send_replace(true);
        tasks.join_next().await.unwrap().unwrap();
    }
}
