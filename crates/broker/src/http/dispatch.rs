//! The way of every request, in order: identity, route, permission, turn, body, answer, count.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{Query, RawPathParams, State};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode};
use sublet_core::id::Key;
use sublet_wire::{Body as WireBody, Code, Problem, ROUTES, Route, Shape, paths};

use super::app::App;
use super::call::{Call, busy, forbidden};
use super::{
    advertisements, believe, body, clusters, head, instructions, lists, messages, operator, reply,
    reservations,
};
use crate::admission::{Lane, Turn};
use crate::authorize::{Endpoint, Relation, Row, Verdict, route_of, row_of};
use crate::connection::Peer;
use crate::identity::Caller;
use crate::metrics::{Because, Word};
use sublet_process::lines::AUDIT;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Long enough for any tracing system's.
const REQUEST_ID_MAX: usize = 128;
/// For paths that are no route.
const NO_ROUTE: &str = "none";

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    let paths: BTreeSet<_> = ROUTES.iter().map(|route| route.path).collect();
    let mut router = Router::new();
    for path in paths {
        let answer = move |State(app), parts: Result<RawPathParams, _>, request| {
            answer(app, path, parts, request)
        };
        router = router.route(path, any(answer));
    }
    router.fallback(|State(app), request| answer(app, "", Ok(None), request)).with_state(app)
}

/// The parts of a path that are filled in.
trait Parts {
    fn list(self) -> Result<Vec<(String, String)>, Problem>;
}

impl Parts for Result<RawPathParams, RawPathParamsRejection> {
    fn list(self) -> Result<Vec<(String, String)>, Problem> {
        let parts =
            self.map_err(|error| Problem::new(Code::InvalidParameter, error.to_string()))?;
        Ok(parts.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl Parts for Result<Option<()>, ()> {
    fn list(self) -> Result<Vec<(String, String)>, Problem> {
        Ok(Vec::new())
    }
}

/// Answers one request, counts it and writes it down.
///
/// Everything that needs no waiting is done before there is a future, and what keeps much while it
/// waits is apart: what a future keeps is moved with it, and this one is moved several times for
/// every request.
fn answer(
    app: Arc<App>,
    path: &'static str,
    parts: impl Parts,
    request: Request<Body>,
) -> impl Future<Output = Response> + Send {
    let began = app.machine.read().monotonic;
    let id = request_id(&app, request.headers());
    let (is_head, is_last) = (request.method() == Method::HEAD, head::is_last(&request));
    let route = route_of(path, request.method().as_str());
    let peer = request.extensions().get::<Arc<Peer>>().map(Arc::clone);
    let in_flight = InFlight::new(&app);
    let (turn, admitted) = match take_turn(&app, peer.as_deref(), path, route) {
        Ok(turn) => (Some(turn), admit(&app, path, route, parts.list(), (request, id.clone()))),
        Err(problem) => (None, Err(problem)),
    };
    async move {
        let outcome = match admitted {
            Ok(Admitted::Answered(response)) => Ok(response),
            Ok(Admitted::Call(admitted)) => Box::pin(carry(admitted)).await,
            Err(problem) => Err(problem),
        };
        let outcome =
            outcome.and_then(|response| with_room(&app, peer.as_deref(), route, response));
        drop(in_flight);
        let name = route.map_or(NO_ROUTE, |route| route.name);
        let shape = route.map_or(Shape::Plain, |route| route.shape);
        let caller = Named(peer.as_deref());
        let (mut response, room) = outcome.unwrap_or_else(|problem| {
            denied(&app, &problem, name, &caller, (&id, began));
            (refusal(&problem, shape, path), None)
        });
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if is_last {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(hyper::header::CONNECTION, close);
        }
        let took = app.machine.read().monotonic.saturating_sub(began);
        let status = response.status().as_u16();
        let response = reply::held(response, turn, room, peer.as_deref());
        app.metrics.answered(name, status, took);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        tracing::debug!(request = id, %caller, route = name, status, took_us, "answered");
        if is_head { reply::without_body(response) } else { response }
    }
}

/// An answer with the room that it needs until it is delivered. Whoever only asked, or advertised, can
/// come again where there is none; of everything else it is said what was done.
fn with_room(
    app: &App,
    peer: Option<&Peer>,
    route: Option<&Route>,
    response: Response,
) -> Result<(Response, Option<Turn>), Problem> {
    let room = peer.map(|peer| reply::room(&response, &app.admission, peer)).transpose();
    let can_repeat = route
        .is_none_or(|route| route.method.as_str() == "GET" || route.path == paths::ADVERTISEMENTS);
    match room {
        Err(full) if can_repeat => Err(busy(full)),
        room => Ok((response, room.ok().flatten().flatten())),
    }
}

/// A problem as the route says it.
fn refusal(problem: &Problem, shape: Shape, path: &str) -> Response {
    let shape = if is_about_identity(problem) { Shape::Plain } else { shape };
    let mut response = reply::problem(problem, shape);
    if problem.code() == Some(Code::MethodNotAllowed) {
        reply::allow(response.headers_mut(), &methods(path));
    }
    response
}

/// One request in work, also of a caller that goes before it is answered.
struct InFlight(Arc<App>);

impl InFlight {
    fn new(app: &Arc<App>) -> Self {
        app.metrics.in_flight.inc();
        Self(Arc::clone(app))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.metrics.in_flight.dec();
    }
}

/// The Go broker asks who it is before it looks at the route, and answers in plain text.
fn is_about_identity(problem: &Problem) -> bool {
    matches!(
        problem.code(),
        Some(Code::CertificateRequired | Code::InvalidIdentity | Code::CertificateRevoked)
    )
}

/// A peer as log lines name it: written only where a line is.
pub(super) struct Named<'a>(pub(super) Option<&'a Peer>);

impl Named<'_> {
    fn cause(&self) -> Option<Caller> {
        let identity = self.0.and_then(|peer| peer.identity.as_ref().ok());
        identity.map(|identity| identity.caller.clone())
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(|peer| peer.identity.as_ref().ok()) {
            Some(identity) => identity.caller.fmt(f),
            None => f.write_str("nobody"),
        }
    }
}

/// The client's, where it is one that can be written down; else a new one.
pub(super) fn request_id(app: &App, headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        (1..=REQUEST_ID_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic())
    };
    sent.filter(fits).map_or_else(|| app.request_ids.next(), str::to_owned)
}

