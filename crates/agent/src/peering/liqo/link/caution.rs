//! What may follow from a look that is a moment old. A look costs lists, and for each that must be exact
//! an API server may take a tenth of a second, in which it asks its store.

use sublet_core::instruction::Side;

use super::seen::Seen;
use super::step::{Say, Step};

/// Does it only add something, so that it does no harm if what there is has changed a moment ago?
pub(super) fn is_harmless(step: &Step) -> bool {
    match step {
        Step::MakeNamespace
        | Step::Bind
        | Step::MarkUsed(_)
        | Step::MakeNonce
        | Step::WriteTenant(..)
        | Step::WriteSigned(_)
        | Step::Resign
        | Step::WriteIdentity(..) => true,
        Step::Say(say) => {
            !matches!(say, Say::Refusal { .. } | Say::Unlink { .. } | Say::Unlinked { .. })
        }
        _ => false,
    }
}

/// What there is after a step that changes nothing here, or nothing that is not known.
pub(super) fn still_so(mut seen: Seen, step: &Step) -> Option<Seen> {
    match (step, &mut seen.namespace) {
        (Step::Say(_), _) => {}
        (Step::MarkUsed(Side::Provider), Some(place)) => place.unused_as_provider = None,
        (Step::MarkUsed(Side::Requester), Some(place)) => place.unused_as_requester = None,
        _ => return None,
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::super::seen::Place;
    use super::*;
    use sublet_core::time::Time;

    #[test]
    fn what_takes_something_away_is_not_harmless() {
        for step in
            [Step::DeleteTenant, Step::DeleteIdentity, Step::DeleteNonce, Step::FreeStranded]
        {
            assert!(!is_harmless(&step), "{step:?}");
        }
        assert!(is_harmless(&Step::MakeNamespace) && is_harmless(&Step::Say(Say::Call)));
    }

    #[test]
    fn after_a_letter_all_is_as_it_was_and_after_a_mark_all_but_the_mark() {
        let place = Place {
            unused_as_requester: Some(Time::from_millis(1)),
            unused_as_provider: Some(Time::from_millis(2)),
            ..Place::default()
        };
        let seen = Seen { namespace: Some(place), ..Seen::default() };
        let told = still_so(seen.clone(), &Step::Say(Say::Call)).unwrap().namespace.unwrap();
        assert!(told.unused_as_requester.is_some());
        let used = Step::MarkUsed(Side::Requester);
        let used = still_so(seen.clone(), &used).unwrap().namespace.unwrap();
        assert!(used.unused_as_requester.is_none() && used.unused_as_provider.is_some());
        assert!(still_so(seen, &Step::MakeNonce).is_none());
    }
}
