//! Why something is not done: for programs, where that has a name, and for people.

use std::fmt;

use sublet_core::instruction::Side;
use sublet_crds::Obstacle;
use sublet_crds::condition::Reason;
use sublet_wire::v1::Failed;

/// Why something is not done, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// What is in the way; none while it goes its way.
    pub obstacle: Option<Obstacle>,
    /// What is in the way if it stays like this.
    pub suspect: Option<Obstacle>,
    /// What happens, or has happened.
    pub message: String,
}

impl Why {
    /// Something is in the way.
    pub fn hindered(obstacle: Obstacle, message: impl Into<String>) -> Self {
        Self { obstacle: Some(obstacle), suspect: None, message: message.into() }
    }

    /// Something passes by itself, or is in the way.
    pub fn suspected(suspect: Obstacle, message: impl Into<String>) -> Self {
        Self { obstacle: None, suspect: Some(suspect), message: message.into() }
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

    /// What the broker is told of it, and through it the other cluster: a requester what it found at home, a
    /// provider no more than what is between the two.
    pub fn failed(&self, side: Side) -> Failed {
        let obstacle = self.obstacle.map(|obstacle| obstacle.word().to_owned());
        let is_shared = side == Side::Requester || self.obstacle.is_some_and(is_shared);
        let why = if is_shared { self.advice() } else { NEUTRAL.to_owned() };
        Failed { why, obstacle }
    }
}

/// What a provider says of what is its own business.
pub(crate) const NEUTRAL: &str =
    "the provider cannot do its part now; what is in the way there, its operator sees";

/// Is it about what is between two clusters, so that the other may know more of it than its name? What an API
/// server answers, and what Liqo says, can have names and addresses in it.
pub(crate) fn is_shared(obstacle: Obstacle) -> bool {
    matches!(
        obstacle,
        Obstacle::KeyNotPinned
            | Obstacle::SignatureRefused
            | Obstacle::CsrRefused
            | Obstacle::CsrChanged
            | Obstacle::BrokerTooOld
            | Obstacle::PeerRefused
            | Obstacle::PeerSilent
            | Obstacle::Unsuitable
            | Obstacle::TenantNotActive
            | Obstacle::ForeignClass
            | Obstacle::BadCertificateRequest
            | Obstacle::AmountsDiffer
    )
}

/// How much is repeated of what another cluster says.
const QUOTED_MAX: usize = 300;

/// What another cluster has written, for people: plain text, and not too much of it, which is seen.
pub(crate) fn quoted(text: &str) -> String {
    // Spaces of no width, and what sets the direction of writing, would change what else is read.
    let is_odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut plain = text.chars().filter(|c| !is_odd(*c));
    let mut kept: String = plain.by_ref().take(QUOTED_MAX).collect();
    if plain.next().is_some() {
        kept.push('…');
    }
    kept
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
        Self { obstacle: None, suspect: None, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_cluster_wrote_is_plain_and_short() {
        assert_eq!(quoted("no\u{1b}[2J way\n\u{202e}"), "no[2J way");
        let whole = "ä".repeat(QUOTED_MAX);
        assert_eq!(quoted(&whole), whole);
        assert_eq!(quoted(&(whole.clone() + "b")), whole + "…");
    }

    #[test]
    fn a_provider_says_the_word_and_nothing_of_its_own() {
        let secret = "pods is forbidden: User system:serviceaccount:inner:sublet cannot list";
        for obstacle in [Obstacle::Forbidden, Obstacle::ApiServerSilent, Obstacle::LiqoSilent] {
            let why = Why::hindered(obstacle, secret);
            let told = why.failed(Side::Provider);
            assert_eq!(told.obstacle.as_deref(), Some(obstacle.word()));
            assert_eq!(told.why, NEUTRAL);
            assert!(why.failed(Side::Requester).why.contains(secret), "it is its own");
            assert!(why.to_string().contains(secret), "at home all of it is said");
        }
        assert_eq!(Why::from(secret).failed(Side::Provider).why, NEUTRAL);
        let between = Why::hindered(Obstacle::KeyNotPinned, "aa is not bb");
        assert!(between.failed(Side::Provider).why.contains("aa is not bb"));
    }
}
