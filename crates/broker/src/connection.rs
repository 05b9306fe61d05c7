//! HTTP on one connection, from the handshake to the last answer.
//!
//! The protocol is the one that TLS negotiated, not what the first bytes look like. Every HTTP/2
//! request is a task of its connection, and ends with it. When the broker stops, or when the
//! authority that let the peer in was replaced, the connection finishes what is open, takes nothing
//! new, and closes.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::admission::{Seat, Share};
use crate::guard::{Guard, InWork};
use crate::identity::{self, Identity};
use crate::limits::Limits;
use crate::taking::Taking;

/// How often a quiet HTTP/2 connection is asked whether it lives, and how long it may take to say.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_ANSWER: Duration = Duration::from_secs(20);
/// As many headers of one request as hyper has room for without asking for memory.
const HEADERS_FREE: usize = 100;
/// What one HTTP/2 request keeps of an answer that is not taken yet.
const SEND_BYTES_MAX: usize = 256 * 1024;

/// When a connection is to be left.
#[derive(Clone)]
pub struct Leaving {
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) authorities: watch::Receiver<u64>,
}

impl Leaving {
    /// Waits until the broker stops or the authority that let the peer in was replaced.
    pub async fn wait(mut self) {
        tokio::select! {
            // Either sender is gone only when the broker is.
            _ = self.stopping.wait_for(|stopping| *stopping) => {}
            _ = self.authorities.changed() => {}
        }
    }
}

/// What is known of a peer for as long as its connection lasts.
pub struct Peer {
    /// Where it is.
    pub address: SocketAddr,
    /// Who it is, or why its certificate names nobody.
    pub identity: Result<Arc<Identity>, identity::Error>,
    /// What it has of the broker.
    pub share: Arc<Share>,
    /// When it is to be left.
    pub leaving: Leaving,
    /// The answers that it has not taken yet, on HTTP/2; what is written to an HTTP/1 connection is
    /// watched as a whole.
    pub taking: Option<Taking>,
    pub(crate) _seat: Seat,
}

/// Answers the requests of one peer until it goes, or is left.
pub(crate) async fn serve(
    stream: Box<TlsStream<TcpStream>>,
    peer: Arc<Peer>,
    router: Router,
    limits: &Limits,
) {
    let is_h2 = peer.taking.is_some();
    let taking = peer.taking.clone();
    let (in_work, leaving) = (InWork::default(), peer.leaving.clone());
    let (quiet, tasks) = (in_work.clone(), Tasks::new(in_work.clone()));
    let head = (!is_h2).then_some(limits.head);
    let stream = TokioIo::new(Guard::new(stream, in_work.clone(), head, limits.write));
    let address = peer.address;
    let service = service_fn(move |request| {
        let (peer, begun) = (Arc::clone(&peer), in_work.begin());
        let answer = answer(router.clone(), peer, request);
        async move {
            let response = answer.await;
            drop(begun);
            response
        }
    });
    let result = if is_h2 {
        let leave = async {
            tokio::select! {
                () = leaving.wait() => {}
                () = quiet.quiet(limits.head, limits.idle) => {}
            }
        };
        // On the heap: it is large, and most connections wait for years in the other branch.
        let mut connection = Box::pin(h2(limits, tasks).serve_connection(stream, service));
        tokio::select! {
            result = until_left(connection.as_mut(), leave, limits.drain) => result,
            () = stalled(taking, limits.write) => {
                tracing::debug!(%address, "its answers are not taken");
                Ok(())
            }
        }
    } else {
        let connection = pin!(h1(limits).serve_connection(stream, service));
        until_left(connection, leaving.wait(), limits.drain).await
    };
    if let Err(error) = result {
        // A peer that went away is its own affair.
        tracing::debug!(%address, %error, "connection ended");
    }
}

async fn stalled(taking: Option<Taking>, patience: Duration) {
    match taking {
        Some(taking) => taking.stalled(patience).await,
        None => std::future::pending().await,
    }
}

async fn answer(
    router: Router,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(peer);
    router.oneshot(request).await
}

fn h1(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Runs from the end of the last answer; `Guard` bounds the headers themselves.
        .header_read_timeout(limits.idle)
        // More than is let through: what is beyond by less gets an answer that says so.
        .max_headers((limits.headers * 2).min(HEADERS_FREE))
        .max_buf_size(limits.head_bytes * 2);
    builder
}

fn h2(limits: &Limits, tasks: Tasks) -> http2::Builder<Tasks> {
    let mut builder = http2::Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_ANSWER)
        .max_concurrent_streams(limits.streams_per_connection)
        .max_header_list_size(u32::try_from(limits.head_bytes * 2).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BYTES_MAX);
    builder
}

/// Asks the peer to leave when it is time, and ends the connection when it takes too long: a peer of
/// HTTP/2 that never says that it has understood would go on being answered.
async fn until_left<C: GracefulConnection>(
    mut connection: Pin<&mut C>,
    leave: impl Future<Output = ()>,
    patience: Duration,
) -> Result<(), C::Error> {
    tokio::select! {
        result = connection.as_mut() => return result,
        () = leave => connection.as_mut().graceful_shutdown(),
    }
    tokio::time::timeout(patience, connection).await.unwrap_or(Ok(()))
}

/// The requests of one HTTP/2 connection: they end when it does, and each is in work until its answer
/// was handed to the connection, a stream for as long as it is open.
#[derive(Clone)]
struct Tasks {
    running: Arc<Mutex<JoinSet<()>>>,
    in_work: InWork,
}

impl Tasks {
    fn new(in_work: InWork) -> Self {
        Self { running: Arc::default(), in_work }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, request: F) {
        let begun = self.in_work.begin();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Their answers went to the peer already; only the places are to be freed.
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            request.await;
            drop(begun);
        });
    }
}
