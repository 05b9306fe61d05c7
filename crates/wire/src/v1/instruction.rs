//! What one side must do now, and the stream that says so.
//!
//! The stream is newline-delimited JSON, as Kubernetes watches are. Whoever comes back with the last
//! cursor that he saw (`after=<cursor>`) misses nothing. Without a cursor, or with one that is too old,
//! the stream begins with `RESET`: forget what you know, what follows until the next `BOOKMARK` is
//! everything. Several lines may belong to one revision of the log, and a stream may be cut between
//! them: so an instruction has a cursor only where nothing else belongs to it; otherwise the
//! `BOOKMARK` after the last of them has it. While nothing happens, a `BOOKMARK` says every few seconds that the stream is alive.
//! What another cluster's agent sent comes as a `MESSAGE`, which belongs to no revision and has no cursor.
//! `GOODBYE` is the last line of a broker that goes away in order: come back, here or elsewhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sublet_core::id::Generation;
use sublet_core::instruction::{self as core, Duty, Side};

use super::{Message, Quantities};
use crate::Timestamp;
use crate::decode::{leaf, object};
use crate::limits::CURSOR_MAX;

/// What one side must do now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Instruction {
    /// Because of which reservation.
    #[serde(rename = "reservationID")]
    pub reservation_id: String,
    /// To whom it is given: `Provider` or `Requester`.
    pub side: String,
    /// The other cluster.
    #[serde(rename = "peerID")]
    pub peer_id: String,
    /// What: `Keep`, `TakeDown` or `Gone`.
    pub duty: String,
    /// How much.
    pub resources: Quantities,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Its number; a lower one never overrides a higher one.
    pub generation: u32,
}

/// One line of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchEvent {
    /// What kind of line.
    #[serde(rename = "type")]
    pub kind: WatchType,
    /// Where to resume after this line; without it, where the one before says.
    #[serde(default, skip_serializing_if = "Cursor::is_empty")]
    pub cursor: Cursor,
    /// What to do, in an `INSTRUCTION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<Instruction>,
    /// What another cluster sent, in a `MESSAGE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// In a `GOODBYE`: come back after so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
}

/// What kind of line of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum WatchType {
    /// Something to do.
    Instruction,
    /// Nothing new up to here; the stream is alive. Also the end of a fresh list.
    #[default]
    Bookmark,
    /// Forget what you know: a fresh list follows.
    Reset,
    /// The broker goes away: come back, here or elsewhere.
    Goodbye,
    /// Something that another cluster's agent sent. It moves no cursor: whoever is away when it comes
    /// gets it on coming back, if it is still kept then.
    Message,
    /// One that this version does not know: passed over.
    #[serde(other)]
    #[cfg_attr(feature = "openapi", schemars(skip))]
    Other,
}

/// A place in the stream. Only the broker knows what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Cursor(String);

/// Why a text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cursor has 1 to {CURSOR_MAX} letters, digits, '.', '_' or '-': send one as it was got")]
pub struct BadCursor;

impl Cursor {
    /// The cursor as text, which needs no escaping in a URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Has none been given yet?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Cursor {
    type Error = BadCursor;

    fn try_from(text: String) -> Result<Self, BadCursor> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let fits = (1..=CURSOR_MAX).contains(&text.len()) && text.bytes().all(plain);
        if fits { Ok(Self(text)) } else { Err(BadCursor) }
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The provider confirms that it carried out an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Acknowledgement {
    /// Which instruction.
    pub generation: u32,
}

leaf!(WatchType, Cursor);
object!(Instruction {
    "reservationID" => reservation_id,
    "side" => side,
    "peerID" => peer_id,
    "duty" => duty,
    "resources" => resources,
    "expiresAt" => expires_at,
    "generation" => generation,
});
object!(WatchEvent {
    "type" => kind,
    "cursor" => cursor,
    "instruction" => instruction,
    "message" => message,
    "retryAfter" => retry_after,
});
object!(Acknowledgement { "generation" => generation });

impl Acknowledgement {
    /// Which instruction.
    pub fn to_core(&self) -> Generation {
        Generation(self.generation)
    }
}

impl From<&core::Instruction> for Instruction {
    fn from(told: &core::Instruction) -> Self {
        Self {
            reservation_id: told.reservation.to_string(),
            side: side_name(told.side).to_owned(),
            peer_id: told.peer.to_string(),
            duty: duty_name(told.duty).to_owned(),
            resources: (&told.amounts).into(),
            expires_at: told.expires_at.map(Timestamp::from),
            generation: told.generation.0,
        }
    }
}

impl Instruction {
    /// To whom it is given, if we know the name.
    pub fn side(&self) -> Option<Side> {
        [Side::Provider, Side::Requester].into_iter().find(|side| side_name(*side) == self.side)
    }

    /// What is to be done, if we know the name.
    pub fn duty(&self) -> Option<Duty> {
        [Duty::Keep, Duty::TakeDown, Duty::Gone].into_iter().find(|d| duty_name(*d) == self.duty)
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Provider => "Provider",
        Side::Requester => "Requester",
    }
}

fn duty_name(duty: Duty) -> &'static str {
    match duty {
        Duty::Keep => "Keep",
        Duty::TakeDown => "TakeDown",
        Duty::Gone => "Gone",
    }
}

impl WatchEvent {
    /// The content type of the stream.
    pub const CONTENT_TYPE: &str = "application/x-ndjson";

    /// The lines of what became known together: everything there is to do if it is the `whole`, or
    /// what changed. Only when all of it was read does the place of resuming move.
    pub fn lines<'a>(
        whole: bool,
        told: impl IntoIterator<Item = &'a core::Instruction>,
        cursor: Cursor,
    ) -> Vec<Self> {
        let reset = whole.then(|| Self::reset(Cursor::default()));
        let told = told.into_iter().map(|told| Self::instruction(told, Cursor::default()));
        reset.into_iter().chain(told).chain([Self::bookmark(cursor)]).collect()
    }

    /// Something to do; an empty cursor if more belongs to it.
    pub fn instruction(told: &core::Instruction, cursor: Cursor) -> Self {
        Self {
            kind: WatchType::Instruction,
            instruction: Some(told.into()),
            ..Self::bookmark(cursor)
        }
    }

    /// Nothing new up to here.
    pub fn bookmark(cursor: Cursor) -> Self {
        Self { kind: WatchType::Bookmark, cursor, ..Self::default() }
    }

    /// A fresh list follows.
    pub fn reset(cursor: Cursor) -> Self {
        Self { kind: WatchType::Reset, cursor, ..Self::default() }
    }

    /// Something that another cluster sent.
    pub fn message(message: Message) -> Self {
        Self { kind: WatchType::Message, message: Some(message), ..Self::default() }
    }

    /// The broker goes away.
    pub fn goodbye(cursor: Cursor, retry_after: Option<u32>) -> Self {
        Self { kind: WatchType::Goodbye, cursor, retry_after, ..Self::default() }
    }
}
