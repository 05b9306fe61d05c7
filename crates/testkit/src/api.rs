//! The API of a cluster as its administrator, in JSON: for what is too much or too often for kubectl.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

use crate::error::{Error, during};
use crate::http::{Connection, Identity, Request, Response};

/// How many connections are used at once where there is much to do.
const CONNECTIONS: usize = 8;

/// An API server.
#[derive(Clone, Debug)]
pub struct Api {
    port: u16,
    identity: Identity,
    /// Connections that the next ones who read may use. Tests look at the same thing again and again, and a
    /// handshake costs both sides more than an answer.
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Api {
    pub(crate) fn new(port: u16, identity: Identity) -> Self {
        Self { port, identity, idle: Arc::default() }
    }

    /// What is at a path: `/api/v1/nodes`.
    pub fn get(&self, path: &str) -> Result<Value, Error> {
        self.read(Request::get(path))
    }

    /// As [`get`](Self::get), in another form than the usual one.
    pub(crate) fn get_as(&self, accept: &'static str, path: &str) -> Result<Value, Error> {
        self.read(Request { accept, ..Request::get(path) })
    }

    fn read(&self, request: Request<'_>) -> Result<Value, Error> {
        let kept = self.idle().pop();
        // Whoever was at the other end may be gone, or another one by now: nothing is lost by asking again.
        let answered = kept.and_then(|mut kept| Some((kept.send(request).ok()?, kept)));
        let (response, connection) = answered.map_or_else(|| self.afresh(request), Ok)?;
        self.keep(connection);
        understood(request, &response)
    }

    /// Asks over a new connection.
    fn afresh(&self, request: Request<'_>) -> Result<(Response, Connection), Error> {
        let mut connection = self.connect()?;
        let what = || format!("{} {}", request.method, request.path);
        Ok((connection.send(request).map_err(during(what))?, connection))
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < CONNECTIONS {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an object in the collection at a path.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, Error> {
        self.once(creating(path, object.to_string().as_bytes()))
    }

    /// Changes an object, or its status, by a merge patch.
    pub fn patch(&self, path: &str, change: &Value) -> Result<Value, Error> {
        self.once(patching(path, change.to_string().as_bytes()))
    }

    /// Deletes the object, or all objects of the collection, at a path.
    pub fn delete(&self, path: &str) -> Result<Value, Error> {
        self.once(Request { method: "DELETE", ..Request::get(path) })
    }

    /// Hands over every event of a collection from now on, as it comes, until `see` has seen enough;
    /// a minute without any is an error.
    pub fn watch(&self, path: &str, see: impl FnMut(&Value) -> bool) -> Result<(), Error> {
        self.watch_at(&format!("{path}?watch=1"), see)
    }

    /// As [`watch`](Self::watch), of everything that happened after this version of the collection:
    /// between a list and the watch of its version nothing is missed.
    pub fn watch_after(
        &self,
        path: &str,
        version: &str,
        see: impl FnMut(&Value) -> bool,
    ) -> Result<(), Error> {
        self.watch_at(&format!("{path}?watch=1&resourceVersion={version}"), see)
    }

    fn watch_at(&self, path: &str, mut see: impl FnMut(&Value) -> bool) -> Result<(), Error> {
        let what = || format!("watching {path}");
        let mut line = |line: &[u8]| serde_json::from_slice(line).is_ok_and(|event| see(&event));
        self.connect()?.follow(path, &mut line).map_err(during(what))
    }

    /// Creates many objects, some at a time.
    pub fn create_all(&self, path: &str, objects: &[Value]) -> Result<(), Error> {
        self.each(objects, |connection, object| {
            let body = object.to_string();
            exchange(connection, creating(path, body.as_bytes())).map(drop)
        })
    }

    /// Whether the server answers a path with success.
    pub(crate) fn serves(&self, path: &str) -> bool {
        self.get_raw(path).is_ok_and(|status| status == 200)
    }

    /// Whether there is a server at all, whatever it answers.
    pub(crate) fn answers(&self, path: &str) -> bool {
        self.get_raw(path).is_ok()
    }

    fn get_raw(&self, path: &str) -> io::Result<u16> {
        let mut connection = Connection::open(self.port, &self.identity)?;
        Ok(connection.send(Request::get(path))?.status)
    }

    fn once(&self, request: Request<'_>) -> Result<Value, Error> {
        exchange(&mut self.connect()?, request)
    }

    pub(crate) fn connect(&self) -> Result<Connection, Error> {
        Connection::open(self.port, &self.identity)
            .map_err(during(|| format!("connecting to port {}", self.port)))
    }

    /// Does something with each item, over some connections at once; the first error ends it.
    pub(crate) fn each<T: Sync>(
        &self,
        items: &[T],
        work: impl Fn(&mut Connection, &T) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let one_connection = || -> Result<(), Error> {
            let mut connection = self.connect()?;
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                work(&mut connection, item)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS.min(items.len()) {
                scope.spawn(|| {
                    if let Err(error) = one_connection() {
                        next.store(items.len(), Ordering::Relaxed);
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    }
                });
            }
        });
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }
}

pub(crate) fn creating<'a>(path: &'a str, body: &'a [u8]) -> Request<'a> {
    Request { method: "POST", body, ..Request::get(path) }
}

pub(crate) fn patching<'a>(path: &'a str, body: &'a [u8]) -> Request<'a> {
    let content_type = "application/merge-patch+json";
    Request { method: "PATCH", content_type, body, ..Request::get(path) }
}

/// One request, and the object that came back.
pub(crate) fn exchange(connection: &mut Connection, request: Request<'_>) -> Result<Value, Error> {
    let what = || format!("{} {}", request.method, request.path);
    let response = connection.send(request).map_err(during(what))?;
    understood(request, &response)
}

/// The object in an answer, or why there is none.
fn understood(request: Request<'_>, response: &Response) -> Result<Value, Error> {
    let what = || format!("{} {}", request.method, request.path);
    let text = String::from_utf8_lossy(&response.body);
    if !(200..300).contains(&response.status) {
        let said = serde_json::from_str::<Value>(&text).ok();
        let said = said.and_then(|status| Some(status.get("message")?.as_str()?.to_owned()));
        let said = said.unwrap_or_else(|| text.into_owned());
        return Err(Error::Refused { request: what(), status: response.status, said });
    }
    serde_json::from_str(&text).map_err(|error| during(what)(error.into()))
}
