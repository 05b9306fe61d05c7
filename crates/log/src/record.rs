//! One record: a batch of events that became true together, chained to the record before it.
//!
//! `{"format":1,"revision":…,"writer":…,"time":…,"previous":…,"events":[…],"checksum":…}` on one
//! line. It is encoded once, when it is sealed, and carries its text from then on: what is hashed,
//! appended, sent to a replica and backed up are the same bytes. A record is shared, not copied.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sublet_core::event::Event;
use sublet_core::id::Revision;
use sublet_core::time::Time;

use crate::frame::{self, Checksum};
use crate::{Head, Refusal};

/// Why there is no such record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Beyond the limit.
    #[error(
        "a record of {0} bytes is larger than the {max} that every home can hold: use smaller batches",
        max = Record::BYTES_MAX
    )]
    TooLarge(usize),
    /// It would not follow its head.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The text cannot be believed.
    #[error(transparent)]
    Frame(#[from] frame::Error),
    /// The events are not those of this version.
    #[error("its events are not understood; they may come from another version of sublet")]
    Events(#[source] serde_json::Error),
}

/// Who wrote a record: random for each process, so that a broker recognises its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer(pub u128);

impl Writer {
    /// Enough of it for people.
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Not 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a writer is 32 lower-case hexadecimal digits")]
pub struct NotAWriter;

impl FromStr for Writer {
    type Err = NotAWriter;
    fn from_str(text: &str) -> Result<Self, NotAWriter> {
        frame::hex_u128(text).map(Self).ok_or(NotAWriter)
    }
}

/// What is known of a record without parsing its events: enough to verify a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its place.
    pub revision: Revision,
    /// Who wrote it.
    pub writer: Writer,
    /// The broker's time when it was planned.
    pub time: Time,
    /// The checksum of the record before it.
    pub previous: Checksum,
    /// Its own.
    pub checksum: Checksum,
}

impl Envelope {
    /// Verifies a text's checksum and reads what surrounds its events.
    pub fn open(text: &str) -> Result<Self, Error> {
        open(text).map(|(envelope, _)| envelope)
    }

    /// The log's head when this is its last record.
    pub fn head(&self) -> Head {
        Head { revision: self.revision, checksum: self.checksum, time: self.time }
    }
}

/// The events of a record that is being made, encoded as they come: the encoding is done while an
/// earlier record is being written, and whoever fills it knows its size.
#[derive(Clone, Debug, Default)]
pub struct Body {
    events: Vec<Event>,
    /// The events as JSON, with commas between them.
    text: Vec<u8>,
}

impl Body {
    /// An empty one with room for so many bytes and events, so that it need not grow up to there.
    pub fn with_room(bytes: usize, events: usize) -> Self {
        Self { events: Vec::with_capacity(events), text: Vec::with_capacity(bytes) }
    }

    /// Adds an event.
    pub fn push(&mut self, event: Event) -> Result<(), Error> {
        let end = self.text.len();
        if end > 0 {
            self.text.push(b',');
        }
        if let Err(error) = serde_json::to_writer(&mut self.text, &event) {
            self.text.truncate(end);
            return Err(Error::Events(error));
        }
        self.events.push(event);
        Ok(())
    }

    /// All of these events.
    pub fn of(events: impl IntoIterator<Item = Event>) -> Result<Self, Error> {
        let mut body = Self::default();
        events.into_iter().try_for_each(|event| body.push(event))?;
        Ok(body)
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The bytes so far.
    pub fn size(&self) -> usize {
        self.text.len()
    }
}

/// One record.
#[derive(Clone)]
pub struct Record(Arc<Parts>);

struct Parts {
    envelope: Envelope,
    events: Vec<Event>,
    text: String,
}

impl Record {
    /// Twice this, as it is when a home must escape each byte of it, is still below the 1.5 MiB
    /// that etcd, and so Kubernetes, takes in one object, with room for what surrounds it.
    pub const BYTES_MAX: usize = 512 * 1024;

    /// The record that follows `after`.
    pub fn seal(after: &Head, writer: Writer, time: Time, body: Body) -> Result<Self, Error> {
        let revision = after.revision.next();
        if time < after.time {
            return Err(Refusal::Backwards { revision }.into());
        }
        let previous = after.checksum;
        let millis = time.as_millis();
        let Body { events, text: list } = body;
        // JSON is UTF-8. If it should not be, nothing is written: a record without them would lose them.
        let list = String::from_utf8(list)
            .map_err(|error| Error::Events(serde::ser::Error::custom(error)))?;
        let envelope = format!(
            "{begin},\"revision\":{revision},\"writer\":\"{writer}\",\"time\":{millis},\
             \"previous\":\"{previous}\",\"events\":[",
            begin = frame::begin()
        );
        // In one piece of the right size: while this is made, the disk has nothing to do.
        let mut text = String::with_capacity(envelope.len() + list.len() + 1 + frame::TAIL_BYTES);
        text.push_str(&envelope);
        text.push_str(&list);
        text.push(']');
        let (text, checksum) = frame::end(text);
        check_size(&text)?;
        let envelope = Envelope { revision, writer, time, previous, checksum };
        Ok(Self(Arc::new(Parts { envelope, events, text })))
    }

    /// Reads a record back, and believes nothing that its checksum does not cover.
    pub fn decode(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let (envelope, events) = open(&text)?;
        let events = serde_json::from_str(events).map_err(Error::Events)?;
        Ok(Self(Arc::new(Parts { envelope, events, text })))
    }

    /// The one line that is kept, without a line end.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// What surrounds the events.
    pub fn envelope(&self) -> &Envelope {
        &self.0.envelope
    }

    /// The log's head when this is its last record: what the next one is sealed after.
    pub fn head(&self) -> Head {
        self.0.envelope.head()
    }

    /// Its place.
    pub fn revision(&self) -> Revision {
        self.0.envelope.revision
    }

    /// Who wrote it.
    pub fn writer(&self) -> Writer {
        self.0.envelope.writer
    }

    /// The broker's time when it was planned.
    pub fn time(&self) -> Time {
        self.0.envelope.time
    }

    /// The checksum of the record before it.
    pub fn previous(&self) -> Checksum {
        self.0.envelope.previous
    }

    /// Its own.
    pub fn checksum(&self) -> Checksum {
        self.0.envelope.checksum
    }

    /// What became true.
    pub fn events(&self) -> &[Event] {
        &self.0.events
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Record {}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

fn open(text: &str) -> Result<(Envelope, &str), Error> {
    check_size(text)?;
    let (mut fields, checksum) = frame::open(text)?;
    let envelope = Envelope {
        revision: Revision(fields.number("revision")?),
        writer: Writer(fields.hex("writer")?),
        time: Time::from_millis(fields.number("time")?),
        previous: fields.checksum("previous")?,
        checksum,
    };
    Ok((envelope, fields.last("events")?))
}

fn check_size(text: &str) -> Result<(), Error> {
    if text.len() > Record::BYTES_MAX { Err(Error::TooLarge(text.len())) } else { Ok(()) }
}
