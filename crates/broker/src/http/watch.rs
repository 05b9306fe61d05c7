//! Stage 10 of 12 · instruct — what a cluster must do, as lines of JSON that come when it changes.
//!
//! Upstream: `stream` says what changed. Downstream: the agents act on it.
//!
//! A line's cursor says what was told completely: within a list that is still being told it is the
//! one from before the list, so that whoever is cut off in the middle is told all of it again. A
//! stream ends when its reader is revoked, when its certificate expires, or with a `GOODBYE` when
//! the broker goes away or its authority was replaced. Between these lines come the messages of other
//! clusters, which have no cursor.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use sublet_wire::v1::{self, WatchEvent};
use sublet_wire::{Problem, encode};

use super::app::App;
use super::call::{Call, busy, parameter};
use super::reply::PIECE_BYTES;
use crate::admission::{Busy, Seat, Share, Turn};
use crate::engine::Failure;
use crate::identity::Identity;
use crate::mail::{self, Delivery};
use crate::stream::{Cursor, Part, Stream};

/// When to come back after a goodbye.
const COME_BACK_SECONDS: u32 = 1;
/// About as long as the line of an instruction, with what it needs beside its text.
const LINE_BYTES: usize = 512;
/// The cursor of whoever was told nothing completely yet.
const NOTHING: &str = "0.0";

/// Opens a stream.
pub(super) async fn open(call: &Call) -> Result<Response, Problem> {
    let cluster = call.cluster()?.clone();
    let after = call.parameter("after").map(str::parse::<Cursor>).transpose();
    let after = after.map_err(|error| parameter("after", &error.to_string()))?;
    let seat = call.peer.share.stream().map_err(|full| {
        let problem = busy(full);
        Problem { error: format!("too many streams: {}", problem.error), ..problem }
    })?;
    let opened = Stream::open(call.app.engine.clone(), cluster, after);
    let opened = tokio::time::timeout(call.app.limits.request, opened).await;
    let opened = opened.unwrap_or(Err(Failure::Overloaded));
    let (stream, first) = opened.map_err(|failure| call.problem(failure))?;
    let mut reader = Reader {
        next: Box::pin(next(stream)),
        mail: call.app.mail.reader(call.cluster()?.clone()),
        told: after,
        lines: VecDeque::new(),
        ended: false,
        end: Box::pin(end(call)),
        app: Arc::clone(&call.app),
        identity: Arc::clone(&call.identity),
        share: Arc::clone(&call.peer.share),
        room: None,
        _open: Open::new(&call.app, seat),
    };
    reader.make_room(&first).map_err(busy)?;
    reader.tell(&first);
    let lines = unfold(reader, |mut reader| async {
        let line = reader.line().await?;
        Some((Ok::<_, Infallible>(line), reader))
    });
    let mut response = Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(WatchEvent::CONTENT_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The broker or the authority goes: come back.
    Goodbye,
    /// The reader is shut out.
    Revoked,
}

/// Waits for the end.
fn end(call: &Call) -> impl Future<Output = End> + Send + 'static {
    let (leaving, shut) = (call.peer.leaving.clone(), call.app.revoked.clone());
    let identity = Arc::clone(&call.identity);
    async move {
        tokio::select! {
            () = leaving.wait() => End::Goodbye,
            () = shut.until_covers(&identity) => End::Revoked,
        }
    }
}

/// Counts an open stream.
struct Open {
    app: Arc<App>,
    _seat: Seat,
}

impl Open {
    fn new(app: &Arc<App>, seat: Seat) -> Self {
        app.metrics.streams.inc();
        Self { app: Arc::clone(app), _seat: seat }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.app.metrics.streams.dec();
    }
}

/// A stream, and what it brought.
type Next = (Stream, Result<Part, Failure>);

async fn next(mut stream: Stream) -> Next {
    let part = stream.next().await;
    (stream, part)
}

