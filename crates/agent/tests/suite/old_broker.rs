//! An old broker by script: it answers as the recordings of the Go program do, and knows no more
//! routes than that.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::ExtendedKeyUsagePurpose;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;

/// What it has to say, and what it was asked.
#[derive(Default)]
pub(crate) struct Script {
    /// What a provider is told; `null` is what Go writes for an empty list.
    pub(crate) instructions: Option<String>,
    /// Ours answers in its place, with this stream.
    pub(crate) stream: Option<&'static str>,
    /// What comes with the answer to an advertisement.
    pub(crate) piggy_back: Option<String>,
    /// Cuts the connection instead of answering a request for capacity.
    pub(crate) cuts: bool,
    /// Something stands in front of it that knows no path.
    pub(crate) hidden: bool,
    /// What the Go program answered when it was recorded, status, kind and body, by `METHOD path`: said word for
    /// word in the place of what is scripted.
    pub(crate) recorded: HashMap<String, (u16, String, String)>,
    /// The requests, as `METHOD path`.
    pub(crate) asked: Vec<String>,
}

pub(crate) struct OldBroker {
    pub(crate) authority: Authority,
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
    _tasks: JoinSet<()>,
}

/// A reservation as the Go broker has it.
pub(crate) fn reservation(id: &str, requester: &str, target: &str) -> String {
    format!(
        r#"{{"id":"{id}","requesterID":"{requester}","targetClusterID":"{target}","requestedResources":{{"cpu":"500m","memory":"256Mi"}},"status":{{"phase":"Reserved","message":"Resources locked in cluster {target}","reservedAt":"2026-11-15T22:11:17.66619509Z","expiresAt":"2099-11-15T23:11:17.66619509Z"}},"createdAt":"2026-11-15T22:11:17Z"}}"#
    )
}

impl OldBroker {
    pub(crate) async fn new() -> Self {
        let authority = Authority::new();
        let (certificate, key) = authority.issue("broker", ExtendedKeyUsagePurpose::ServerAuth);
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(Script::default()));
        let (mut tasks, shared) = (JoinSet::new(), Arc::clone(&script));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(acceptor.clone(), stream, Arc::clone(&shared)));
            }
        });
        Self { authority, address, script, _tasks: tasks }
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        change(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often this was asked.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.change(|script| script.asked.iter().filter(|asked| *asked == what).count())
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, script: Arc<Mutex<Script>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match stream.read_line(&mut line).await {
                Ok(length) if length > 0 => {}
                _ => return,
            }
            if line.trim_end().is_empty() {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let length = head.iter().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
        });
        let mut body = vec![0; length.unwrap_or(0)];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        let mut words = head[0].split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let path = path.split('?').next().unwrap();
        let answer = {
            let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
            let asked = format!("{method} {path}");
            let recorded = script.recorded.get(&asked).cloned();
            script.asked.push(asked);
            recorded.or_else(|| {
                let (status, kind, body) = answer(&script, method, path)?;
                Some((status, kind.to_owned(), body))
            })
        };
        let Some((status, kind, body)) = answer else { return };
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        if stream.write_all(text.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

fn answer(script: &Script, method: &str, path: &str) -> Option<(u16, &'static str, String)> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    const JSON: &str = "application/json";
    Some(match (method, path) {
        _ if script.hidden => (404, PLAIN, "404 page not found\n".to_owned()),
        ("GET", "/healthz") => (200, PLAIN, "ok".to_owned()),
        ("GET", "/api/v1/instructions") if script.stream.is_some() => {
            (200, "application/x-ndjson", script.stream.unwrap_or_default().to_owned())
        }
        ("GET", "/api/v1/instructions") => {
            let list = script.instructions.as_ref().map(|list| format!("[{list}]\n"));
            (200, JSON, list.unwrap_or_else(|| "null\n".to_owned()))
        }
        ("POST", "/api/v1/reservations") if script.cuts => return None,
        ("POST", "/api/v1/reservations") => {
            (201, JSON, format!("{}\n", reservation("rsv-rome-1794780677613", "rome", "milan")))
        }
        ("POST", "/api/v1/advertisements") => {
            let told = script.piggy_back.as_ref();
            let told = told.map(|told| format!(",\"providerInstructions\":[{told}]"));
            let has = r#"{"cpu":"8","memory":"16Gi"}"#;
            let resources = format!(
                r#"{{"capacity":{has},"allocatable":{has},"allocated":{has},"available":{has}}}"#
            );
            let word = format!(
                r#"{{"clusterID":"milan","clusterName":"n","resources":{resources},"timestamp":"2026-11-15T22:11:16Z"}}"#
            );
            (200, JSON, format!("{{\"advertisement\":{word}{}}}\n", told.unwrap_or_default()))
        }
        ("DELETE", "/api/v1/reservations") => (405, PLAIN, "Method Not Allowed\n".to_owned()),
        _ => (404, PLAIN, "404 page not found\n".to_owned()),
    })
}
