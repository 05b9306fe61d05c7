//! The same over HTTP/2, where calls and streams share a connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Channel, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sublet_wire::client::{Event, Page};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::authority::Authority;
use super::client;

const CLUSTERS: &str = r#"{"clusters":[{"clusterID":"c1"}]}"#;
const BOOKMARK: &str = "{\"type\":\"BOOKMARK\",\"cursor\":\"1\"}\n";

/// A stream that stays open after its first line, or a list.
async fn answer(
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let body = if request.uri().query() == Some("watch=true") {
        let (mut sender, body) = Channel::new(1);
        sender.send_data(Bytes::from_static(BOOKMARK.as_bytes())).await.expect("room for one");
        // Forgotten, not dropped: a stream that ended would be another test.
        std::mem::forget(sender);
        body.boxed()
    } else {
        http_body_util::Full::new(Bytes::from_static(CLUSTERS.as_bytes())).boxed()
    };
    let kind = sublet_wire::v1::WatchEvent::CONTENT_TYPE;
    Ok(Response::builder().header("content-type", kind).body(body).expect("a response"))
}

#[tokio::test]
async fn calls_go_on_beside_an_open_stream_on_one_connection() {
    let authority = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("bound"));
    let acceptor = TlsAcceptor::from(authority.server("h2"));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let mut running = JoinSet::new();
    running.spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let acceptor = acceptor.clone();
            open.spawn(async move {
                let stream = TokioIo::new(acceptor.accept(stream).await.expect("trust"));
                let server = http2::Builder::new(TokioExecutor::new());
                drop(server.serve_connection(stream, service_fn(answer)).await);
            });
        }
    });
    let client = client(&authority, &[url]);
    let mut stream = client.instructions(None);
    assert!(matches!(stream.next().await, Event::Connected));
    assert!(matches!(stream.next().await, Event::Synced));
    for _ in 0..3 {
        let list = client.clusters(&Page::default()).await.expect("a list");
        assert_eq!(list.clusters.len(), 1);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
