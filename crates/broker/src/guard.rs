//! A connection that nobody can hold by being slow.
//!
//! Two waits end by themselves: the peer has begun a request and does not finish its headers, or it
//! does not take what was sent to it. hyper's own header timeout also runs while a connection is
//! idle, so it serves as the bound on idleness and this one as the bound on headers.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Counts the requests of one connection: those that began, and those that ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct InWork(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    began: AtomicUsize,
    ended: AtomicUsize,
}

impl InWork {
    /// One more, until the guard is dropped.
    pub(crate) fn begin(&self) -> Begun {
        self.0.began.fetch_add(1, Ordering::AcqRel);
        Begun(self.clone())
    }

    fn began(&self) -> usize {
        self.0.began.load(Ordering::Acquire)
    }

    fn any(&self) -> bool {
        self.began() != self.0.ended.load(Ordering::Acquire)
    }

    /// Waits until the first request has not come for `first`, or later none was in work for `idle`,
    /// or for twice that: it is looked at now and then, which costs busy connections nothing.
    pub(crate) async fn quiet(&self, first: Duration, idle: Duration) {
        let mut patience = first;
        loop {
            let (began, was_busy) = (self.began(), self.any());
            tokio::time::sleep(patience).await;
            if !was_busy && self.began() == began {
                return;
            }
            patience = idle;
        }
    }
}

/// A request in work.
pub(crate) struct Begun(InWork);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

/// A wait that begins, ends, and may be too long.
struct Wait {
    most: Duration,
    until: Option<Pin<Box<Sleep>>>,
}

impl Wait {
    fn new(most: Duration) -> Self {
        Self { most, until: None }
    }

    fn begin(&mut self) {
        if self.until.is_none() {
            self.until = Some(Box::pin(tokio::time::sleep_until(Instant::now() + self.most)));
        }
    }

    fn end(&mut self) {
        self.until = None;
    }

    /// Too long by now? If not, the task is woken when it is.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        self.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready())
    }
}

/// The stream between us and a peer.
pub(crate) struct Guard<S> {
    stream: S,
    in_work: InWork,
    /// How many requests had begun when the wait for headers was last looked at.
    began: usize,
    /// None for HTTP/2, whose frames come also without a request.
    head: Option<Wait>,
    write: Wait,
}

impl<S> Guard<S> {
    pub(crate) fn new(stream: S, in_work: InWork, head: Option<Duration>, write: Duration) -> Self {
        let head = head.map(Wait::new);
        Self { stream, in_work, began: 0, head, write: Wait::new(write) }
    }

    /// A write that does not go on begins a wait; one that goes on ends it.
    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.write.end();
            return result;
        }
        self.write.begin();
        if self.write.is_over(context) { Poll::Ready(Err(timed_out("write"))) } else { result }
    }
}

fn timed_out(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("the peer was too slow to {what}"))
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some(head) = this.head.as_mut() else { return result };
        let began = this.in_work.began();
        if began != this.began {
            // The headers that were waited for are complete.
            this.began = began;
            head.end();
        }
        if this.in_work.any() {
            return result;
        }
        if head.is_over(context) {
            return Poll::Ready(Err(timed_out("send its headers")));
        }
        ready!(result)?;
        if buffer.filled().len() > before {
            head.begin();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_write(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.watch_write(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch_write(context, result)
    }
}
