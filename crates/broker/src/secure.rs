//! Metrics over TLS: the same page that the plain port has, for whoever has a certificate that is
//! still believed.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{Request, StatusCode};
use sublet_process::plain::Pages;

use crate::connection::Peer;
use crate::revoked::Shut;

/// The pages, but not for a certificate that was revoked.
pub fn unless_revoked(pages: Pages, revoked: Shut) -> Router {
    Router::new().fallback(answer).with_state((pages, revoked))
}

async fn answer(State((pages, revoked)): State<(Pages, Shut)>, request: Request<Body>) -> Response {
    let peer = request.extensions().get::<Arc<Peer>>();
    let identity = peer.and_then(|peer| peer.identity.as_ref().ok());
    if identity.is_some_and(|identity| revoked.covers(identity)) {
        let mut response = Response::new(Body::from("this certificate was revoked\n"));
        *response.status_mut() = StatusCode::FORBIDDEN;
        return response;
    }
    pages(request.method(), request.uri().path()).map(Body::new)
}
