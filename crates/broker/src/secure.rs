//! Metrics over TLS: the same page that the plain port has, for whoever has a certificate that names
//! a cluster or an operator and is believed at the time of the request.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::Request;
use sublet_process::plain::Pages;
use sublet_wire::Shape;

use crate::connection::Peer;
use crate::http::{App, identify, problem};

/// The pages, for whoever is believed.
pub fn believed(pages: Pages, app: Arc<App>) -> Router {
    Router::new().fallback(answer).with_state((pages, app))
}

async fn answer(State((pages, app)): State<(Pages, Arc<App>)>, request: Request<Body>) -> Response {
    if let Some(peer) = request.extensions().get::<Arc<Peer>>()
        && let Err(denied) = identify(peer, &app.revoked, app.machine.read().wall)
    {
        return problem(&denied, Shape::Plain);
    }
    pages(request.method(), request.uri().path()).map(Body::new)
}