/// The methods of a path, as the Go router lists them.
fn methods(path: &str) -> Vec<&'static str> {
    let of_path = ROUTES.iter().filter(|route| route.path == path);
    let mut methods: Vec<_> = of_path.map(|route| route.method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    methods
}

/// Writes a refusal down: who was denied what, and why. Who comes too often gets a line now and then
/// that counts the others.
pub(super) fn denied(
    app: &App,
    problem: &Problem,
    route: &str,
    caller: &Named<'_>,
    (id, now): (&str, Duration),
) {
    let (code, status) = (problem.code().unwrap_or(Code::Internal), problem.status());
    let reason = Because { reason: Word(code.as_str()) };
    app.metrics.denied.get_or_create(&reason).inc();
    let left_out = if code == Code::RateLimited {
        let Some(left_out) = app.too_often.line(caller.cause(), now) else { return };
        Some(left_out)
    } else {
        None
    };
    tracing::info!(
        target: AUDIT,
        request = id, %caller, route, status, code = code.as_str(), said = problem.error, left_out,
        "denied"
    );
}

/// What became of a request before anything had to be waited for.
enum Admitted {
    Answered(Response),
    Call(Box<Unread>),
}

/// A call whose body is still to be read.
struct Unread {
    call: Call,
    /// None where none is expected.
    body: Option<Body>,
}

/// Is it its turn. Also who is about to be denied needs one: denials cost as much as answers.
fn take_turn(
    app: &App,
    peer: Option<&Peer>,
    path: &str,
    route: Option<&'static Route>,
) -> Result<Turn, Problem> {
    let peer = peer.ok_or_else(believe::no_certificate)?;
    let lane = find(path, route).map_or(Lane::Ordinary, |(_, row)| row.lane);
    app.admission.turn(&peer.share, lane, app.machine.read().monotonic).map_err(busy)
}