/// One reader.
struct Reader {
    /// Kept while other things happen, so that nothing that it has begun to tell is lost.
    next: Pin<Box<dyn Future<Output = Next> + Send>>,
    /// What other clusters send.
    mail: mail::Reader,
    /// Everything up to here was told.
    told: Option<Cursor>,
    lines: VecDeque<Bytes>,
    ended: bool,
    end: Pin<Box<dyn Future<Output = End> + Send>>,
    app: Arc<App>,
    identity: Arc<Identity>,
    share: Arc<Share>,
    /// What the lines take that wait to be taken, as of other long answers.
    room: Option<Turn>,
    _open: Open,
}

impl Reader {
    /// The next line; none at the end.
    async fn line(&mut self) -> Option<Bytes> {
        if !self.ended && self.app.revoked.covers(&self.identity) {
            self.finish(End::Revoked);
        }
        while self.lines.is_empty() && !self.ended {
            self.room = None;
            self.wait().await;
        }
        self.lines.pop_front()
    }

    async fn wait(&mut self) {
        tokio::select! {
            biased;
            end = &mut self.end => self.finish(end),
            (stream, part) = &mut self.next => match part {
                Ok(_) if self.is_expired() => self.finish(End::Goodbye),
                // Whoever does not take its other answers comes back when it has.
                Ok(part) if self.make_room(&part).is_err() => self.finish(End::Goodbye),
                Ok(part) => {
                    self.next = Box::pin(next(stream));
                    self.tell(&part);
                }
                // Whoever comes back is told from where it was.
                Err(_) => self.finish(End::Goodbye),
            },
            delivery = self.mail.next(|| self.app.machine.read().monotonic) => {
                self.deliver(delivery);
            }
            () = tokio::time::sleep(self.app.limits.keep_alive) => self.live(),
        }
    }

    /// What another cluster sent. It is told when everything before was taken, one at a time, and only
    /// if its sender is still believed.
    fn deliver(&mut self, delivery: Delivery) {
        if self.is_expired() {
            return self.finish(End::Goodbye);
        }
        if self.app.revoked.covers(&delivery.sender) {
            return;
        }
        self.app.metrics.messages_delivered.inc();
        let event = WatchEvent::message(delivery.message);
        self.push(&event);
    }

    /// Nothing happened; the stream lives, if its reader still may read.
    fn live(&mut self) {
        if self.is_expired() {
            return self.finish(End::Goodbye);
        }
        let event = WatchEvent::bookmark(self.cursor());
        self.push(&event);
    }

    /// The reader's certificate has had its time.
    fn is_expired(&self) -> bool {
        self.identity.expires_at < self.app.machine.read().wall
    }

    fn finish(&mut self, end: End) {
        if end == End::Revoked {
            // What was not taken yet is not for it any more.
            self.lines.clear();
        }
        if end == End::Goodbye {
            let event = WatchEvent::goodbye(self.cursor(), Some(COME_BACK_SECONDS));
            self.push(&event);
        }
        self.ended = true;
    }

    /// A long list takes room until its last line is taken: a cluster that opens streams and reads none
    /// would fill the memory with them.
    fn make_room(&mut self, part: &Part) -> Result<(), Busy> {
        let bytes = part.instructions.len().saturating_mul(LINE_BYTES);
        if bytes > PIECE_BYTES {
            self.room = Some(self.app.admission.answer(&self.share, bytes)?);
        }
        Ok(())
    }

    fn tell(&mut self, part: &Part) {
        if part.whole {
            self.told = None;
            let event = WatchEvent::reset(self.cursor());
            self.push(&event);
        }
        // One line says where it stands by itself; of several, only what follows the last does.
        let single = part.instructions.len() == 1 && !part.whole && !part.early;
        if single {
            self.told = Some(part.cursor);
        }
        for instruction in &part.instructions {
            let event = WatchEvent::instruction(instruction, self.cursor());
            self.push(&event);
        }
        self.told = (!part.early).then_some(part.cursor);
        if !single {
            let event = WatchEvent::bookmark(self.cursor());
            self.push(&event);
        }
    }

    fn cursor(&self) -> v1::Cursor {
        let text = self.told.map_or_else(|| NOTHING.to_owned(), |cursor| cursor.to_string());
        // Two numbers and a point are a cursor on the wire.
        text.try_into().unwrap_or_default()
    }

    fn push(&mut self, event: &WatchEvent) {
        self.lines.push_back(encode(event).into());
    }
}
