//! A certificate authority, a broker, and clients of it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SerialNumber,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use sublet_broker::Broker;
use sublet_broker::config::{Address, Config};
use sublet_broker::identity::OPERATORS;
use sublet_broker::limits::Limits;
use sublet_log::{Log, Memory};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A development authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// What a certificate is to say.
#[derive(Clone)]
pub(crate) struct Wish {
    pub(crate) names: Vec<(DnType, String)>,
    pub(crate) serial: Option<u64>,
    pub(crate) usage: ExtendedKeyUsagePurpose,
    /// The first day of its validity.
    pub(crate) from: (i32, u8, u8),
    /// The last one.
    pub(crate) until: (i32, u8, u8),
}

impl Wish {
    pub(crate) fn client(name: &str) -> Self {
        Self {
            names: vec![(DnType::CommonName, name.to_owned())],
            serial: None,
            usage: ExtendedKeyUsagePurpose::ClientAuth,
            from: (2020, 1, 1),
            until: (2099, 1, 1),
        }
    }

    pub(crate) fn operator(name: &str) -> Self {
        let mut wish = Self::client(name);
        wish.names.push((DnType::OrganizationName, OPERATORS.to_owned()));
        wish
    }

    pub(crate) fn server() -> Self {
        Self { usage: ExtendedKeyUsagePurpose::ServerAuth, ..Self::client("broker") }
    }
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn issue(&self, wish: &Wish) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in &wish.names {
            params.distinguished_name.push(kind.clone(), value.as_str());
        }
        params.serial_number = wish.serial.map(SerialNumber::from);
        params.extended_key_usages = vec![wish.usage.clone()];
        let day = |(year, month, day)| rcgen::date_time_ymd(year, month, day);
        (params.not_before, params.not_after) = (day(wish.from), day(wish.until));
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// Writes a folder as the broker wants it.
    pub(crate) fn write(&self, folder: &Path, server: &Pair) {
        fs::write(folder.join("tls.crt"), &server.certificate).unwrap();
        fs::write(folder.join("tls.key"), &server.key).unwrap();
        fs::write(folder.join("ca.crt"), &self.pem).unwrap();
    }
}

/// A broker in this process, on a log in memory.
pub(crate) struct Stage {
    pub(crate) authority: Authority,
    pub(crate) certificates: TempDir,
    pub(crate) broker: Broker,
}

pub(crate) fn quick() -> Limits {
    Limits { reload: Duration::from_millis(20), drain: Duration::from_secs(2), ..Limits::default() }
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(quick(), |_| {}).await
    }

    pub(crate) async fn with(limits: Limits, change: impl FnOnce(&mut Config)) -> Self {
        Self::on(Arc::new(Memory::default()), limits, change).await
    }

    /// On a log that may have been another broker's before.
    pub(crate) async fn on(
        log: Arc<dyn Log>,
        limits: Limits,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let (authority, certificates) = (Authority::new("first"), TempDir::new().unwrap());
        authority.write(certificates.path(), &authority.issue(&Wish::server()));
        let loopback = Address::new(Some([127, 0, 0, 1].into()), 0);
        let mut config = Config {
            data_dir: certificates.path().to_owned(),
            policy: None,
            http_address: loopback,
            http_cert_path: certificates.path().to_owned(),
            health_probe_address: Some(loopback),
            metrics_address: Some(loopback),
            metrics_cert_path: None,
            address_file: None,
            log_format: sublet_broker::config::Format::Text,
            log_level: sublet_broker::config::Level::Info,
            connections_max: limits.connections,
            cluster_connections_max: limits.connections_per_cluster,
            cluster_rate_max: limits.rate_per_cluster,
            snapshot_records: 10_000,
            log_history: sublet_core::time::Span::from_secs(3600),
            log_history_size: 1 << 30,
            without_effect: Vec::new(),
        };
        change(&mut config);
        let broker = Broker::start(&config, limits, log).await.unwrap();
        Self { authority, certificates, broker }
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.broker.addresses().http
    }

    pub(crate) async fn client(&self, name: &str) -> Client {
        self.client_with(&Wish::client(name)).await.unwrap()
    }

    pub(crate) async fn operator(&self) -> Client {
        self.client_with(&Wish::operator("ada")).await.unwrap()
    }

    pub(crate) async fn client_with(&self, wish: &Wish) -> Result<Client> {
        let pair = self.authority.issue(wish);
        Client::connect(self.http(), &self.authority.pem, Some(&pair)).await
    }

    /// A page of the port without TLS.
    pub(crate) async fn plain(&self, address: Option<SocketAddr>, path: &str) -> Answer {
        let stream = TcpStream::connect(address.unwrap()).await.unwrap();
        let mut client = Client::over(stream).await.unwrap();
        client.send("GET", path, None).await.unwrap()
    }

    pub(crate) async fn end(self) {
        self.broker.stop().await.unwrap();
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn code(&self) -> &str {
        self.header("x-sublet-code")
    }
}

