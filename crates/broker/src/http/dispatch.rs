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
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode};
use sublet_wire::{Body as WireBody, Code, Problem, ROUTES, Route, Shape, limits, paths};

use super::app::App;
use super::call::{Call, busy, forbidden};
use super::{advertisements, clusters, head, instructions, lists, operator, reply, reservations};
use crate::admission::{Lane, Turn};
use crate::authorize::{Endpoint, Relation, Row, Verdict, route_of, row_of};
use crate::connection::Peer;
use crate::identity::{Caller, Identity};
use crate::metrics::{Because, Word};
use sublet_process::lines::AUDIT;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Long enough for any tracing system's.
const REQUEST_ID_MAX: usize = 128;
/// What is read of a body that is too long after that is known, as Go's server does.
const DISCARDED_MAX: usize = 256 * 1024;
/// And for how long.
const DISCARD_PATIENCE: Duration = Duration::from_secs(2);
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
async fn answer(
    app: Arc<App>,
    path: &'static str,
    parts: impl Parts,
    request: Request<Body>,
) -> Response {
    let began = app.machine.read().monotonic;
    let id = request_id(&app, request.headers());
    let (is_head, is_last) = (request.method() == Method::HEAD, head::is_last(&request));
    let route = route_of(path, request.method().as_str());
    let name = route.map_or(NO_ROUTE, |route| route.name);
    let shape = route.map_or(Shape::Plain, |route| route.shape);
    let peer = request.extensions().get::<Arc<Peer>>().map(Arc::clone);
    let caller = Named(peer.as_deref());
    app.metrics.in_flight.inc();
    let outcome = handle(&app, path, route, parts.list(), (request, id.clone())).await;
    app.metrics.in_flight.dec();
    let mut response = match outcome {
        Ok(response) => response,
        Err(problem) => {
            denied(&app, &problem, name, &caller, &id);
            let shape = if is_about_identity(&problem) { Shape::Plain } else { shape };
            let mut response = reply::problem(&problem, shape);
            if problem.code() == Some(Code::MethodNotAllowed) {
                reply::allow(response.headers_mut(), &methods(path));
            }
            response
        }
    };
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    if is_last {
        response.headers_mut().insert(hyper::header::CONNECTION, HeaderValue::from_static("close"));
    }
    let took = app.machine.read().monotonic.saturating_sub(began);
    app.metrics.answered(name, response.status().as_u16(), took);
    let status = response.status().as_u16();
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    tracing::debug!(request = id, %caller, route = name, status, took_us, "answered");
    if is_head { reply::without_body(response) } else { response }
}

/// The Go broker asks who it is before it looks at the route, and answers in plain text.
fn is_about_identity(problem: &Problem) -> bool {
    matches!(
        problem.code(),
        Some(Code::CertificateRequired | Code::InvalidIdentity | Code::CertificateRevoked)
    )
}

/// A peer as log lines name it: written only where a line is.
struct Named<'a>(Option<&'a Peer>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(|peer| peer.identity.as_ref().ok()) {
            Some(identity) => identity.caller.fmt(f),
            None => f.write_str("nobody"),
        }
    }
}

