//! On any books: the pick is the one that a naive look at everybody finds, and every change that a
//! refusal proposes leads to a grant.

mod fleets;
mod judge;

use fleets::{LARGE, SMALL, asks, built, name, step};
use judge::{check_answers, is_better};

use crate::fleet::{Fleet, ask, id};
use proptest::prelude::*;
use sublet_core::resources::Resources;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn the_pick_is_the_best_and_what_is_proposed_is_granted(
        steps in prop::collection::vec(step(SMALL), 0..60),
        asks in prop::collection::vec(asks(SMALL), 1..12),
        limit in prop::option::weighted(0.3, 0..8_u64),
        forbidden in prop::option::weighted(0.3, name(SMALL)),
    ) {
        check_answers(&built(steps, limit, forbidden), &asks)?;
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn the_same_holds_in_a_fleet_of_several_hundred(
        steps in prop::collection::vec(step(LARGE), 900..1200),
        asks in prop::collection::vec(asks(LARGE), 24),
        limit in prop::option::weighted(0.2, 8..16_u64),
        forbidden in prop::option::weighted(0.3, name(LARGE)),
    ) {
        let refused = check_answers(&built(steps, limit, forbidden), &asks)?;
        prop_assert!(refused > 0, "nothing was refused");
    }
}

#[test]
fn the_test_itself_sees_a_wrong_pick() {
    let size = Resources::new(8, 8);
    let fleet =
        Fleet::new().with("c1", size.clone(), Resources::new(4, 4)).with("c2", size.clone(), size);
    assert!(is_better(&fleet, &ask(1, 1), &id("c2"), &id("c1")));
    assert!(!is_better(&fleet, &ask(1, 1), &id("c1"), &id("c2")));
}
