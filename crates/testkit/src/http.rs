//! A blocking HTTP/1.1 client over TLS, one connection, one request at a time: enough for a test to
//! talk to an API server, from threads as well as from within any runtime.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::error::Error;
use crate::pki::{Pair, Pki};

/// How long a server may take to say something.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest body that is read: a list of some thousand pods has about ten MiB.
const BODY_BYTES_MAX: u64 = 256 << 20;
/// The longest line of a head.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// What is sent.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    pub(crate) path: &'a str,
    /// In which form it is to be answered.
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// A GET.
    pub(crate) const fn get(path: &'a str) -> Self {
        let json = "application/json";
        Self { method: "GET", path, accept: json, content_type: json, body: &[] }
    }
}

/// What came back.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Who one is, and whom one believes.
#[derive(Clone, Debug)]
pub(crate) struct Identity(Arc<ClientConfig>);

impl Identity {
    /// The administrator of a cluster.
    pub(crate) fn admin(pki: &Pki) -> Result<Self, Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::Certificate(error.to_string());
        let Pair { certificate, key } = &pki.admin;
        let read = |path| {
            let certificates = CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))?;
            certificates.collect::<Result<Vec<_>, _>>().map_err(|e| wrong(&e))
        };
        let mut roots = RootCertStore::empty();
        for root in read(&pki.ca.certificate)? {
            roots.add(root).map_err(|e| wrong(&e))?;
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(&e))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong(&e))?
            .with_root_certificates(roots)
            .with_client_auth_cert(read(certificate)?, key)
            .map_err(|e| wrong(&e))?;
        Ok(Self(Arc::new(config)))
    }
}

/// A connection to a server on loopback.
#[derive(Debug)]
pub(crate) struct Connection {
    port: u16,
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
}

impl Connection {
    /// Connects; TLS begins with the first request.
    pub(crate) fn open(port: u16, identity: &Identity) -> io::Result<Self> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let tls = ClientConnection::new(identity.0.clone(), name).map_err(io::Error::other)?;
        Ok(Self { port, stream: BufReader::new(StreamOwned::new(tls, socket)) })
    }

    /// Asks for something that goes on and on, and hands it over line by line until `see` has seen
    /// enough. The connection is of no use afterwards.
    pub(crate) fn follow(
        mut self,
        path: &str,
        see: &mut dyn FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        self.begin(path)?;
        read_lines(&mut self.stream, see)
    }

    /// Asks for something that goes on and on, without reading of it what [`Self::has_more`] tells of.
    pub(crate) fn begin(&mut self, path: &str) -> io::Result<()> {
        self.write(Request::get(path))?;
        let line = read_line(&mut self.stream)?;
        if line.split(' ').nth(1) != Some("200") {
            return Err(io::Error::other(line));
        }
        while !read_line(&mut self.stream)?.is_empty() {}
        Ok(())
    }

    /// Has anything come that nobody has read, be it the end? It does not wait.
    pub(crate) fn has_more(&mut self) -> bool {
        let StreamOwned { conn, sock } = self.stream.get_mut();
        let unread = conn.process_new_packets().map_or(1, |state| state.plaintext_bytes_to_read());
        let peek = |sock: &TcpStream| {
            sock.set_nonblocking(true)?;
            let peeked = sock.peek(&mut [0]);
            sock.set_nonblocking(false)?;
            peeked
        };
        let silent = peek(sock).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        !self.stream.buffer().is_empty() || unread > 0 || !silent
    }

    /// Sends a request and reads its answer. After an error the connection is of no use.
    pub(crate) fn send(&mut self, request: Request<'_>) -> io::Result<Response> {
        self.write(request)?;
        read_response(&mut self.stream)
    }

    fn write(&mut self, request: Request<'_>) -> io::Result<()> {
        let Request { method, path, accept, content_type, body } = request;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept: {accept}\r\n\
             Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(&[head.as_bytes(), body].concat())?;
        stream.flush()
    }
}

/// Hands over a chunked body line by line, as it comes, until `see` has seen enough.
fn read_lines(stream: &mut impl BufRead, see: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
    let mut held = Vec::new();
    loop {
        let length = u64::from_str_radix(&read_line(stream)?, 16);
        let length = length.map_err(|_| malformed("the length of a chunk"))?;
        read_exactly(stream, length, &mut held)?;
        read_line(stream)?;
        while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<_> = held.drain(..=end).collect();
            if !see(&line) {
                return Ok(());
            }
        }
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn read_response(stream: &mut impl BufRead) -> io::Result<Response> {
    let line = read_line(stream)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| malformed("a status line"))?;
    let mut length = None;
    loop {
        let line = read_line(stream)?;
        let Some((name, value)) = line.split_once(':') else { break };
        match (name.to_ascii_lowercase().as_str(), value.trim()) {
            ("content-length", value) => {
                length = Some(value.parse().map_err(|_| malformed("a length"))?);
            }
            ("transfer-encoding", "chunked") => return read_chunked(stream, status),
            _ => {}
        }
    }
    let mut body = Vec::new();
    read_exactly(stream, length.unwrap_or(0), &mut body)?;
    Ok(Response { status, body })
}

/// The rest of the head, then chunks until an empty one.
fn read_chunked(stream: &mut impl BufRead, status: u16) -> io::Result<Response> {
    while !read_line(stream)?.is_empty() {}
    let mut body = Vec::new();
    loop {
        let length = u64::from_str_radix(&read_line(stream)?, 16);
        let length = length.map_err(|_| malformed("the length of a chunk"))?;
        read_exactly(stream, length, &mut body)?;
        read_line(stream)?;
        if length == 0 {
            return Ok(Response { status, body });
        }
    }
}

fn read_exactly(stream: &mut impl Read, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if length + body.len() as u64 > BODY_BYTES_MAX {
        return Err(malformed("a body of sensible length"));
    }
    let read = stream.take(length).read_to_end(body)?;
    if read as u64 == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A line without its end.
fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.take(LINE_BYTES_MAX).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server did not send {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<(u16, String)> {
        let response = read_response(&mut text.as_bytes())?;
        Ok((response.status, String::from_utf8(response.body).unwrap()))
    }

    #[test]
    fn a_body_is_as_long_as_its_head_says() {
        let read = read("HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nabcde").unwrap();
        assert_eq!(read, (201, "abc".to_owned()));
    }

    #[test]
    fn chunks_are_put_together() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n\
                    3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(read(text).unwrap(), (200, "abc0123456789".to_owned()));
    }

    #[test]
    fn lines_are_handed_over_as_they_come_until_it_is_enough() {
        let text = "3\r\na\nb\r\n3\r\nc\nd\r\n2\r\n\ne\r\n";
        let mut seen = Vec::new();
        read_lines(&mut text.as_bytes(), &mut |line| {
            seen.push(String::from_utf8_lossy(line).trim_end().to_owned());
            seen.len() < 3
        })
        .unwrap();
        assert_eq!(seen, ["a", "bc", "d"]);
        assert!(read_lines(&mut text.as_bytes(), &mut |_| true).is_err());
    }

    #[test]
    fn half_an_answer_is_an_error() {
        assert!(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab").is_err());
        assert!(read("HTTP/1.1 200 OK\r\nContent-Le").is_err());
        assert!(read("").is_err());
        assert!(read("nonsense\r\n\r\n").is_err());
    }
}
