//! HTTP/1.1 over mTLS, as much of it as the load generator needs and no more: generator and server
//! share the machine's cores, and what a client of ours does for comfort would be measured with them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::ground::Authority;
use crate::requests::name;

/// More than the head of any answer, and more than most answers.
const BUFFER_BYTES: usize = 4096;

/// Whom to connect to, and with whose certificates.
pub(crate) struct Door {
    address: SocketAddr,
    authority: Authority,
    roots: Arc<RootCertStore>,
}

impl Door {
    pub(crate) fn new(address: SocketAddr, folder: &Path) -> Result<Self> {
        let authority = Authority::open(folder)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.root.clone())?;
        Ok(Self { address, authority, roots: Arc::new(roots) })
    }

    /// Connects as a cluster.
    pub(crate) async fn enter(&self, cluster: u64) -> Result<Connection> {
        let (certificate, key) = self.authority.issue(&name(cluster))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(Arc::clone(&self.roots))
            .with_client_auth_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(ServerName::try_from("localhost")?, stream).await?;
        Ok(Connection { stream, buffer: vec![0; BUFFER_BYTES], filled: 0, read: 0 })
    }
}

/// One connection; one request at a time.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    filled: usize,
    /// What was handed out of that.
    read: usize,
}

/// An answer whose body is in the connection's buffer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    length: usize,
}

impl Connection {
    /// Sends a request and waits for the whole of a good answer; its body.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<&[u8]> {
        let Answer { status, length } = self.ask(request).await?;
        while self.filled < self.read + length {
            self.more().await?;
        }
        let body = &self.buffer[self.read..self.read + length];
        ensure!((200..300).contains(&status), "{status}: {}", String::from_utf8_lossy(body));
        Ok(body)
    }

    /// Sends a request and reads the head of the answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        (self.filled, self.read) = (0, 0);
        loop {
            self.more().await?;
            if let Some(end) = find(&self.buffer[..self.filled], b"\r\n\r\n") {
                self.read = end + 4;
                return head(&self.buffer[..end]);
            }
        }
    }

    /// The next line of a stream; what frames it is passed over.
    pub(crate) async fn line(&mut self) -> Result<&[u8]> {
        loop {
            let left = &self.buffer[self.read..self.filled];
            if let Some(length) = left.iter().position(|byte| *byte == b'\n') {
                let (from, to) = (self.read, self.read + length);
                self.read = to + 1;
                if self.buffer[from] == b'{' {
                    return Ok(&self.buffer[from..to]);
                }
                continue;
            }
            self.buffer.copy_within(self.read..self.filled, 0);
            (self.filled, self.read) = (self.filled - self.read, 0);
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.filled * 2, 0);
        }
        let read = self.stream.read(&mut self.buffer[self.filled..]).await?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        self.filled += read;
        Ok(())
    }
}

const LENGTH: &[u8] = b"content-length: ";

/// Status and length from the head of an answer, as hyper writes it: in small letters.
fn head(head: &[u8]) -> Result<Answer> {
    let digits = |from: usize| {
        let digits = head[from..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
    };
    let status = u16::try_from(digits(b"HTTP/1.1 ".len())).context("a status")?;
    let length = find(head, LENGTH).map_or(0, |at| digits(at + LENGTH.len()));
    Ok(Answer { status, length })
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
