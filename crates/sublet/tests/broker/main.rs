//! `sublet broker` as a process: how it starts, what it says when it cannot, and how it ends.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_sublet");

/// A folder with certificates and room for a log.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(folder.path().join("ca.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
    let (issuer, own) = (Issuer::new(params, key), KeyPair::generate().unwrap());
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = server.signed_by(&own, &issuer).unwrap();
    fs::write(folder.path().join("tls.crt"), certificate.pem()).unwrap();
    fs::write(folder.path().join("tls.key"), own.serialize_pem()).unwrap();
    folder
}

fn command(folder: &Path, more: &[&str]) -> Command {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new(BINARY);
    command
        .env_clear()
        .arg("broker")
        .args(["--data-dir", &path("data"), "--http-cert-path", &path("")])
        .args(["--http-bind-address", "127.0.0.1", "--http-port", "0"])
        .args(["--health-probe-bind-address", "127.0.0.1:0"])
        .args(["--address-file", &path("addresses.json")])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A broker that is ended with the test.
struct Broker(Child);

impl Drop for Broker {
    fn drop(&mut self) {
        // Gone already is as good.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Broker {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let addresses = folder.join("addresses.json");
        drop(fs::remove_file(&addresses));
        let broker = Self(command(folder, more).spawn().unwrap());
        for _ in 0..2000 {
            if addresses.exists() {
                return broker;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the broker never served");
    }

    fn signal(mut self, name: &str) -> (Option<i32>, String) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
        let status = self.0.wait().unwrap();
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        (status.code(), said)
    }
}

fn refused(folder: &Path, more: &[&str]) -> String {
    refused_with(1, folder, more)
}

/// 1 where something is not as it should be, 2 where the command line itself is wrong.
fn refused_with(code: i32, folder: &Path, more: &[&str]) -> String {
    let Output { status, stderr, .. } = command(folder, more).output().unwrap();
    assert_eq!(status.code(), Some(code), "{more:?} should have been refused");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn it_ends_in_order_when_it_is_told_to() {
    let folder = folder();
    for signal in ["-TERM", "-INT"] {
        let (code, said) = Broker::start(folder.path(), &[]).signal(signal);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("ending: finishing what is open"), "{said}");
    }
}

#[test]
fn what_is_wrong_at_the_start_is_named() {
    let folder = folder();
    let path = folder.path();
    assert!(refused(path, &["--http-cert-path=/nowhere"]).contains("/nowhere/tls.crt"));
    assert!(refused(path, &["--policy=/nowhere.toml"]).contains("/nowhere.toml"));
    for flag in ["--broker-interface=kubernetes", "--metrics-bind-address=8081", "--no-such-flag"] {
        let name = flag.split('=').next().unwrap();
        assert!(refused_with(2, path, &[flag]).contains(name), "{flag}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--http-port={}", taken.local_addr().unwrap().port());
    assert!(refused(path, &[&port]).contains("--http-port: cannot listen"));
    fs::write(path.join("bad.toml"), "strategy = \"luck\"\n").unwrap();
    let bad = format!("--policy={}", path.join("bad.toml").display());
    let said = refused(path, &[&bad]);
    assert!(said.contains("line 1") && said.contains("luck"), "{said}");
    assert!(!path.join("data").exists(), "a start that was refused left its folder behind");
    let running = Broker::start(path, &[]);
    assert!(refused(path, &[]).contains("--data-dir"), "two brokers in one folder");
    drop(running);
}

#[test]
fn the_configuration_that_results_is_printed_and_flags_go_before_the_environment() {
    let folder = folder();
    let mut command = command(folder.path(), &["-print-config", "-metrics-secure=false"]);
    let output = command
        .env("SUBLET_METRICS_BIND_ADDRESS", ":9090")
        .env("SUBLET_HTTP_PORT", "1234")
        .env("SUBLET_ZAP_ENCODER", "json")
        .env("SUBLET_ZAP_LOG_LEVEL", "error")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    for line in
        ["--metrics-bind-address=:9090", "--http-port=0", "--log-format=json", "--log-level=error"]
    {
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
}
