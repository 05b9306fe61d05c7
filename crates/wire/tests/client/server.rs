//! A server that speaks just enough HTTP/1.1, and does with each request what a test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::authority::Authority;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// The certificate that the client showed.
    pub(crate) certificate: Vec<u8>,
}

impl Seen {
    pub(crate) fn key(&self) -> Option<&str> {
        self.headers.get("idempotency-key").map(String::as_str)
    }
}

/// What to do with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Status, further header lines, body.
    Answer(u16, &'static str, String),
    /// Close the connection without a word.
    Cut,
    /// Say nothing and keep it open.
    Hang,
    /// Send this as the beginning of a stream, then close in the middle of it.
    StreamAndCut(String),
    /// Send this as the beginning of a stream, then say nothing more.
    StreamAndHang(String),
}

/// JSON with this status.
pub(crate) fn json(status: u16, body: &str) -> Reply {
    Reply::Answer(status, "content-type: application/json\r\n", body.to_owned())
}

type Handler = Arc<dyn Fn(usize, &Seen) -> Reply + Send + Sync>;

/// A running server; it ends when it is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Ends its tasks when it is dropped.
    _running: JoinSet<()>,
}

impl Server {
    /// Asks `handler` what to do with each request; the first argument counts them from 0.
    pub(crate) async fn start(
        authority: &Authority,
        handler: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("bound"));
        let seen = Arc::default();
        let acceptor = TlsAcceptor::from(authority.server("http/1.1"));
        let served = accept(listener, acceptor, Arc::new(handler), Arc::clone(&seen));
        let mut running = JoinSet::new();
        running.spawn(served);
        Self { url, seen, _running: running }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no test panics in it").clone()
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handler: Handler,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, handler, seen) = (acceptor.clone(), handler.clone(), seen.clone());
        connections.spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, &handler, &seen).await;
            }
        });
    }
}

async fn serve(stream: TlsStream<TcpStream>, handler: &Handler, seen: &Mutex<Vec<Seen>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let count = {
            let mut seen = seen.lock().expect("no test panics in it");
            seen.push(request.clone());
            seen.len() - 1
        };
        let (text, goes_on) = match handler(count, &request) {
            Reply::Answer(status, headers, body) => {
                let length = body.len();
                let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}");
                (format!("{head}\r\n\r\n{body}"), true)
            }
            Reply::Cut => return,
            Reply::Hang => (String::new(), false),
            Reply::StreamAndCut(text) => {
                // Whole bytes arrive, but the body never ends as it should.
                drop(stream.write_all(streamed(&text).as_bytes()).await);
                drop(stream.flush().await);
                return;
            }
            Reply::StreamAndHang(text) => (streamed(&text), false),
        };
        drop(stream.write_all(text.as_bytes()).await);
        drop(stream.flush().await);
        if !goes_on {
            std::future::pending::<()>().await;
        }
    }
}

fn streamed(text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n",
        text.len()
    )
}

async fn read(stream: &mut BufReader<TlsStream<TcpStream>>) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|length| *length > 0)?;
    let mut parts = line.split(' ').map(str::to_owned);
    let (method, path) = (parts.next()?, parts.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let shown = stream.get_ref().get_ref().1.peer_certificates();
    let certificate = shown?.first()?.to_vec();
    Some(Seen { method, path, headers, body: String::from_utf8(body).ok()?, certificate })
}
