//! A broker that can be killed and come back, and as many clusters as a test wants.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use sublet_testkit::Port;
use sublet_wire::client::{Credentials, Options};
use sublet_wire::v1::{Quantities, ReservationRequest};
use tokio::time::Instant;

use crate::broker::{Owned, wait_for};
use crate::program::Person;

/// What one unit is: a core and a GiB.
pub(crate) const UNIT: [u64; 2] = [1000, 1 << 30];

/// A request for so many cores and so many GiB.
pub(crate) fn request([cores, gib]: [u64; 2]) -> ReservationRequest {
    let requested_resources =
        Quantities { cpu: cores.to_string(), memory: format!("{gib}Gi"), ..Quantities::default() };
    ReservationRequest { requested_resources, ..ReservationRequest::default() }
}

/// A broker in a process of its own, with a development CA that knows everybody whom a test names.
pub(crate) struct Fleet {
    pub(crate) anna: Person,
    authority: String,
    issuer: Issuer<'static, KeyPair>,
    broker: Option<Owned>,
    /// Kept while the broker is away: those who try to reach it then connect from any port that nobody
    /// listens on, and one would even reach itself.
    ports: [Port; 2],
    flags: &'static str,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        Self::with("", "")
    }

    /// With this policy, and these flags besides.
    pub(crate) fn with(policy: &str, flags: &'static str) -> Self {
        let anna = Person::new();
        anna.ok("ca init --dir ca");
        anna.ok("ca issue broker --dir ca --server --out certs/broker");
        anna.ok("ca issue anna --dir ca --operator --out certs/anna");
        fs::write(anna.path("policy.toml"), policy).unwrap();
        let authority = anna.read("ca/ca.crt");
        let key = KeyPair::from_pem(&anna.read("ca/ca.key")).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&authority, key).unwrap();
        let ports = [(); 2].map(|()| Port::reserve().unwrap());
        let mut fleet = Self { anna, authority, issuer, broker: None, ports, flags };
        fleet.start();
        wait_for("the broker", || {
            fleet.check_alive();
            fleet.anna.path("at.json").exists().then_some(())
        });
        fleet
    }

    /// Where it serves, and where it says whether it is ready.
    fn at(&self) -> [SocketAddr; 2] {
        self.ports.each_ref().map(|port| ([127, 0, 0, 1], port.number()).into())
    }

    /// Starts the broker, where it was before if it was anywhere.
    pub(crate) fn start(&mut self) {
        let line = "broker --data-dir data --http-cert-path certs/broker --address-file at.json \
                    --http-bind-address 127.0.0.1 --end-with-stdin --log-level warn \
                    --policy policy.toml";
        let mut words: Vec<_> =
            line.split_whitespace().chain(self.flags.split_whitespace()).collect();
        let [http, health] = self.at();
        let (port, health) = (http.port().to_string(), health.to_string());
        words.extend(["--http-port", &port, "--health-probe-bind-address", &health]);
        let path = self.anna.path("broker.log");
        let log = File::options().create(true).append(true).open(path).unwrap();
        let mut command = self.anna.command(&words);
        command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        self.broker = Some(Owned(command.spawn().unwrap()));
    }

    /// Kills the broker as `kill -9` does. One that has ended by itself is a failure.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.check_alive();
        self.broker = None;
    }

    /// Waits until the broker says that it is ready, and says how long that took.
    #[track_caller]
    pub(crate) fn wait_ready(&mut self) -> Duration {
        let begin = Instant::now();
        while !is_ready(self.at()[1]) {
            self.check_alive();
            assert!(begin.elapsed() < BACK_WITHIN, "the broker did not come back: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
        begin.elapsed()
    }

    #[track_caller]
    pub(crate) fn check_alive(&mut self) {
        let broker = self.broker.as_mut().expect("a broker was started");
        let ended = broker.0.try_wait().unwrap();
        assert!(ended.is_none(), "the broker ended by itself: {ended:?}\n{}", self.said());
    }

    fn said(&self) -> String {
        self.anna.read("broker.log")
    }

    /// How a cluster of this name talks to the broker.
    pub(crate) fn options(&self, cluster: &str) -> Options {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, cluster);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem().into_bytes();
        let key = key.serialize_pem().into_bytes();
        let authority = self.authority.clone().into_bytes();
        self.options_of(Credentials::from_pem(certificate, key, authority))
    }

    /// How the operator does.
    pub(crate) fn operator(&self) -> Options {
        self.options_of(Credentials::from_folder(&self.anna.path("certs/anna")).unwrap())
    }

    fn options_of(&self, credentials: Credentials) -> Options {
        Options::new(vec![format!("https://{}", self.at()[0])], credentials)
    }

    /// Where the log is.
    pub(crate) fn data(&self) -> PathBuf {
        self.anna.path("data")
    }
}

/// How long a broker that was killed may take until it serves again.
const BACK_WITHIN: Duration = sublet_testkit::wait::PATIENCE;

/// What `/readyz` says.
fn is_ready(at: SocketAddr) -> bool {
    let answer = || -> std::io::Result<String> {
        let mut probe = TcpStream::connect_timeout(&at, Duration::from_secs(1))?;
        probe.set_read_timeout(Some(Duration::from_secs(1)))?;
        probe.write_all(b"GET /readyz HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n")?;
        let mut said = String::new();
        probe.read_to_string(&mut said)?;
        Ok(said)
    };
    answer().is_ok_and(|said| said.starts_with("HTTP/1.1 200"))
}
