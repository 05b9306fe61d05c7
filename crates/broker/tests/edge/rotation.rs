//! Certificates and authorities replaced under load, as a kubelet replaces a Secret: nobody fails but
//! those whose certificate is no longer worth anything, and nothing is done twice.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, version};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::stage::{Authority, Client, Pair, Stage, Wish, quick, tls, tls_of, until};

const CLIENTS: usize = 4;
const ASK: &str = r#"{"requestedResources":{"cpu":"1m","memory":"1Mi"}}"#;

/// Files that lead through `..data` to the folder of one version.
struct Secret(TempDir);

impl Secret {
    fn new(authorities: &str, server: &Pair) -> Self {
        let secret = Self(TempDir::new().unwrap());
        secret.replace(authorities, server);
        for file in ["tls.crt", "tls.key", "ca.crt"] {
            symlink(format!("..data/{file}"), secret.path().join(file)).unwrap();
        }
        secret
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A new folder beside the old one, and one rename.
    fn replace(&self, authorities: &str, server: &Pair) {
        let version = (1..).map(|n| format!("..v{n}"));
        let version = version.into_iter().find(|name| !self.path().join(name).exists()).unwrap();
        let folder = self.path().join(&version);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("ca.crt"), authorities).unwrap();
        fs::write(folder.join("tls.crt"), &server.certificate).unwrap();
        fs::write(folder.join("tls.key"), &server.key).unwrap();
        symlink(&version, self.path().join("..new")).unwrap();
        fs::rename(self.path().join("..new"), self.path().join("..data")).unwrap();
    }
}

/// What a group of clients has seen.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    served: AtomicUsize,
    /// Connections that the broker closed between two requests.
    closed: AtomicUsize,
}

impl Load {
    async fn goes_on(&self, what: &str) {
        let enough = self.served.load(Ordering::SeqCst) + 10 * CLIENTS;
        until(what, || async { self.served.load(Ordering::SeqCst) >= enough }).await;
    }
}

