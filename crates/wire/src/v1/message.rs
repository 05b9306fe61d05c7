//! What one cluster's agent tells another's, carried by the broker, which does not understand it.
//!
//! A message is soft: the broker keeps the newest of a sender, a receiver and a slot for a little
//! while, in memory alone, and hands it to the receiver's stream. Whoever wants an answer sends again
//! until it comes.

use serde::Serialize;
use sublet_core::id::ClusterId;
use sublet_core::time::Span;

use crate::decode::object;
use crate::limits::{MESSAGE_CONTENT_MAX, MESSAGE_SLOT_MAX, MESSAGE_TTL_MAX};
use crate::{Code, Invalid, Problem};

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Message {
    /// Who sent it, which the broker fills in from the certificate; in a request it may be left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Whom it is for.
    pub to: String,
    /// What it is about, chosen by the sender: a newer message in a slot replaces the one before.
    pub slot: String,
    /// What it says. Nobody but the two clusters understands it.
    pub content: String,
    /// How long the broker keeps it, as a Go duration such as `1m`; without it, as long as it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

object!(Message {
    "from" => from,
    "to" => to,
    "slot" => slot,
    "content" => content,
    "ttl" => ttl,
});

/// A message as it was read and checked, without its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Whom it is for.
    pub to: ClusterId,
    /// What it is about.
    pub slot: String,
    /// What it says.
    pub content: String,
    /// How long it is kept.
    pub ttl: Span,
}

impl Posted {
    /// As the receiver is shown it: how long it was kept is no matter of his.
    pub fn shown(&self, from: &ClusterId) -> Message {
        let (from, to) = (from.to_string(), self.to.to_string());
        let (slot, content) = (self.slot.clone(), self.content.clone());
        Message { from, to, slot, content, ttl: None }
    }
}

impl Message {
    /// Reads what was sent; the sender is known from elsewhere.
    pub fn to_post(self) -> Result<Posted, Problem> {
        let to = self.to.parse::<ClusterId>();
        let to = to.map_err(|error| Invalid::field("to".to_owned(), error))?;
        let is_letter = |b: u8| b.is_ascii_lowercase() || b == b'-';
        let length = self.slot.len();
        if !(1..=MESSAGE_SLOT_MAX).contains(&length) || !self.slot.bytes().all(is_letter) {
            let rule = format!("a slot has 1 to {MESSAGE_SLOT_MAX} characters of a-z and '-'");
            return Err(Invalid::field("slot".to_owned(), rule).into());
        }
        if self.content.len() > MESSAGE_CONTENT_MAX {
            return Err(too_long());
        }
        if self.content.is_empty() || self.content.chars().any(char::is_control) {
            let rule = "a message says something, without control characters";
            return Err(Invalid::field("content".to_owned(), rule).into());
        }
        let ttl = ttl(self.ttl.as_deref())?;
        Ok(Posted { to, slot: self.slot, content: self.content, ttl })
    }
}

fn too_long() -> Problem {
    let said = format!("the content of a message has at most {MESSAGE_CONTENT_MAX} bytes");
    let mut problem = Problem::new(Code::BodyTooLarge, said);
    problem.details.field = Some("content".to_owned());
    problem.details.limit = Some(MESSAGE_CONTENT_MAX.to_string());
    problem
}

fn ttl(text: Option<&str>) -> Result<Span, Invalid> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(MESSAGE_TTL_MAX) };
    match text.parse::<Span>() {
        Ok(span) if !span.is_zero() && span <= MESSAGE_TTL_MAX => Ok(span),
        Ok(_) => Err(Invalid::field(
            "ttl".to_owned(),
            format!("it is more than 0s and at most {MESSAGE_TTL_MAX}"),
        )),
        Err(error) => Err(Invalid::field("ttl".to_owned(), error)),
    }
}