/// Who is it, which route, may it.
fn admit(
    app: &Arc<App>,
    path: &'static str,
    route: Option<&'static Route>,
    parts: Result<Vec<(String, String)>, Problem>,
    (request, id): (Request<Body>, String),
) -> Result<Admitted, Problem> {
    let peer = request.extensions().get::<Arc<Peer>>().map(Arc::clone);
    let peer = peer.ok_or_else(believe::no_certificate)?;
    head::check(&request, &app.limits)?;
    if path == paths::HEALTH && route.is_some() {
        // Asked by whoever has a certificate, also one that names nobody, as in the Go broker.
        return Ok(Admitted::Answered(health()));
    }
    let identity = believe::identify(&peer, &app.revoked, app.machine.read().wall)?;
    let (route, row) = find(path, route)?;
    let path = parts?;
    permit(row, &identity.caller, &path)?;
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let query = query.map_err(|error| Problem::new(Code::InvalidParameter, error.to_string()))?.0;
    let named = request.headers().get("idempotency-key").map(key);
    let body = (!matches!(route.request, WireBody::None)).then(|| request.into_body());
    let (app, read) = (Arc::clone(app), Bytes::new());
    let call = Call { app, peer, identity, row, id, path, query, named, body: read };
    Ok(Admitted::Call(Box::new(Unread { call, body })))
}

/// The client's name for its request.
fn key(value: &HeaderValue) -> Result<Key, sublet_core::id::Error> {
    // What is no text is no key either.
    value.to_str().unwrap_or_default().parse()
}

/// Reads the body, and answers.
async fn carry(mut unread: Box<Unread>) -> Result<Response, Problem> {
    if let Some(body) = unread.body.take() {
        unread.call.body = body::read(&unread.call, body).await?;
    }
    respond(&unread.call).await
}

fn find(
    path: &str,
    route: Option<&'static Route>,
) -> Result<(&'static Route, &'static Row), Problem> {
    let known = route.and_then(|route| Some((route, row_of(route.name)?)));
    known.ok_or_else(|| {
        if path.is_empty() {
            Problem::new(Code::NoSuchRoute, "404 page not found")
        } else {
            Problem::new(Code::MethodNotAllowed, "Method Not Allowed")
        }
    })
}

/// Role and cluster; whose a reservation is, is looked at where there is one.
fn permit(row: &Row, caller: &Caller, path: &[(String, String)]) -> Result<(), Problem> {
    if !row.is_open_to(caller) {
        return Err(forbidden(caller));
    }
    let named = path.iter().find(|(name, _)| name == "clusterID").map(|(_, value)| value.as_str());
    let Some(named) = named else { return Ok(()) };
    match row.verdict(caller, Relation::to_cluster(caller, named)) {
        Verdict::Allow => Ok(()),
        Verdict::Forbid => Err(forbidden(caller)),
        Verdict::Hide if row.endpoint == Endpoint::GetAdvertisement => {
            Err(advertisements::not_found())
        }
        Verdict::Hide => Err(clusters::not_found()),
    }
}

fn health() -> Response {
    reply::body(StatusCode::OK, Shape::Plain.content_type(), b"ok".to_vec())
}

/// The description of all this, as it is checked in: `cargo xtask gen` makes it, and a test there
/// compares.
fn openapi() -> Response {
    let text = Bytes::from_static(sublet_wire::OPENAPI.as_bytes());
    reply::body(StatusCode::OK, Shape::Json.content_type(), text)
}

async fn respond(call: &Call) -> Result<Response, Problem> {
    match call.row.endpoint {
        Endpoint::Health => Ok(health()),
        Endpoint::Openapi => Ok(openapi()),
        // Those that keep much while they wait do so apart: all others would be as large.
        Endpoint::Advertise => Box::pin(advertisements::post(call)).await,
        Endpoint::GetAdvertisement => advertisements::get(call).await,
        Endpoint::Reserve => reservations::reserve(call).await,
        Endpoint::ReleaseByKey => reservations::release_by_key(call).await,
        Endpoint::Release => reservations::release(call).await,
        Endpoint::Renew => reservations::renew(call).await,
        Endpoint::Resize => reservations::resize(call).await,
        Endpoint::Activate => reservations::activate(call).await,
        Endpoint::Acknowledge => reservations::acknowledge(call).await,
        Endpoint::Fail => reservations::fail(call).await,
        Endpoint::GetReservation => Box::pin(lists::reservation(call)).await,
        Endpoint::Explain => Box::pin(lists::explain(call)).await,
        Endpoint::ListReservations => lists::reservations(call).await,
        Endpoint::Instructions => instructions::get(call).await,
        Endpoint::SendMessage => messages::post(call).await,
        Endpoint::ListClusters => clusters::list(call).await,
        Endpoint::GetCluster => clusters::get(call).await,
        Endpoint::Candidates => clusters::candidates(call).await,
        Endpoint::ListRevocations => operator::revocations(call).await,
        _ => operator::operate(call).await,
    }
}
