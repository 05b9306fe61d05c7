//! What a client is told when something went wrong, in the two shapes that the Go agents read.
//!
//! The Go broker answers with plain text on some routes and with `{"error": …}` on others. Both
//! stay; a stable [`Code`] is added to each: as a member, and as the header `X-Sublet-Code`.

use std::fmt;

use serde::Serialize;

use crate::v1::Explanation;
use crate::{Code, decode, encode};

/// Something in a request that cannot be right, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The member or parameter, as in `requestedResources.cpu`.
    pub field: String,
    /// What is wrong with it, and what to do; it names the field.
    pub message: String,
}

impl Invalid {
    /// The message is the field and the cause.
    pub fn field(field: String, cause: impl fmt::Display) -> Self {
        let message = format!("{field}: {cause}");
        Self { field, message }
    }

    /// The message is in the Go system's words, which name the field in their own way.
    pub(crate) fn said(field: &str, message: String) -> Self {
        Self { field: field.to_owned(), message }
    }
}

/// How a route tells its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Text and a newline.
    Plain,
    /// An object with the member `error`.
    Json,
}

impl Shape {
    /// The header that carries the code in either shape.
    pub const CODE_HEADER: &'static str = "x-sublet-code";

    /// The content type of errors in this shape.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

/// What a client is told when something went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[error("{error}")]
pub struct Problem {
    /// For people: what is wrong and what to do.
    pub error: String,
    /// For programs: one of the codes of docs/errors.
    #[cfg_attr(feature = "openapi", schemars(with = "Code"))]
    pub code: String,
    /// What belongs to some of them.
    #[serde(flatten)]
    pub details: Box<Details>,
}

/// What belongs to some problems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The member or parameter that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// After how many seconds to try again; also in the header `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// The reservation that it is about.
    #[serde(rename = "reservationID", default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// The phase that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The newest generation that there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The most that is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Why nobody was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

impl decode::Object for Problem {
    const NAMES: &'static [&'static str] = &[
        "error",
        "code",
        "field",
        "retryAfter",
        "reservationID",
        "phase",
        "generation",
        "limit",
        "explanation",
    ];

    fn member<'de, A: serde::de::MapAccess<'de>>(
        &mut self,
        name: &'static str,
        members: &mut A,
        trail: &decode::Trail<'_>,
    ) -> Result<(), A::Error> {
        use decode::Place;
        let (trail, details) = (&trail.member(name), &mut *self.details);
        match name {
            "error" => members.next_value_seed(Place(&mut self.error, trail)),
            "code" => members.next_value_seed(Place(&mut self.code, trail)),
            "field" => members.next_value_seed(Place(&mut details.field, trail)),
            "retryAfter" => members.next_value_seed(Place(&mut details.retry_after, trail)),
            "reservationID" => members.next_value_seed(Place(&mut details.reservation_id, trail)),
            "phase" => members.next_value_seed(Place(&mut details.phase, trail)),
            "generation" => members.next_value_seed(Place(&mut details.generation, trail)),
            "limit" => members.next_value_seed(Place(&mut details.limit, trail)),
            _ => members.next_value_seed(Place(&mut details.explanation, trail)),
        }
    }
}

impl decode::Fill for Problem {
    fn fill<'de, D: serde::Deserializer<'de>>(
        &mut self,
        reader: D,
        trail: &decode::Trail<'_>,
    ) -> Result<(), D::Error> {
        decode::fill_object(self, reader, trail)
    }
}

impl Problem {
    /// A problem without details.
    pub fn new(code: Code, error: impl Into<String>) -> Self {
        Self { error: error.into(), code: code.as_str().to_owned(), details: Box::default() }
    }

    /// The code, if it is one that we know.
    pub fn code(&self) -> Option<Code> {
        Code::named(&self.code)
    }

    /// The HTTP status to answer with.
    pub fn status(&self) -> u16 {
        self.code().unwrap_or(Code::Internal).status()
    }

    /// The same, to be tried again after so many seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.retry_after = Some(seconds);
        self
    }

    /// The body in this shape.
    pub fn body(&self, shape: Shape) -> Vec<u8> {
        match shape {
            Shape::Json => encode(self),
            Shape::Plain => format!("{}\n", self.error).into_bytes(),
        }
    }
}

/// A code that needs no further words; where the Go broker has some for it, they are these.
impl From<Code> for Problem {
    fn from(code: Code) -> Self {
        let said = match code {
            Code::CertificateRequired => "Client certificate required",
            Code::InvalidIdentity => "Invalid certificate: no cluster ID in CN",
            Code::ClusterMismatch => "Cluster ID does not match certificate",
            Code::NoSuchRoute => "404 page not found",
            Code::NoAdvertisement => "Advertisement not found",
            Code::MethodNotAllowed => "Method Not Allowed",
            other => other.meaning(),
        };
        Self::new(code, said)
    }
}

impl From<Invalid> for Problem {
    fn from(Invalid { field, message }: Invalid) -> Self {
        let mut problem = Self::new(Code::InvalidField, message);
        problem.details.field = Some(field);
        problem
    }
}

impl From<decode::Error> for Problem {
    fn from(error: decode::Error) -> Self {
        let field = match &error {
            decode::Error::TooMany { path, most } => {
                let mut problem = Self::from(Invalid::said(path, error.to_string()));
                problem.details.limit = Some(most.to_string());
                return problem;
            }
            decode::Error::Malformed { path, .. } if !path.is_empty() => Some(path.clone()),
            _ => None,
        };
        // The Go broker says no more than the first three words.
        let mut problem = Self::new(Code::InvalidBody, format!("Invalid request body: {error}"));
        problem.details.field = field;
        problem
    }
}
