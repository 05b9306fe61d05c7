//! Answers as the Go system writes them: JSON with a newline, and errors in the route's shape.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use sublet_wire::{Problem, Shape, encode};

use crate::admission::{Admission, Busy, Turn};
use crate::connection::Peer;
use crate::taking::{Taken, Taking};

const CODE: HeaderName = HeaderName::from_static(Shape::CODE_HEADER);
const JSON: &str = "application/json";

/// An answer with a body of this type.
pub(crate) fn body(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// JSON.
pub(crate) fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    body(status, JSON, encode(value))
}

/// Done, and nothing to say.
pub(crate) fn done() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Taken in, to be passed on.
pub(crate) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// An error in this shape.
pub(crate) fn problem(problem: &Problem, shape: Shape) -> Response {
    let status =
        StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = body(status, shape.content_type(), problem.body(shape));
    let headers = response.headers_mut();
    if shape == Shape::Plain {
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    if let Some(code) = problem.code() {
        headers.insert(CODE, HeaderValue::from_static(code.as_str()));
    }
    if let Some(seconds) = problem.details.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The methods that a path has, for an answer that says that this was none of them.
pub(crate) fn allow(headers: &mut HeaderMap, methods: &[&'static str]) {
    // Names of methods are visible ASCII.
    if let Ok(methods) = HeaderValue::from_str(&methods.join(", ")) {
        headers.insert(ALLOW, methods);
    }
}

/// The answer to `HEAD`: that to `GET`, without its body.
pub(crate) fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let length = hyper::body::Body::size_hint(&body).exact();
    if let Some(length) = length {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}

/// How much of an answer HTTP/2 is given at a time: what it is given, it keeps until it is taken.
pub(super) const PIECE_BYTES: usize = 8 * 1024;

/// Room for an answer that is more than a piece; none is needed for others. A stream takes its own.
pub(crate) fn room(
    response: &Response,
    admission: &Admission,
    peer: &Peer,
) -> Result<Option<Turn>, Busy> {
    let length = hyper::body::Body::size_hint(response.body()).exact();
    let length = length.and_then(|length| usize::try_from(length).ok());
    let large = length.filter(|length| *length > PIECE_BYTES);
    large.map(|length| admission.answer(&peer.share, length)).transpose()
}

/// The same answer, with its turn and its room kept until it is delivered: who asks again and again and takes no
/// answer is not let in any more, be it a refusal; only of who has no turn there is none to keep. A
/// stream, whose length nobody knows, has a seat of another kind.
pub(crate) fn held(
    response: Response,
    turn: Option<Turn>,
    room: Option<Turn>,
    peer: Option<&Peer>,
) -> Response {
    let length = hyper::body::Body::size_hint(response.body()).exact();
    if length.is_none_or(|length| length == 0) {
        return response;
    }
    let taken = peer.and_then(|peer| peer.taking.as_ref()).map(Taking::begin);
    let kept = (turn, room);
    response.map(|body| Body::new(Held { body, rest: Bytes::new(), taken, _kept: kept }))
}

struct Held {
    body: Body,
    /// What the body gave and was not passed on yet.
    rest: Bytes,
    /// Where it is noted that it moves, on HTTP/2.
    taken: Option<Taken>,
    /// Its turn and its room.
    _kept: (Option<Turn>, Option<Turn>),
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // It is asked for more only when the peer has taken something, or can.
        self.taken.iter().for_each(Taken::moved);
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let body = self.body.size_hint().exact().map(|length| length.saturating_add(rest));
        body.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
