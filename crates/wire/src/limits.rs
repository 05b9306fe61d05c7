//! Every bound of the wire, in one place; what lies beyond it gets a clear error.

use sublet_core::time::Span;

/// The longest body of an advertisement: one with as many grants as may be reported.
pub const ADVERTISEMENT_BODY_MAX: usize = 4 << 20;
/// The longest body of any other request; real ones have fewer than a thousand bytes.
pub const BODY_MAX: usize = 64 << 10;
/// The longest document that is read at all, an answer of the broker included.
pub const DOCUMENT_MAX: usize = 16 << 20;
/// The most items that are read of a list whose items set no bound of their own: as many as the
/// broker itself shows in one list, and an older Go broker in a document that is read.
pub const LIST_MAX: usize = 20_000;
/// The most members that are read of an object whose names are free, such as labels.
pub const NAMES_MAX: usize = 256;
/// The longest line of the stream of instructions; real ones have a few hundred bytes.
pub const LINE_MAX: usize = 256 << 10;
/// What a page of a list has when nobody says how much.
pub const PAGE_DEFAULT: u32 = 100;
/// The most that a page of a list has.
pub const PAGE_MAX: u32 = 1000;
/// The longest cursor or continuation, in characters.
pub const CURSOR_MAX: usize = 128;
/// How often a quiet stream says that it is alive.
pub const KEEP_ALIVE: Span = Span::from_secs(15);
/// The longest content of a message between two agents, in bytes.
pub const MESSAGE_CONTENT_MAX: usize = 16 << 10;
/// The longest name of a slot of messages.
pub const MESSAGE_SLOT_MAX: usize = 32;
/// The longest that a message is kept for its receiver.
pub const MESSAGE_TTL_MAX: Span = Span::from_secs(120);
