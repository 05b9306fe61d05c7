//! Certificates: who is let in, reloads good and bad, and revocation on connections that are open.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

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

/// How the broker answers a certificate: with an alert of TLS, or with a status and a code.
async fn outcome(stage: &Stage, pair: Option<&Pair>) -> String {
    match ask(stage, pair).await {
        Ok(answer) => {
            let code = answer.lines().find_map(|line| line.strip_prefix("x-sublet-code: "));
            format!("{} {}", &answer[9..12], code.unwrap_or_default()).trim_end().to_owned()
        }
        Err(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(rustls::Error::AlertReceived(alert)) => format!("{alert:?}"),
            _ => format!("{error:?}"),
        },
    }
}

/// Asks on a connection of its own, byte for byte, so that an alert is seen as it came: in TLS 1.3
/// a refused certificate shows with the first answer.
async fn ask(stage: &Stage, pair: Option<&Pair>) -> std::io::Result<String> {
    let connector = TlsConnector::from(Arc::new(tls(&stage.authority.pem, pair)));
    let stream = TcpStream::connect(stage.http()).await?;
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await?;
    let request = "GET /api/v1/instructions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    // What was refused may be closed already; why, is still to be read.
    drop(stream.write_all(request.as_bytes()).await);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Certificates of the broker's own authority, with names that are good, bad or missing.
fn named() -> Vec<(&'static str, Wish, &'static str)> {
    let named = |names: &[(DnType, &str)]| Wish {
        names: names.iter().map(|(kind, name)| (kind.clone(), (*name).to_owned())).collect(),
        ..Wish::client("")
    };
    let cn = |name: &str| named(&[(DnType::CommonName, name)]);
    // The same attribute once more, which a builder of certificates would rather not make.
    let again = DnType::CustomDnType(vec![2, 5, 4, 3]);
    let two = |first, last| named(&[(DnType::CommonName, first), (again.clone(), last)]);
    let bad = "403 InvalidIdentity";
    vec![
        ("a good name", cn("c1"), "200"),
        ("the longest name", cn(&"x".repeat(50)), "200"),
        ("no name", named(&[]), bad),
        ("another attribute alone", named(&[(DnType::OrganizationName, "c1")]), bad),
        ("an empty name", cn(""), bad),
        ("too long a name", cn(&"x".repeat(51)), bad),
        ("capitals", cn("UPPER"), bad),
        ("a path", cn("../etc"), bad),
        ("a space", cn("a b"), bad),
        ("a dot", cn("a.b"), bad),
        ("a new line", cn("a\nb"), bad),
        ("a zero byte", cn("a\0b"), bad),
        ("a letter of another script", cn("с1"), bad),
        ("two names: the last counts, as in Go", two("UPPER", "c1"), "200"),
        ("two names, the last bad", two("c1", "UPPER"), bad),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_certificate_has_its_exact_answer_and_harms_nobody() {
    let stage = Stage::new().await;
    let (own, c1) = (&stage.authority, || Wish::client("c1"));
    let other = Authority::new("first");
    let any = ExtendedKeyUsagePurpose::Any;
    let server = ExtendedKeyUsagePurpose::ServerAuth;
    let serial = Wish { serial: Some(0xbad), ..c1() };
    let shut = r#"{"serial":"bad","why":"stolen"}"#;
    let revoked = stage.operator().await.post("/api/v1/operator/revocations", shut).await;
    assert_eq!(revoked.status, 204);
    #[rustfmt::skip]
    let mut rows = vec![
        ("none",                               "CertificateRequired",    None),
        ("its time is over",                   "CertificateExpired",     Some(own.issue(&Wish { until: (2021, 1, 1), ..c1() }))),
        ("its time has not begun",             "CertificateExpired",     Some(own.issue(&Wish { from: (2098, 1, 1), ..c1() }))),
        ("a server's",                         "UnsupportedCertificate", Some(own.issue(&Wish { usage: server, ..c1() }))),
        ("for any use, which names none",      "UnsupportedCertificate", Some(own.issue(&Wish { usage: any, ..c1() }))),
        ("another authority of the same name", "DecryptError",           Some(other.issue(&c1()))),
        ("an authority of another name",       "UnknownCA",              Some(Authority::new("second").issue(&c1()))),
        ("no authority at all",                "UnknownCA",              Some(self_signed())),
        ("revoked by its serial",              "403 CertificateRevoked", Some(own.issue(&serial))),
    ];
    rows.extend(named().into_iter().map(|(what, wish, said)| (what, said, Some(own.issue(&wish)))));
    let (good, mut wrong) = (own.issue(&c1()), Vec::new());
    for (what, expected, pair) in rows {
        let found = outcome(&stage, pair.as_ref()).await;
        if found != expected {
            wrong.push(format!("{what}: {found}, not {expected}"));
        }
        assert_eq!(outcome(&stage, Some(&good)).await, "200", "after: {what}");
    }
    assert_eq!(wrong, Vec::<String>::new());
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_names_nobody_gets_403_and_nothing_else() {
    let stage = Stage::new().await;
    let mut client = stage.client("UPPER").await;
    for path in ["/api/v1/instructions", ADVERTISEMENT, "/api/v1/nothing"] {
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.code()), (403, "InvalidIdentity"), "{path}");
    }
    assert_eq!(client.get("/healthz").await.status, 200);
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
