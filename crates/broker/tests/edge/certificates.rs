//! Certificates: who is let in, reloads good and bad, and revocation on connections that are open.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};

use super::stage::{Authority, Client, Pair, Stage, Wish, advertisement, quick, tls, until};

const ADVERTISEMENT: &str = "/api/v1/advertisements/c1";

/// Is this client let in, and answered?
async fn is_served(stage: &Stage, authority: &str, pair: Option<&Pair>) -> bool {
    match Client::connect(stage.http(), authority, pair).await {
        // In TLS 1.3 a refused certificate shows with the first answer.
        Ok(mut client) => client.send("GET", "/healthz", None).await.is_ok(),
        Err(_) => false,
    }
}

/// Signed by nobody but itself.
fn self_signed() -> Pair {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "c1");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.self_signed(&key).unwrap().pem();
    Pair { certificate, key: key.serialize_pem() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_valid_client_certificate_of_the_authority_is_let_in() {
    let stage = Stage::new().await;
    let (own, c1) = (&stage.authority, || Wish::client("c1"));
    let other = Authority::new("first");
    let any = ExtendedKeyUsagePurpose::Any;
    let server = ExtendedKeyUsagePurpose::ServerAuth;
    #[rustfmt::skip]
    let rows = [
        ("a good one",                        true,  Some(own.issue(&c1()))),
        ("none",                              false, None),
        ("its time is over",                  false, Some(own.issue(&Wish { until: (2021, 1, 1), ..c1() }))),
        ("its time has not begun",            false, Some(own.issue(&Wish { from: (2098, 1, 1), ..c1() }))),
        ("a server's",                        false, Some(own.issue(&Wish { usage: server, ..c1() }))),
        ("for any use, which names none",     false, Some(own.issue(&Wish { usage: any, ..c1() }))),
        ("another authority of the same name", false, Some(other.issue(&c1()))),
        ("an authority of another name",      false, Some(Authority::new("second").issue(&c1()))),
        ("no authority at all",               false, Some(self_signed())),
    ];
    for (what, expected, pair) in rows {
        assert_eq!(is_served(&stage, &own.pem, pair.as_ref()).await, expected, "{what}");
        assert!(is_served(&stage, &own.pem, Some(&own.issue(&c1()))).await, "after: {what}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_names_nobody_gets_403_and_nothing_else() {
    let stage = Stage::new().await;
    for name in ["UPPER", "../etc", "a b", "a.b", &"x".repeat(51)] {
        let mut client = stage.client(name).await;
        for path in ["/api/v1/instructions", ADVERTISEMENT, "/api/v1/nothing"] {
            let answer = client.get(path).await;
            assert_eq!((answer.status, answer.code()), (403, "InvalidIdentity"), "{name} {path}");
        }
        assert_eq!(client.get("/healthz").await.status, 200);
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_certificates_are_used_without_a_restart_and_bad_ones_are_not() {
    let stage = Stage::new().await;
    let folder = stage.certificates.path();
    let second = Authority::new("second");
    let (old, new) =
        (stage.authority.issue(&Wish::client("c1")), second.issue(&Wish::client("c1")));

    // Half of a pair: the old set stays.
    let server = second.issue(&Wish::server());
    fs::write(folder.join("tls.crt"), &server.certificate).unwrap();
    let failing = "sublet_broker_reload_failing{what=\"tls\"} 1";
    until("the mismatch is counted", || metrics_say(&stage, failing)).await;
    assert!(is_served(&stage, &stage.authority.pem, Some(&old)).await);
    fs::write(folder.join("tls.key"), "rubbish").unwrap();
    assert!(is_served(&stage, &stage.authority.pem, Some(&old)).await);

    // The whole set: the new authority counts, the old one does not.
    second.write(folder, &server);
    until("the new set", || is_served(&stage, &second.pem, Some(&new))).await;
    assert!(!is_served(&stage, &second.pem, Some(&old)).await);
    until("all is well again", || metrics_say(&stage, "reload_failing{what=\"tls\"} 0")).await;

    // An expired one is as good as none.
    let expired = Wish { until: (2021, 1, 1), ..Wish::server() };
    second.write(folder, &second.issue(&expired));
    until("the expired one is counted", || metrics_say(&stage, failing)).await;
    assert!(is_served(&stage, &second.pem, Some(&new)).await);
    stage.end().await;
}

async fn metrics_say(stage: &Stage, line: &str) -> bool {
    stage.plain(stage.broker.addresses().metrics, "/metrics").await.body.contains(line)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_swapped_by_symlink_is_noticed() {
    let first = Authority::new("first");
    let outer = tempfile::TempDir::new().unwrap();
    let lay = |name: &str, authority: &Authority| {
        let folder = outer.path().join(name);
        fs::create_dir(&folder).unwrap();
        authority.write(&folder, &authority.issue(&Wish::server()));
    };
    // As a kubelet lays out a Secret: files lead through `..data` to a folder of one version.
    lay("..v1", &first);
    symlink("..v1", outer.path().join("..data")).unwrap();
    for file in ["tls.crt", "tls.key", "ca.crt"] {
        symlink(format!("..data/{file}"), outer.path().join(file)).unwrap();
    }
    let stage = Stage::with(quick(), |config| config.http_cert_path = outer.path().into()).await;
    assert!(is_served(&stage, &first.pem, Some(&first.issue(&Wish::client("c1")))).await);
    let second = Authority::new("second");
    lay("..v2", &second);
    symlink("..v2", outer.path().join("..new")).unwrap();
    fs::rename(outer.path().join("..new"), outer.path().join("..data")).unwrap();
    let pair = second.issue(&Wish::client("c1"));
    until("the second version", || is_served(&stage, &second.pem, Some(&pair))).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_let_in_by_an_authority_that_is_gone_must_come_again() {
    let stage = Stage::new().await;
    let pair = stage.authority.issue(&Wish::client("c1"));
    let remembering = Arc::new(tls(&stage.authority.pem, Some(&pair)));
    let mut open = Client::connect_as(stage.http(), Arc::clone(&remembering)).await.unwrap();
    assert_eq!(open.get("/healthz").await.status, 200);

    let second = Authority::new("second");
    // The server's certificate stays that of the first, so that only the client is refused.
    fs::write(stage.certificates.path().join("ca.crt"), &second.pem).unwrap();
    let answers = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while open.send("GET", "/healthz", None).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    assert!(answers.await.is_ok(), "the open connection was never closed");
    // Nor does a session that it remembers let it in.
    let again = Client::connect_as(stage.http(), remembering).await;
    let served = match again {
        Ok(mut client) => client.send("GET", "/healthz", None).await.is_ok(),
        Err(_) => false,
    };
    assert!(!served);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_holds_on_an_open_connection_and_a_reinstatement_lifts_it() {
    let stage = Stage::new().await;
    let (mut one, mut operator) = (stage.client("c1").await, stage.operator().await);
    let wish = Wish { serial: Some(0x0a0b_0c0d), ..Wish::client("c1") };
    let mut other = stage.client_with(&wish).await.unwrap();
    one.advertise("c1", 4).await;
    other.advertise("c1", 4).await;

    // By serial number: this certificate alone, written as openssl prints it.
    let serial = r#"{"serial":"0A:0B:0C:0D","why":"stolen laptop"}"#;
    assert_eq!(operator.post("/api/v1/operator/revocations", serial).await.status, 204);
    let denied = other.get(ADVERTISEMENT).await;
    assert_eq!((denied.status, denied.code()), (403, "CertificateRevoked"));
    assert_eq!(one.get(ADVERTISEMENT).await.status, 200);

    // By cluster: every certificate of it, also a new one.
    let cluster = r#"{"clusterID":"c1","why":"left the federation"}"#;
    assert_eq!(operator.post("/api/v1/operator/revocations", cluster).await.status, 204);
    assert_eq!(one.get(ADVERTISEMENT).await.status, 403);
    assert_eq!(stage.client("c1").await.get(ADVERTISEMENT).await.status, 403);
    let list = operator.get("/api/v1/operator/revocations").await.json();
    let entries = list["revocations"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().any(|entry| entry["serial"] == "a0b0c0d"), "{list}");
    assert!(entries.iter().all(|entry| entry["by"].as_str().unwrap().contains("ada")), "{list}");

    let again = operator.post("/api/v1/operator/reinstatements", cluster).await;
    assert_eq!(again.status, 204);
    assert_eq!(one.get(ADVERTISEMENT).await.status, 200);
    assert_eq!(other.get(ADVERTISEMENT).await.status, 403);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_is_not_a_cluster_and_a_cluster_is_no_operator() {
    let stage = Stage::new().await;
    let mut operator = stage.operator().await;
    let answer = operator.post("/api/v1/advertisements", &advertisement("ada", 1)).await;
    assert_eq!(answer.code(), "Forbidden");
    let named = Wish {
        names: vec![
            (DnType::OrganizationName, "sublet:operator".into()),
            (DnType::CommonName, "c1".into()),
        ],
        ..Wish::client("c1")
    };
    let mut nearly = stage.client_with(&named).await.unwrap();
    assert_eq!(nearly.get("/api/v1/operator/revocations").await.code(), "Forbidden");
    stage.end().await;
}
