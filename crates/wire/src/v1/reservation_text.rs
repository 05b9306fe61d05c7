//! What is said of a reservation in words, and what its enums are called on the wire.

use sublet_core::reservation::{
    Actor, Confirmation, Ending, Hindrance, Reason, Reservation, State,
};

use super::reservation::View;

/// A reason as the wire names it.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::ReleasedByRequester => "ReleasedByRequester",
        Reason::WithdrawnByProvider => "WithdrawnByProvider",
        Reason::ReleasedByOperator => "ReleasedByOperator",
        Reason::Expired => "Expired",
        Reason::Drained => "Drained",
        Reason::ProviderLost => "ProviderLost",
        Reason::PeeringFailed => "PeeringFailed",
        Reason::NeverActivated => "NeverActivated",
        Reason::WaitOver => "WaitOver",
    }
}

/// What is known of the provider, as the wire names it.
pub(crate) fn confirmation(known: Confirmation) -> &'static str {
    match known {
        Confirmation::Confirmed => "Confirmed",
        Confirmation::Unconfirmed => "Unconfirmed",
        Confirmation::ProviderLost => "ProviderLost",
        Confirmation::NothingHeld => "NothingHeld",
    }
}

/// Somebody who did something, for people.
pub fn actor(actor: &Actor) -> String {
    match actor {
        Actor::Cluster(cluster) => format!("cluster {cluster}"),
        Actor::Operator(name) => format!("operator {name}"),
        Actor::Broker => "the broker".to_owned(),
    }
}

/// Where a reservation stands, for people; what it has in common with the Go system in its words.
pub(crate) fn message(known: &Reservation, view: View) -> String {
    let ended = |ending: &Ending| ended(ending, is_told(known, ending, view));
    match &known.state {
        State::Pending { .. } => "Waiting until a cluster has room".to_owned(),
        State::Reserved(grant) => format!("Resources locked in cluster {}", grant.provider),
        State::Active(grant) => format!("Resources in use in cluster {}", grant.provider),
        State::Releasing(grant, ending) => {
            format!(
                "{}; cluster {} has not confirmed yet that it is gone",
                ended(ending),
                grant.provider
            )
        }
        State::Ended { ending, .. } => ended(ending),
    }
}

/// What kept two clusters apart, in a sentence.
pub fn hindrance(why: &Hindrance) -> String {
    let parts = [why.word(), why.text()].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(": ")
}

/// May whoever reads it know what kept the clusters apart, beyond the word for it? What a requester found at
/// home has names and addresses of its cluster in it, which are none of the provider's business.
fn is_told(known: &Reservation, ending: &Ending, view: View) -> bool {
    let is_by_provider = || {
        let provider = known.grant().map(|grant| &grant.provider);
        matches!(&ending.by, Actor::Cluster(cluster) if Some(cluster) == provider)
    };
    view == View::Full || is_by_provider()
}

fn ended(ending: &Ending, is_told: bool) -> String {
    let said = match ending.reason {
        Reason::ReleasedByRequester => "Released by its requester",
        Reason::WithdrawnByProvider => "Taken back by its provider",
        Reason::ReleasedByOperator => "Released by an operator",
        Reason::Expired => "Its time was over",
        Reason::Drained => "Its provider is being emptied",
        Reason::ProviderLost => "Its provider was given up as lost",
        Reason::PeeringFailed => "The clusters could not be joined",
        Reason::NeverActivated => "The requester did not confirm use in time",
        Reason::WaitOver => "No cluster had room while it waited",
    };
    match &ending.hindrance {
        Some(why) if is_told => format!("{said}: {}", hindrance(why)),
        Some(why) if !why.word().is_empty() => format!("{said}: {}", why.word()),
        _ => said.to_owned(),
    }
}