/// The client's, where it is one that can be written down; else a new one.
fn request_id(app: &App, headers: &HeaderMap) -> String {
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

/// Writes a refusal down: who was denied what, and why.
fn denied(app: &App, problem: &Problem, route: &str, caller: &Named<'_>, id: &str) {
    let (code, status) = (problem.code().unwrap_or(Code::Internal), problem.status());
    let reason = Because { reason: Word(code.as_str()) };
    app.metrics.denied.get_or_create(&reason).inc();
    tracing::info!(
        target: AUDIT,
        request = id, %caller, route, status, code = code.as_str(), said = problem.error,
        "denied"
    );
}

async fn handle(
    app: &Arc<App>,
    path: &'static str,
    route: Option<&'static Route>,
    parts: Result<Vec<(String, String)>, Problem>,
    (request, id): (Request<Body>, String),
) -> Result<Response, Problem> {
    head::check(&request, &app.limits)?;
    if path == paths::HEALTH && route.is_some() {
        // Asked by whoever has a certificate, also one that names nobody, as in the Go broker.
        return Ok(health());
    }
    let peer = request.extensions().get::<Arc<Peer>>().map(Arc::clone);
    let peer = peer.ok_or_else(no_certificate)?;
    let identity = identify(app, &peer)?;
    let found = find(path, route);
    // Also who is about to be denied needs a turn: denials cost as much as answers.
    let lane = found.as_ref().map_or(Lane::Ordinary, |(_, row)| row.lane);
    let turn = turn(app, &peer, lane)?;
    let (route, row) = found?;
    let path = parts?;
    permit(row, &identity.caller, &path)?;
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let query = query.map_err(|error| Problem::new(Code::InvalidParameter, error.to_string()))?.0;
    let (head, body) = request.into_parts();
    let body = match route.request {
        WireBody::None => Bytes::new(),
        _ => read(app, row, &head.headers, body).await?,
    };
    let app = Arc::clone(app);
    let call = Call { app, peer, identity, row, id, path, query, headers: head.headers, body };
    let response = respond(&call).await?;
    Ok(reply::held(response, turn))
}

fn no_certificate() -> Problem {
    Problem::new(Code::CertificateRequired, "Client certificate required")
}

/// Who asks, as of now: a certificate may have been revoked, or its time may be over, since the
/// connection was made.
fn identify(app: &App, peer: &Peer) -> Result<Arc<Identity>, Problem> {
    let identity = peer.identity.as_ref();
    let identity =
        identity.map_err(|error| Problem::new(Code::InvalidIdentity, error.to_string()))?;
    if app.revoked.covers(identity) {
        let said = "this certificate was revoked: ask an operator for a new one";
        return Err(Problem::new(Code::CertificateRevoked, said));
    }
    if identity.expires_at < app.machine.read().wall {
        let said = "the client certificate has expired: renew it and connect again";
        return Err(Problem::new(Code::CertificateRequired, said));
    }
    Ok(Arc::clone(identity))
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

fn turn(app: &App, peer: &Peer, lane: Lane) -> Result<Turn, Problem> {
    let share = peer.share.as_ref().ok_or_else(no_certificate)?;
    let turn = app.admission.turn(share, lane, app.machine.read().monotonic);
    turn.map_err(busy)
}

/// The body, within its bounds of length and time.
async fn read(app: &App, row: &Row, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let small = limits::BODY_MAX;
    let is_large = row.endpoint == Endpoint::Advertise;
    let most = if is_large { limits::ADVERTISEMENT_BODY_MAX } else { small };
    let length = headers.get(hyper::header::CONTENT_LENGTH).and_then(|v| v.to_str().ok());
    let length = length.and_then(|text| text.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        discard(body).await;
        return Err(too_large(most));
    }
    // A few large bodies at a time, so that they cannot fill the memory together.
    let seat = if is_large && length.is_none_or(|length| length > small) {
        Some(app.admission.large_body().map_err(busy)?)
    } else {
        None
    };
    let mut body = body;
    let limited = Limited::new(&mut body, most);
    let read = tokio::time::timeout(app.limits.body, limited.collect()).await;
    drop(seat);
    match read {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            discard(body).await;
            Err(too_large(most))
        }
        Ok(Err(_)) => Err(Problem::new(Code::InvalidBody, "the body did not arrive as announced")),
        Err(_) => {
            let said = format!("the body did not arrive within {} s", app.limits.body.as_secs());
            Err(Problem::new(Code::RequestTimeout, said))
        }
    }
}

/// Reads on for a little: who is still sending when the connection closes never sees the answer.
async fn discard(body: Body) {
    let mut rest = Limited::new(body, DISCARDED_MAX);
    let read = async { while let Some(Ok(_)) = rest.frame().await {} };
    // Whoever sends more, or slowly, is not waited for.
    drop(tokio::time::timeout(DISCARD_PATIENCE, read).await);
}

fn too_large(most: usize) -> Problem {
    let mut problem =
        Problem::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"));
    problem.details.limit = Some(most.to_string());
    problem
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
        Endpoint::Advertise => advertisements::post(call).await,
        Endpoint::GetAdvertisement => advertisements::get(call).await,
        Endpoint::Reserve => reservations::reserve(call).await,
        Endpoint::ReleaseByKey => reservations::release_by_key(call).await,
        Endpoint::Release => reservations::release(call).await,
        Endpoint::Renew => reservations::renew(call).await,
        Endpoint::Resize => reservations::resize(call).await,
        Endpoint::Activate => reservations::activate(call).await,
        Endpoint::Acknowledge => reservations::acknowledge(call).await,
        Endpoint::Fail => reservations::fail(call).await,
        Endpoint::GetReservation => lists::reservation(call).await,
        Endpoint::Explain => lists::explain(call).await,
        Endpoint::ListReservations => lists::reservations(call).await,
        Endpoint::Instructions => instructions::get(call).await,
        Endpoint::ListClusters => clusters::list(call).await,
        Endpoint::GetCluster => clusters::get(call).await,
        Endpoint::Candidates => clusters::candidates(call).await,
        Endpoint::ListRevocations => operator::revocations(call).await,
        _ => operator::operate(call).await,
    }
}
