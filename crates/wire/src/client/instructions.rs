//! The stream of instructions, which comes back by itself at the place where it was cut.

use std::sync::Arc;

use http::Method;
use tokio::time::{Instant, sleep_until, timeout};

use super::call::query;
use super::lines::{End, Lines};
use super::transport::{Call, Transport};
use super::{Error, pause};
use crate::decode::decode;
use crate::paths;
use crate::v1::{Cursor, Instruction, Message, WatchEvent, WatchType};

/// What the stream says.
#[derive(Debug)]
pub enum Event {
    /// It is open, for the first time or again: an agent advertises now.
    Connected,
    /// Forget what you know: a fresh list follows.
    Reset,
    /// Something to do.
    Instruction(Instruction),
    /// What another cluster sent.
    Message(Message),
    /// Everything up to here was told: the list is complete, or nothing is new.
    Synced,
    /// It was cut, or could not be opened. It is tried again by itself; whoever sees that there is
    /// no use in it (a certificate that was revoked) stops asking.
    Interrupted(Error),
}

/// The stream of what a cluster must do.
pub struct Instructions {
    transport: Arc<Transport>,
    broker: usize,
    cursor: Option<Cursor>,
    open: Option<Lines>,
    /// Between a reset and its bookmark a cursor is of no use: half a list is no list.
    in_list: bool,
    failures: u32,
    not_before: Option<Instant>,
}

impl Instructions {
    pub(super) fn new(transport: Arc<Transport>, cursor: Option<Cursor>) -> Self {
        let broker = transport.preferred();
        Self {
            transport,
            broker,
            cursor,
            open: None,
            in_list: false,
            failures: 0,
            not_before: None,
        }
    }

    /// Where to resume: to be kept by whoever wants to begin here after a restart.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    /// What happens next; it never ends. Nothing is lost when this future is dropped.
    pub async fn next(&mut self) -> Event {
        loop {
            let Some(lines) = self.open.as_mut() else {
                return match self.connect().await {
                    Ok(()) => Event::Connected,
                    Err(error) => self.interrupted(error),
                };
            };
            let after = self.transport.options.silence;
            let url = || self.transport.url(self.broker).to_owned();
            let line = match timeout(after, lines.next()).await {
                Ok(Ok(line)) => line,
                Ok(Err(End::Closed)) => return self.interrupted(Error::Closed { url: url() }),
                Ok(Err(End::TooLong)) => return self.interrupted(Error::TooLong { url: url() }),
                Ok(Err(End::Broken(source))) => {
                    let source = Box::new(source);
                    return self.interrupted(Error::Broken { url: url(), source });
                }
                Err(_) => return self.interrupted(Error::Silent { url: url(), after }),
            };
            match decode::<WatchEvent>(&line) {
                Ok(event) => {
                    if let Some(event) = self.understood(event) {
                        return event;
                    }
                }
                Err(source) => return self.interrupted(Error::Answer { url: url(), source }),
            }
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        if let Some(time) = self.not_before {
            sleep_until(time).await;
            self.not_before = None;
        }
        let parameters = [
            ("watch", Some("true".to_owned())),
            ("after", self.cursor.as_ref().map(ToString::to_string)),
        ];
        let call = Call::new(Method::GET, query(paths::INSTRUCTIONS, &parameters));
        let body = self.transport.open(self.broker, &call).await?;
        self.transport.prefer(self.broker);
        self.open = Some(Lines::new(body));
        self.in_list = false;
        Ok(())
    }

    /// What a line means to the caller, if anything.
    fn understood(&mut self, line: WatchEvent) -> Option<Event> {
        // Only a broker that says something sensible is forgiven its earlier failures.
        self.failures = 0;
        match line.kind {
            WatchType::Reset => {
                self.in_list = true;
                self.cursor = None;
                Some(Event::Reset)
            }
            WatchType::Bookmark => {
                self.in_list = false;
                self.advance(line.cursor);
                Some(Event::Synced)
            }
            WatchType::Instruction => {
                self.advance(line.cursor);
                line.instruction.map(Event::Instruction)
            }
            WatchType::Message => line.message.map(Event::Message),
            WatchType::Goodbye => {
                self.advance(line.cursor);
                let url = self.transport.url(self.broker).to_owned();
                Some(self.interrupted(Error::Goodbye { url, retry_after: line.retry_after }))
            }
            // A newer broker may say more.
            WatchType::Other => None,
        }
    }

    fn advance(&mut self, cursor: Cursor) {
        if !self.in_list && !cursor.is_empty() {
            self.cursor = Some(cursor);
        }
    }

    /// The stream is cut: the next broker is tried, after a pause.
    fn interrupted(&mut self, error: Error) -> Event {
        let options = &self.transport.options;
        let wait = match error.retry_after() {
            Some(wanted) => pause::asked(wanted),
            None => pause::after(self.failures, options.pause_first, options.pause_max),
        };
        self.not_before = Some(Instant::now() + wait);
        self.failures = self.failures.saturating_add(1);
        if error.moves_on() {
            self.broker = self.broker.wrapping_add(1);
        }
        self.open = None;
        Event::Interrupted(error)
    }
}
