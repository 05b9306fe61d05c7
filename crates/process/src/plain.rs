//! A small server for what never leaves the machine or the cluster: probes, and metrics where the
//! operator wants them so; without TLS, or for those alone who show a certificate.
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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::tls::Tls;

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
    /// With these certificates; none means without TLS.
    pub tls: Option<Arc<Tls>>,
}

impl Plain {
    /// Serves these, within the usual bounds.
    pub fn new(pages: Pages) -> Self {
        Self { pages, connections: 64, patience: Duration::from_secs(10), tls: None }
    }

    /// Only over TLS, and only to those who show a certificate of the authority.
    #[must_use]
    pub fn secure(self, tls: Arc<Tls>) -> Self {
        Self { tls: Some(tls), ..self }
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
        // A probe that went away, or does not take its answer, is its own affair.
        drop(tokio::time::timeout(self.patience, self.answer(stream)).await);
    }

    async fn answer(&self, stream: TcpStream) {
        let Some(tls) = &self.tls else { return self.exchange(stream).await };
        let mut config = (*tls.config()).clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        match TlsAcceptor::from(Arc::new(config)).accept(stream).await {
            Ok(stream) => self.exchange(stream).await,
            Err(error) => tracing::debug!(%error, "a handshake was not finished"),
        }
    }

    /// One request and its answer.
    async fn exchange(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let service = service_fn(|request: Request<Incoming>| {
            let answer = (self.pages)(request.method(), request.uri().path());
            async move { Ok::<_, Infallible>(answer) }
        });
        let mut builder = http1::Builder::new();
        builder.keep_alive(false).max_buf_size(HEAD_BYTES_MAX);
        drop(builder.serve_connection(TokioIo::new(stream), service).await);
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

    /// An authority, and a folder with a certificate of it for a server.
    fn certified() -> (rcgen::Issuer<'static, rcgen::KeyPair>, String, tempfile::TempDir) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = rcgen::Issuer::new(params, key);
        let own = rcgen::KeyPair::generate().unwrap();
        let server = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let server = server.signed_by(&own, &issuer).unwrap().pem();
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("tls.crt", &server), ("tls.key", &own.serialize_pem()), ("ca.crt", &authority)]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        (issuer, authority, folder)
    }

    /// What a client gets over TLS that believes the authority, with or without a certificate of it.
    async fn ask_securely(
        at: SocketAddr,
        authority: &str,
        own: Option<&rcgen::Issuer<'static, rcgen::KeyPair>>,
    ) -> io::Result<String> {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => config.with_no_client_auth(),
            Some(issuer) => {
                let key = rcgen::KeyPair::generate().unwrap();
                let certificate = rcgen::CertificateParams::default().signed_by(&key, issuer);
                let chain = vec![certificate.unwrap().der().clone()];
                let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(at).await?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector.connect(name, stream).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn over_tls_only_those_are_answered_who_show_a_certificate_of_the_authority() {
        let (issuer, authority, folder) = certified();
        let now = sublet_core::time::Time::from_millis(0);
        let tls =
            Arc::new(Tls::open(crate::tls::Places::in_folder(folder.path()), 16, now).unwrap());
        let (at, mut tasks, stop) =
            serve(Plain::new(metrics(|| "x 1\n".to_owned())).secure(tls)).await;
        let answer = ask_securely(at, &authority, Some(&issuer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("x 1\n"), "{answer}");
        let refused = ask_securely(at, &authority, None).await;
        assert!(refused.is_err(), "{refused:?}");
        let plain = ask(at, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
        // At most a TLS alert.
        assert!(all(plain).await < 16);
        stop.send_replace(true);
        tasks.join_next().await.unwrap().unwrap();
    }
}
