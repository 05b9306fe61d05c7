//! Files that are renewed while the client runs.

use std::path::Path;
use std::time::Duration;

use sublet_wire::client::{Client, Credentials, Options, Page};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::authority::Authority;
use super::server::{Server, json};

/// Puts new files there, and gives the certificate.
fn renew(authority: &Authority, folder: &Path) -> Vec<u8> {
    let files = authority.files("c1");
    for (name, text) in &files {
        std::fs::write(folder.join(name), text).expect("a file");
    }
    CertificateDer::from_pem_slice(files[0].1.as_bytes()).expect("a certificate").to_vec()
}

async fn shown(client: &Client, server: &Server) -> Vec<u8> {
    client.clusters(&Page::default()).await.expect("a list");
    server.seen().pop().expect("a request").certificate
}

async fn wait_until_shown(client: &Client, server: &Server, certificate: &[u8]) {
    for _ in 0..400 {
        if shown(client, server).await == certificate {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the files were never read again");
}

#[tokio::test]
async fn files_that_were_renewed_are_used_and_bad_ones_change_nothing() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().expect("a folder"));
    let server = Server::start(&authority, |_, _| json(200, r#"{"clusters":[]}"#)).await;
    let first = renew(&authority, folder.path());
    let credentials = Credentials::from_folder(folder.path()).expect("three files");
    let client = Client::new(Options::new(vec![server.url.clone()], credentials)).expect("one");
    assert_eq!(shown(&client, &server).await, first);

    let second = renew(&authority, folder.path());
    assert_ne!(first, second);
    wait_until_shown(&client, &server, &second).await;

    // A set that is half written, or gone, is not used; what was good stays so.
    std::fs::write(folder.path().join("tls.key"), "half").expect("a file");
    let beyond_the_next_look = Duration::from_millis(1100);
    tokio::time::sleep(beyond_the_next_look).await;
    assert_eq!(shown(&client, &server).await, second);
    std::fs::remove_file(folder.path().join("ca.crt")).expect("it was there");
    tokio::time::sleep(beyond_the_next_look).await;
    assert_eq!(shown(&client, &server).await, second);
    let third = renew(&authority, folder.path());
    wait_until_shown(&client, &server, &third).await;
}
