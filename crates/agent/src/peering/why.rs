//! Why something is not done: for programs, where that has a name, and for people.

use std::fmt;

use sublet_crds::Obstacle;
use sublet_crds::condition::Reason;

/// Why something is not done, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// What is in the way; none while it goes its way.
    pub obstacle: Option<Obstacle>,
    /// What happens, or has happened.
    pub message: String,
}

impl Why {
    /// Something is in the way.
    pub fn hindered(obstacle: Obstacle, message: impl Into<String>) -> Self {
        Self { obstacle: Some(obstacle), message: message.into() }
    }

    /// The reason of a condition; that one, where nothing is known to be in the way.
    pub fn reason(&self, otherwise: Reason) -> Reason {
        self.obstacle.map_or(otherwise, Reason::Hindered)
    }

    /// What happened, and what to do: what a condition says beside the reason.
    pub fn advice(&self) -> String {
        match self.obstacle {
            Some(obstacle) => format!("{}; {}", self.message, obstacle.remedy()),
            None => self.message.clone(),
        }
    }
}

/// All of it in one sentence.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(obstacle) = self.obstacle {
            write!(f, "{obstacle}: ")?;
        }
        f.write_str(&self.advice())
    }
}

impl From<&str> for Why {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<String> for Why {
    fn from(message: String) -> Self {
        Self { obstacle: None, message }
    }
}
