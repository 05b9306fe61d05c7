//! Metrics over TLS: the same page that the plain port has, for whoever has a certificate that names
//! a cluster or an operator and is believed at the time of the request. It takes a turn as the API's
//! requests do, and keeps it until the page is taken; a denial is counted and written down as theirs.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::Request;
use sublet_process::plain::Pages;
use sublet_wire::{Problem, Shape};

use super::app::App;
use super::call::busy;
use super::dispatch::{Named, denied, request_id};
use super::{believe, reply};
use crate::admission::{Lane, Turn};
use crate::connection::Peer;

/// What log lines call it.
const NAME: &str = "metrics";

/// The pages, for whoever is believed.
pub(crate) fn believed(pages: Pages, app: Arc<App>) -> Router {
    Router::new().fallback(answer).with_state((pages, app))
}

async fn answer(State((pages, app)): State<(Pages, Arc<App>)>, request: Request<Body>) -> Response {
    let now = app.machine.read().monotonic;
    let id = request_id(&app, request.headers());
    let peer = request.extensions().get::<Arc<Peer>>().map(Arc::as_ref);
    let (turn, outcome) = match take_turn(&app, peer) {
        Ok((turn, peer)) => (Some(turn), page(&pages, &app, peer, &request)),
        Err(problem) => (None, Err(problem)),
    };
    let (response, room) = outcome.unwrap_or_else(|problem| {
        denied(&app, &problem, NAME, &Named(peer), (&id, now));
        (reply::problem(&problem, Shape::Plain), None)
    });
    reply::held(response, turn, room, peer)
}

/// Urgent, as an operator has to see most when there is most to do.
fn take_turn<'a>(app: &App, peer: Option<&'a Peer>) -> Result<(Turn, &'a Peer), Problem> {
    let peer = peer.ok_or_else(believe::no_certificate)?;
    let turn = app.admission.turn(&peer.share, Lane::Urgent, app.machine.read().monotonic);
    Ok((turn.map_err(busy)?, peer))
}

fn page(
    pages: &Pages,
    app: &App,
    peer: &Peer,
    request: &Request<Body>,
) -> Result<(Response, Option<Turn>), Problem> {
    believe::identify(peer, &app.revoked, app.machine.read().wall)?;
    let response = pages(request.method(), request.uri().path()).map(Body::new);
    let room = reply::room(&response, &app.admission, peer).map_err(busy)?;
    Ok((response, room))
}