/// Reserves again and again, each time under a new key. A connection that the broker closed between
/// two requests is replaced, as every HTTP client does; anything else is a failure.
async fn reserve(
    stage: Arc<Stage>,
    config: Arc<ClientConfig>,
    name: String,
    load: Arc<Load>,
) -> Result<usize, String> {
    let mut made = 0;
    let mut client = None;
    while !load.stop.load(Ordering::SeqCst) {
        let (mut open, is_new) = if let Some(open) = client.take() {
            (open, false)
        } else {
            let open = Client::connect_as(stage.http(), Arc::clone(&config)).await;
            (open.map_err(|error| format!("{name} cannot connect: {error:#}"))?, true)
        };
        open.headers = vec![("idempotency-key", format!("{name}-{made}"))];
        match open.send("POST", "/api/v1/reservations", Some(ASK)).await {
            Ok(answer) if answer.status == 201 => {
                made += 1;
                load.served.fetch_add(1, Ordering::SeqCst);
                client = Some(open);
            }
            Ok(answer) => return Err(format!("{name}: {answer:?}")),
            Err(error) if is_new => return Err(format!("{name} is not served: {error:#}")),
            Err(_) => {
                load.closed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    Ok(made)
}

type Clients = JoinSet<Result<usize, String>>;

/// Starts clients with certificates of this authority that believe in both.
fn start(
    stage: &Arc<Stage>,
    authority: &Authority,
    both: &str,
    group: &str,
) -> (Clients, Arc<Load>) {
    let (mut clients, load) = (JoinSet::new(), Arc::new(Load::default()));
    for number in 0..CLIENTS {
        let name = format!("{group}-{number}");
        let config = Arc::new(tls(both, Some(&authority.issue(&Wish::client(&name)))));
        clients.spawn(reserve(Arc::clone(stage), config, name, Arc::clone(&load)));
    }
    (clients, load)
}

async fn metrics_say(stage: &Stage, line: &str) -> bool {
    stage.plain(stage.broker.addresses().metrics, "/metrics").await.body.contains(line)
}

async fn reloaded(stage: &Stage, times: usize) {
    let line = format!("reloads_total{{what=\"tls\",result=\"ok\"}} {times}");
    until(&line, || metrics_say(stage, &line)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_is_replaced_under_load_and_only_certificates_of_the_old_one_fail() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let both = format!("{}{}", old.pem, new.pem);
    let secret = Secret::new(&old.pem, &old.issue(&Wish::server()));
    let stage = Stage::with(quick(), |config| config.http_cert_path = secret.path().into()).await;
    let stage = Arc::new(stage);
    let config = Arc::new(tls(&both, Some(&old.issue(&Wish::client("lends")))));
    let mut lends = Client::connect_as(stage.http(), config).await.unwrap();
    lends.advertise("lends", 1000).await;
    let (mut before, load) = start(&stage, &old, &both, "old");
    load.goes_on("the first requests").await;

    // A new certificate of the same authority: no connection is closed for it.
    secret.replace(&old.pem, &old.issue(&Wish::server()));
    reloaded(&stage, 1).await;
    load.goes_on("requests with the new certificate").await;
    assert_eq!(load.closed.load(Ordering::SeqCst), 0);

    // Both authorities, then a server of the new one.
    secret.replace(&both, &old.issue(&Wish::server()));
    reloaded(&stage, 2).await;
    let (mut after, new_load) = start(&stage, &new, &both, "new");
    let server = new.issue(&Wish::server());
    secret.replace(&both, &server);
    reloaded(&stage, 3).await;
    load.goes_on("old requests with both").await;
    new_load.goes_on("new requests with both").await;

    // Half of a set, which nobody notices but the metrics.
    let half = Pair { key: new.issue(&Wish::server()).key, ..server.clone() };
    secret.replace(&new.pem, &half);
    until("the refusal", || metrics_say(&stage, "reload_failing{what=\"tls\"} 1")).await;
    load.goes_on("old requests beside a bad set").await;
    new_load.goes_on("new requests beside a bad set").await;

    // The new authority alone.
    secret.replace(&new.pem, &server);
    let mut made = 0;
    while let Some(ended) = before.join_next().await {
        let why = ended.unwrap().unwrap_err();
        assert!(why.contains("cannot connect") || why.contains("is not served"), "{why}");
    }
    made += load.served.load(Ordering::SeqCst);
    assert!(metrics_say(&stage, "reload_failing{what=\"tls\"} 0").await);
    new_load.goes_on("new requests alone").await;
    new_load.stop.store(true, Ordering::SeqCst);
    while let Some(ended) = after.join_next().await {
        made += ended.unwrap().unwrap();
    }
    let config = Arc::new(tls(&both, Some(&new.issue(&Wish::client("lends")))));
    let mut lends = Client::connect_as(stage.http(), config).await.unwrap();
    // A thousandth of a core each: whatever was promised is there, and nothing else.
    let reserved = lends.get("/api/v1/advertisements/lends").await.json();
    let reserved = &reserved["resources"]["reserved"]["cpu"];
    assert_eq!(reserved.as_str().and_then(millicores), Some(made), "{reserved}");
    Arc::into_inner(stage).unwrap().end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_revoked_under_load_and_only_it_fails() {
    let stage = Arc::new(Stage::new().await);
    stage.client("lends").await.advertise("lends", 1000).await;
    let (mut clients, load) = start(&stage, &stage.authority, &stage.authority.pem, "busy");
    load.goes_on("the first requests").await;
    let shut = r#"{"clusterID":"busy-0","why":"stolen"}"#;
    let mut operator = stage.operator().await;
    assert_eq!(operator.post("/api/v1/operator/revocations", shut).await.status, 204);
    let why = clients.join_next().await.unwrap().unwrap().unwrap_err();
    assert!(why.starts_with("busy-0: ") && why.contains("CertificateRevoked"), "{why}");
    // Nor does a new connection help; the others do not notice.
    let again = stage.client("busy-0").await.post("/api/v1/reservations", ASK).await;
    assert_eq!((again.status, again.code()), (403, "CertificateRevoked"));
    load.goes_on("requests of the others").await;
    assert_eq!(load.closed.load(Ordering::SeqCst), 0);
    load.stop.store(true, Ordering::SeqCst);
    while let Some(ended) = clients.join_next().await {
        assert!(ended.unwrap().is_ok());
    }
    Arc::into_inner(stage).unwrap().end().await;
}

/// What a handshake came to: which version, and whether an earlier session was resumed.
async fn shaken(stage: &Stage, config: &Arc<ClientConfig>) -> Option<(ProtocolVersion, bool)> {
    let stream = TcpStream::connect(stage.http()).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await.ok()?;
    let session = stream.get_ref().1;
    let is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
    Some((session.protocol_version()?, is_resumed))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_tls_1_2_is_resumed_and_not_beyond_the_authority_that_let_it_in() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let both = format!("{}{}", old.pem, new.pem);
    let secret = Secret::new(&old.pem, &old.issue(&Wish::server()));
    let stage = Stage::with(quick(), |config| config.http_cert_path = secret.path().into()).await;
    let config_of = |authority: &Authority| {
        let pair = authority.issue(&Wish::client("c1"));
        Arc::new(tls_of(&[&version::TLS12], &both, Some(&pair)))
    };
    let config = config_of(&old);
    let mut client = Client::connect_as(stage.http(), Arc::clone(&config)).await.unwrap();
    assert_eq!(client.get("/api/v1/clusters").await.status, 200);
    let refused = client.post("/api/v1/reservations", "{}").await;
    assert_eq!((refused.status, refused.code()), (400, "InvalidField"));
    assert_eq!(shaken(&stage, &config).await, Some((ProtocolVersion::TLSv1_2, true)));
    // With a certificate of nobody's there is not even a session.
    let stranger = config_of(&Authority::new("stranger"));
    assert_eq!(shaken(&stage, &stranger).await, None);

    secret.replace(&new.pem, &new.issue(&Wish::server()));
    reloaded(&stage, 1).await;
    assert_eq!(shaken(&stage, &config).await, None, "the old session was resumed");
    let shaken_anew = shaken(&stage, &config_of(&new)).await;
    assert_eq!(shaken_anew, Some((ProtocolVersion::TLSv1_2, false)));
    stage.end().await;
}

fn millicores(text: &str) -> Option<usize> {
    match text.strip_suffix('m') {
        Some(milli) => milli.parse().ok(),
        None => text.parse::<usize>().ok().map(|cores| cores * 1000),
    }
}