/// One connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    pub(crate) headers: Vec<(&'static str, String)>,
    // Ends with the client.
    _connection: JoinSet<()>,
}

pub(crate) fn tls(authority: &str, pair: Option<&Pair>) -> ClientConfig {
    tls_of(rustls::DEFAULT_VERSIONS, authority, pair)
}

/// That speaks only these versions of TLS.
pub(crate) fn tls_of(
    versions: &[&'static SupportedProtocolVersion],
    authority: &str,
    pair: Option<&Pair>,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    match pair {
        None => config.with_no_client_auth(),
        Some(pair) => {
            let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

impl Client {
    pub(crate) async fn connect(
        address: SocketAddr,
        authority: &str,
        pair: Option<&Pair>,
    ) -> Result<Self> {
        Self::connect_as(address, Arc::new(tls(authority, pair))).await
    }

    pub(crate) async fn connect_as(address: SocketAddr, tls: Arc<ClientConfig>) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        Self::over(TlsConnector::from(tls).connect(name, stream).await?).await
    }

    async fn over<S>(stream: S) -> Result<Self>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        Ok(Self { sender, headers: Vec::new(), _connection: tasks })
    }

    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<Answer> {
        self.send_bytes(method, path, body.unwrap_or_default().as_bytes()).await
    }

    pub(crate) async fn send_bytes(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Answer> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let body = Bytes::copy_from_slice(body);
        self.sender.ready().await.context("the connection is closed")?;
        let response = self.sender.send_request(request.body(Full::new(body))?).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        let body = String::from_utf8(body.to_vec())?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// Opens a stream of lines.
    pub(crate) async fn open(&mut self, path: &str) -> Lines {
        let request = Request::builder().uri(path).header("host", "localhost");
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let response = self.sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        Lines { status, body: response.into_body(), rest: Vec::new() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, None).await.unwrap()
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Answer {
        self.send("POST", path, Some(body)).await.unwrap()
    }

    /// Advertises so many cores, all of them free.
    pub(crate) async fn advertise(&mut self, cluster: &str, cores: u32) -> Answer {
        let answer = self.post("/api/v1/advertisements", &advertisement(cluster, cores)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    }
}

/// A stream that is open.
pub(crate) struct Lines {
    pub(crate) status: u16,
    body: hyper::body::Incoming,
    rest: Vec<u8>,
}

impl Lines {
    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let patience = Duration::from_secs(20);
            let frame = tokio::time::timeout(patience, self.body.frame()).await;
            match frame.expect("a line should have come") {
                Some(Ok(frame)) => self.rest.extend_from_slice(frame.data_ref().unwrap()),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The next line that is more than a sign of life.
    pub(crate) async fn news(&mut self) -> Option<Value> {
        loop {
            match self.next().await {
                Some(line) if line["type"] == "BOOKMARK" => {}
                line => return line,
            }
        }
    }
}

pub(crate) fn advertisement(cluster: &str, cores: u32) -> String {
    let has = format!(r#"{{"cpu":"{cores}","memory":"64Gi"}}"#);
    format!(
        r#"{{"clusterID":"{cluster}","clusterName":"n","resources":{{"capacity":{has},
        "allocatable":{has},"allocated":{{"cpu":"0","memory":"0"}},"available":{has}}},
        "timestamp":"2026-11-15T22:11:16Z"}}"#
    )
}

/// A connection of `c1` that speaks HTTP/2.
pub(crate) async fn h2(stage: &Stage) -> TlsStream<TcpStream> {
    h2_at(stage, stage.http()).await
}

/// The same at another port.
pub(crate) async fn h2_at(stage: &Stage, address: SocketAddr) -> TlsStream<TcpStream> {
    let pair = stage.authority.issue(&Wish::client("c1"));
    let mut config = tls(&stage.authority.pem, Some(&pair));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
}

/// A connection on which bytes can be sent as one likes.
pub(crate) async fn raw(stage: &Stage) -> TlsStream<TcpStream> {
    let pair = stage.authority.issue(&Wish::client("slow"));
    let config = Arc::new(tls(&stage.authority.pem, Some(&pair)));
    let stream = TcpStream::connect(stage.http()).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(config).connect(name, stream).await.unwrap()
}

/// Waits for a condition, and says which one did not come.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is_true: impl FnMut() -> F) {
    let patience = tokio::time::timeout(Duration::from_secs(20), async {
        while !is_true().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(patience.await.is_ok(), "never came: {what}");
}
