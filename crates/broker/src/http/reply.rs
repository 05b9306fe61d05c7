//! Answers as the Go system writes them: JSON with a newline, and errors in the route's shape.

use std::pin::Pin;
use std::task::{Context, Poll};

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

use crate::admission::Turn;

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

/// The same answer, with its turn kept until it is delivered: who asks again and again and takes no
/// answer is not let in any more. A stream, whose length nobody knows, has a seat of another kind.
pub(crate) fn held(response: Response, turn: Turn) -> Response {
    let length = hyper::body::Body::size_hint(response.body()).exact();
    if length.is_none_or(|length| length == 0) {
        return response;
    }
    response.map(|body| Body::new(Held { body, _turn: turn }))
}

struct Held {
    body: Body,
    _turn: Turn,
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
