//! What comes before a body: its bounds, and what says two things at once.
//!
//! hyper refuses what is far beyond the bounds, or no HTTP at all, with a bare status and closes.
//! What is beyond them by less is answered here, with a code, like everything else.

use axum::body::Body;
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::{Request, Version};
use sublet_wire::{Code, Problem};

use crate::limits::Limits;

/// Refuses a request whose head is too long, or says in two ways how long its body is.
pub(super) fn check(request: &Request<Body>, limits: &Limits) -> Result<(), Problem> {
    let (uri, headers) = (request.uri(), request.headers());
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if path > limits.uri_bytes {
        let said = format!("path and query have more than {} bytes", limits.uri_bytes);
        return Err(Problem::new(Code::UriTooLong, said));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > limits.head_bytes || headers.len() > limits.headers {
        let (most, count) = (limits.head_bytes, limits.headers);
        let said = format!("the headers have more than {most} bytes, or are more than {count}");
        return Err(Problem::new(Code::HeadersTooLarge, said));
    }
    if headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING) {
        let said = "send Content-Length or Transfer-Encoding, not both";
        return Err(Problem::new(Code::InvalidBody, said));
    }
    Ok(())
}

/// Whether the connection ends with this request. Where a proxy and we disagree on how long a body
/// is, what it takes for the body we take for the next request; so there is none after a body that
/// could have two lengths. hyper does not show us a length that it ignores.
pub(super) fn is_last(request: &Request<Body>) -> bool {
    request.version() < Version::HTTP_2 && request.headers().contains_key(TRANSFER_ENCODING)
}
