//! What is served without TLS: whether a process lives, whether it can do its work, and what it
//! counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

use crate::plain::{Answer, Pages};

/// What Prometheus reads.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether a process can do its work.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    /// From now on, or no longer.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    fn is(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// `/healthz`: the process is there. `/readyz`: it can do its work. Both also as the Go system has
/// them, with the name of the check.
pub fn probes(ready: Ready) -> Pages {
    Arc::new(move |method, path| match path {
        "/healthz" | "/healthz/healthz" => get(method, || text(StatusCode::OK, "ok")),
        "/readyz" | "/readyz/readyz" => get(method, || {
            if ready.is() {
                text(StatusCode::OK, "ok")
            } else {
                text(StatusCode::SERVICE_UNAVAILABLE, "not ready")
            }
        }),
        _ => nothing_here(),
    })
}

/// `/metrics`, as `page` writes it.
pub fn metrics(page: impl Fn() -> String + Send + Sync + 'static) -> Pages {
    Arc::new(move |method, path| match path {
        "/metrics" => get(method, || {
            let mut response = Response::new(Full::from(page()));
            let kind = HeaderValue::from_static(METRICS_TYPE);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }),
        _ => nothing_here(),
    })
}

fn get(method: &Method, answer: impl FnOnce() -> Answer) -> Answer {
    if method == Method::GET || method == Method::HEAD {
        return answer();
    }
    text(StatusCode::METHOD_NOT_ALLOWED, "only GET")
}

fn nothing_here() -> Answer {
    text(StatusCode::NOT_FOUND, "there is nothing here")
}

fn text(status: StatusCode, text: &'static str) -> Answer {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_before_it_is_ready() {
        let ready = Ready::default();
        let pages = probes(ready.clone());
        let status = |path: &str| pages(&Method::GET, path).status().as_u16();
        assert_eq!((status("/healthz"), status("/readyz"), status("/metrics")), (200, 503, 404));
        ready.set(true);
        assert_eq!((status("/readyz"), status("/readyz/readyz")), (200, 200));
        assert_eq!(pages(&Method::POST, "/readyz").status().as_u16(), 405);
    }

    #[test]
    fn the_metrics_have_a_page_of_their_own() {
        let pages = metrics(|| "x 1\n".to_owned());
        let answer = pages(&Method::GET, "/metrics");
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(answer.headers()[CONTENT_TYPE], METRICS_TYPE);
        assert_eq!(pages(&Method::GET, "/healthz").status().as_u16(), 404);
    }
}
