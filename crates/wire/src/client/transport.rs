//! Connections: one try of one call at one broker, with its timeouts and bounds.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use sublet_core::id::Key;
use tokio::time::timeout;

use super::pool::Pools;
use super::{Error, Options, tls};
use crate::limits::DOCUMENT_MAX;
use crate::v1::WatchEvent;
use crate::{Problem, Shape, decode};

/// What is to be asked.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    /// With its query.
    pub(super) path: String,
    pub(super) body: Bytes,
    pub(super) key: Option<&'a Key>,
}

impl Call<'_> {
    pub(super) fn new(method: Method, path: String) -> Self {
        Self { method, path, body: Bytes::new(), key: None }
    }
}

/// A status of success and its body.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    pub(super) url: String,
}

/// The brokers and the connections to them.
pub(super) struct Transport {
    pub(super) options: Options,
    pools: Pools,
    urls: Vec<String>,
    /// The broker that answered last; only a hint.
    preferred: AtomicUsize,
}

impl Transport {
    pub(super) fn new(options: Options) -> Result<Self, Error> {
        let urls: Vec<_> = options.urls.iter().map(|url| base(url)).collect::<Result<_, _>>()?;
        if urls.is_empty() {
            return Err(Error::NoUrl);
        }
        let pools = Pools::new(&options)?;
        Ok(Self { options, pools, urls, preferred: AtomicUsize::new(0) })
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = &str> {
        self.urls.iter().map(String::as_str)
    }

    pub(super) fn count(&self) -> usize {
        self.urls.len()
    }

    /// Which broker to ask first.
    pub(super) fn preferred(&self) -> usize {
        self.preferred.load(Ordering::Relaxed)
    }

    pub(super) fn prefer(&self, broker: usize) {
        self.preferred.store(broker % self.urls.len(), Ordering::Relaxed);
    }

    /// One try: the whole answer, or why not.
    pub(super) async fn attempt(&self, broker: usize, call: &Call<'_>) -> Result<Answer, Error> {
        let after = self.options.request_timeout;
        let url = self.url(broker);
        let whole = async {
            let response = self.send(url, call).await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = collect(url, response.into_body()).await?;
            if status.is_success() {
                Ok(Answer { status, body, url: url.to_owned() })
            } else {
                Err(refused(status, &headers, &body))
            }
        };
        timeout(after, whole)
            .await
            .unwrap_or_else(|_| Err(Error::Timeout { url: url.to_owned(), after }))
    }

    /// The beginning of a stream: its body, once the broker has agreed to it.
    pub(super) async fn open(&self, broker: usize, call: &Call<'_>) -> Result<Incoming, Error> {
        let after = self.options.request_timeout;
        let url = self.url(broker);
        let begin = async {
            let response = self.send(url, call).await?;
            let (status, headers) = (response.status(), response.headers().clone());
            if status.is_success() && is_stream(&headers) {
                return Ok(response.into_body());
            } else if status.is_success() {
                return Err(Error::NoStream { url: url.to_owned() });
            }
            let body = collect(url, response.into_body()).await?;
            Err(refused(status, &headers, &body))
        };
        timeout(after, begin)
            .await
            .unwrap_or_else(|_| Err(Error::Timeout { url: url.to_owned(), after }))
    }

    pub(super) fn url(&self, broker: usize) -> &str {
        // Never empty, as `new` has seen to.
        self.urls.get(broker % self.urls.len()).map_or("", String::as_str)
    }

    async fn send(&self, url: &str, call: &Call<'_>) -> Result<Response<Incoming>, Error> {
        let uri = format!("{url}{}", call.path);
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        if !call.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = call.key {
            request = request.header("idempotency-key", key.as_str());
        }
        let request =
            request.body(Full::new(call.body.clone())).map_err(|_| Error::Url(url.to_owned()))?;
        self.pools.pool().request(request).await.map_err(|source| {
            let (url, sent) = (url.to_owned(), !source.is_connect());
            match tls::cause(&source).filter(|cause| !sent || tls::is_about_trust(cause)) {
                Some(cause) => Error::Tls { url, source: cause.clone() },
                None if sent => Error::Broken { url, source: source.into() },
                None => Error::Unreachable { url, source: source.into() },
            }
        })
    }
}

/// An address as paths are appended to it.
fn base(url: &str) -> Result<String, Error> {
    let refuse = || Error::Url(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| refuse())?;
    let is_https = uri.scheme_str() == Some("https");
    if is_https && uri.authority().is_some() && uri.query().is_none() {
        Ok(url.trim_end_matches('/').to_owned())
    } else {
        Err(refuse())
    }
}

async fn collect(url: &str, body: Incoming) -> Result<Bytes, Error> {
    let url = || url.to_owned();
    match Limited::new(body, DOCUMENT_MAX).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLong { url: url() }),
        Err(source) => Err(Error::Broken { url: url(), source }),
    }
}

/// An old broker answers the same question with a list.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(WatchEvent::CONTENT_TYPE))
}

/// What the broker said, in either shape.
fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_json = text("content-type").is_some_and(|kind| kind.starts_with("application/json"));
    let read = if is_json { decode::decode::<Problem>(body).ok() } else { None };
    let mut problem = read.unwrap_or_else(|| {
        // Whoever stands in between may answer with a page.
        let said: String = String::from_utf8_lossy(body).trim().chars().take(300).collect();
        Problem { error: said, ..Problem::default() }
    });
    if problem.error.is_empty() {
        problem.error = format!("the broker answered with status {status}");
    }
    if let Some(code) = text(Shape::CODE_HEADER).filter(|_| problem.code.is_empty()) {
        code.clone_into(&mut problem.code);
    }
    if let Some(seconds) = text("retry-after").and_then(|seconds| seconds.trim().parse().ok()) {
        problem.details.retry_after = Some(seconds);
    }
    Error::Problem { status: status.as_u16(), problem }
}
