//! What a requester asks for, and what is wrong with it before anybody is asked.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::advertisement::Backends;
use crate::decision::{Constraint, Match, Strategy};
use crate::id::ClusterId;
use crate::resources::{Kind, Resources};
use crate::time::Span;

/// What a requester asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// How much.
    pub resources: Resources,
    /// Higher goes first among those that arrive or wait together.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i32,
    /// The one provider that will do, if only one will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ClusterId>,
    /// Labels that the provider must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// How to choose, if not as the broker does by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// For how long; none means the operator's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// How long it may wait for something to fit; none means not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// The requester will confirm use; old agents never do, so no deadline is set for them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub activates: bool,
    /// How the requester can be joined; empty when it did not say.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backends: Backends,
}

/// Why an ask was refused before anybody was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Every request takes some cpu and some memory.
    #[error("a request needs some {0}: ask for more than 0")]
    Nothing(Kind),
    /// It would be over at once.
    #[error("a duration of 0 would end at once: leave it out, or say for example 1h")]
    NoTime,
    /// More extended resources than are kept, those counted that are still held from before.
    #[error(
        "more than {max} extended resources, with those held until the provider confirms: leave \
         some out, or wait",
        max = Resources::EXTENDED_MAX
    )]
    Kinds,
    /// More constraints than are looked at.
    #[error("more than {max} constraints: leave some out", max = Ask::CONSTRAINTS_MAX)]
    Constraints,
    /// More or longer texts than are compared.
    #[error(
        "a constraint names one label of at most {label} characters and at most {values} values of \
         at most {value}, of letters, digits and '-_./': correct it",
        label = Ask::LABEL_MAX, values = Ask::VALUES_MAX, value = Ask::VALUE_MAX
    )]
    Constraint,
    /// Longer than anything we keep time for.
    #[error("{0} is longer than ten years: ask for less")]
    TooLong(&'static str),
}

impl Ask {
    /// More than any real request has had by far.
    pub const CONSTRAINTS_MAX: usize = 16;
    /// A prefix, a slash and a name: what Kubernetes allows.
    pub const LABEL_MAX: usize = 317;
    /// What Kubernetes allows.
    pub const VALUE_MAX: usize = 63;
    /// More than any real constraint has had by far.
    pub const VALUES_MAX: usize = 16;
    /// Ten years: beyond it, sums of times would have to be doubted.
    pub const SPAN_MAX: Span = Span::from_secs(10 * 365 * 24 * 3600);

    /// Checks what the types alone cannot say.
    pub fn check(&self) -> Result<(), AskError> {
        let long = |span: Option<Span>| span.is_some_and(|span| span > Self::SPAN_MAX);
        match self {
            ask if ask.resources.cpu == 0 => Err(AskError::Nothing(Kind::Cpu)),
            ask if ask.resources.memory == 0 => Err(AskError::Nothing(Kind::Memory)),
            ask if ask.duration == Some(Span::default()) => Err(AskError::NoTime),
            ask if long(ask.duration) => Err(AskError::TooLong("duration")),
            ask if long(ask.wait) => Err(AskError::TooLong("wait")),
            ask if ask.constraints.len() > Self::CONSTRAINTS_MAX => Err(AskError::Constraints),
            ask if !ask.constraints.iter().all(is_short) => Err(AskError::Constraint),
            _ => Ok(()),
        }
    }
}

fn is_short(constraint: &Constraint) -> bool {
    let values = match &constraint.is {
        Match::In(values) | Match::NotIn(values) => values.as_slice(),
        Match::Exists | Match::Absent => &[],
    };
    // Kubernetes has no other characters in labels, and none of these grows when it is written.
    let plain =
        |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    constraint.label.len() <= Ask::LABEL_MAX
        && plain(&constraint.label)
        && values.len() <= Ask::VALUES_MAX
        && values.iter().all(|value| value.len() <= Ask::VALUE_MAX && plain(value))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
