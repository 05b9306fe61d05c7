//! The accept loop: a socket becomes a TLS connection, and a certificate an identity.
//!
//! Every connection is a task of one `JoinSet`. What is beyond the bounds is closed before anything
//! is done for it. When the broker stops, nothing new is accepted, and what is open has a bounded
//! time to end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::admission::Admission;
use crate::arrival::{Arrival, Door};
use crate::clock::Machine;
use crate::connection::{self, Leaving, Peer};
use crate::identity::{self, Identity};
use crate::limits::Limits;
use crate::metrics::{Because, Metrics, Word};
use crate::sparing::Sparing;
use crate::taking::Taking;
use crate::tls::Tls;
use sublet_process::lines::AUDIT;

/// After an error that concerns the listener and not one peer (no more file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the accept loop works with.
pub struct Server {
    tls: Arc<Tls>,
    admission: Arc<Admission>,
    limits: Limits,
    metrics: Arc<Metrics>,
    /// True when the broker stops.
    stopping: watch::Receiver<bool>,
    machine: Machine,
    /// Who was turned away lately.
    turned_away: Sparing<IpAddr>,
}

impl Server {
    /// With these certificates, turns and bounds, until the broker is `stopping`.
    pub fn new(
        tls: Arc<Tls>,
        admission: Arc<Admission>,
        limits: Limits,
        metrics: Arc<Metrics>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (machine, turned_away) = (Machine::new(), Sparing::default());
        Self { tls, admission, limits, metrics, stopping, machine, turned_away }
    }

    /// Serves until the broker stops.
    pub async fn run(self, listener: TcpListener, router: Router) -> io::Result<()> {
        let this = Arc::new(self);
        let mut stopping = this.stopping.clone();
        let connections = Arc::new(Semaphore::new(this.limits.connections));
        let door = Door::new(&this.limits);
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => break,
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    report(ended);
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            let Some((stream, address)) = usable(accepted).await else { continue };
            let Ok(place) = Arc::clone(&connections).try_acquire_owned() else {
                this.refused("full");
                continue;
            };
            let Some(arrival) = door.arrive(address.ip()) else {
                this.refused("address_full");
                continue;
            };
            let (this, router) = (Arc::clone(&this), router.clone());
            tasks.spawn(async move {
                // What only the handshake needs goes with it.
                let greeted = Box::pin(this.greet(stream, address, arrival)).await;
                if let Some((stream, peer)) = greeted {
                    this.metrics.connections.inc();
                    connection::serve(stream, Arc::new(peer), router, &this.limits).await;
                    this.metrics.connections.dec();
                }
                drop(place);
            });
        }
        drop(listener);
        drain(tasks, this.limits.drain).await;
        Ok(())
    }

    fn refused(&self, reason: &'static str) {
        let reason = Because { reason: Word(reason) };
        self.metrics.connections_refused.get_or_create(&reason).inc();
    }

    /// The handshake, and who it was made with.
    async fn greet(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        arrival: Arrival,
    ) -> Option<(Box<TlsStream<TcpStream>>, Peer)> {
        // Asked before the handshake, so that no change of authority is missed.
        let leaving =
            Leaving { stopping: self.stopping.clone(), authorities: self.tls.authorities() };
        let acceptor = TlsAcceptor::from(self.tls.config());
        let handshake = async {
            // Answers are small, and each is waited for.
            stream.set_nodelay(true)?;
            // Who says nothing takes no turn.
            stream.readable().await?;
            let turn = arrival.turn().await;
            let stream = acceptor.accept(stream).await;
            drop(turn);
            stream
        };
        match tokio::time::timeout(self.limits.handshake, handshake).await {
            Ok(Ok(stream)) => {
                let peer = self.recognize(&stream, address, leaving)?;
                // It is large, and moved about.
                Some((Box::new(stream), peer))
            }
            Ok(Err(error)) => {
                self.refused("handshake");
                self.not_shaken(address, &error);
                None
            }
            Err(_) => {
                self.refused("slow_handshake");
                None
            }
        }
    }

    /// Whose certificate is not believed was denied something; whoever speaks no TLS was not.
    fn not_shaken(&self, address: SocketAddr, error: &io::Error) {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        let is_denial = matches!(
            cause,
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
        );
        if !is_denial {
            tracing::debug!(%address, %error, "handshake failed");
            return;
        }
        let now = self.machine.read().monotonic;
        if let Some(left_out) = self.turned_away.line(address.ip(), now) {
            tracing::info!(target: AUDIT, %address, said = %error, left_out, "denied: certificate");
        }
    }

    fn recognize(
        &self,
        stream: &TlsStream<TcpStream>,
        address: SocketAddr,
        leaving: Leaving,
    ) -> Option<Peer> {
        let leaf = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let identity =
            leaf.map_or(Err(identity::Error::Unreadable), |leaf| Identity::of(leaf).map(Arc::new));
        // Whom nobody knows is told so in HTTP, as the Go broker does; there is no more it can do.
        let connected = match &identity {
            Ok(known) => self.admission.connect(&known.caller),
            Err(_) => self.admission.connect_unnamed(),
        };
        let Ok((share, seat)) = connected else {
            self.refused("cluster_full");
            let left_out = self.turned_away.line(address.ip(), self.machine.read().monotonic)?;
            let caller =
                identity.as_ref().map_or_else(|_| "nobody".into(), |i| i.caller.to_string());
            let said = "it has as many connections as it may have";
            tracing::info!(target: AUDIT, caller, %address, said, left_out, "denied: connection");
            return None;
        };
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let taking = is_h2.then(Taking::default);
        Some(Peer { address, identity, share, leaving, taking, _seat: seat })
    }
}

async fn usable(accepted: io::Result<(TcpStream, SocketAddr)>) -> Option<(TcpStream, SocketAddr)> {
    match accepted {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

/// Lets the connections end by themselves for so long, and then ends them.
async fn drain(mut tasks: JoinSet<()>, patience: Duration) {
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(patience, all).await.is_err() {
        tracing::warn!(left = tasks.len(), "connections did not end in time and are closed");
        tasks.shutdown().await;
    }
}
