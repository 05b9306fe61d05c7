//! The handler that does nothing: the broker's own accept loop, TLS and router; it reads the body and
//! answers a constant of the same size as the broker's answer. No identity, no turn, no count, no log.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use serde::Serialize;
use sublet_broker::admission::Admission;
use sublet_broker::clock::Machine;
use sublet_broker::limits::Limits;
use sublet_broker::metrics::Metrics;
use sublet_broker::server::Server;
use sublet_broker::tls::{Places, Tls};
use sublet_wire::paths;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::ground::Ground;
use crate::requests::What;

/// Where it says where it serves.
pub(crate) const ADDRESSES: &str = "null.at.json";

type Asked = Request<Body>;

#[derive(Serialize)]
struct Addresses {
    http: SocketAddr,
}

/// What the broker answered, for the null handler to answer too.
pub(crate) fn teach(ground: &Ground, what: What, answer: &str) -> Result<()> {
    Ok(fs::write(ground.folder().join(file(what)), answer)?)
}

fn file(what: What) -> &'static str {
    match what {
        What::Reserve => "answer-reserve",
        What::Advertise => "answer-advertise",
    }
}

/// Serves until standard input ends.
pub(crate) fn serve(folder: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let reserve = constant(folder, What::Reserve);
    let advertise = constant(folder, What::Advertise);
    let router = Router::new()
        .route(
            paths::RESERVATIONS,
            post(move |ask: Asked| answer(ask, StatusCode::CREATED, reserve)),
        )
        .route(
            paths::ADVERTISEMENTS,
            post(move |ask: Asked| answer(ask, StatusCode::OK, advertise)),
        );
    let limits = Limits::default();
    let (stop, stopping) = watch::channel(false);
    let now = Machine::new().read().wall;
    let tls = Arc::new(Tls::open(Places::in_folder(folder), limits.sessions, now)?);
    let admission = Arc::new(Admission::new(limits.clone()));
    let server = Server::new(tls, admission, limits, Arc::new(Metrics::new()), stopping);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let text = serde_json::to_vec(&Addresses { http: listener.local_addr()? })?;
    let serving = runtime.spawn(server.run(listener, router));
    let half = folder.join("null.at.part");
    fs::write(&half, text)?;
    fs::rename(&half, folder.join(ADDRESSES))?;
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    stop.send_replace(true);
    runtime.block_on(serving)?.context("the null handler")
}

/// What was taught; a part that needs it taught it before.
fn constant(folder: &Path, what: What) -> Bytes {
    fs::read(folder.join(file(what))).unwrap_or_default().into()
}

async fn answer(request: Asked, status: StatusCode, constant: Bytes) -> Response {
    let read = request.into_body().collect().await;
    let mut response = Response::new(Body::from(constant));
    *response.status_mut() = if read.is_ok() { status } else { StatusCode::BAD_REQUEST };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
