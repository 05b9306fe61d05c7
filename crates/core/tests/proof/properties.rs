//! Whatever happens in whatever order, the rules hold: random commands through `plan` and `apply`,
//! recounted and judged after every step (see `world`).
//!
//! `SUBLET_CASES=10000 cargo test -p sublet-core --test proof` looks longer.

mod events;
mod ops;
mod play;

use std::collections::BTreeSet;

use ops::{op, policy};
use play::Player;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sublet_core::advertisement::{Advertisement, GrantReport};
use sublet_core::books::Books;
use sublet_core::id::{ClusterId, Generation, ReservationId};
use sublet_core::invariants;
use sublet_core::ledger::{Ledger, Stamp};
use sublet_core::policy::Policy;
use sublet_core::resources::Resources;
use sublet_core::time::Time;

#[expect(clippy::disallowed_methods, reason = "a test looks longer on demand")]
fn cases(few: u32) -> Config {
    let more = std::env::var("SUBLET_CASES").ok().and_then(|text| text.parse().ok());
    Config { cases: more.unwrap_or(few), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn any_sequence_of_commands_keeps_every_rule(policy in policy(), ops in vec(op(), 1..150)) {
        let mut player = Player::new(policy);
        for op in &ops {
            player.play(op);
        }
        player.world.check_replay();
    }

    #[test]
    fn a_grant_at_once_does_what_its_request_and_its_grant_do(
        history in vec(events::event(), 0..40),
        reserved in events::reserved(),
    ) {
        let (mut books, at) = (Books::default(), Stamp::default());
        for event in history {
            // Some are refused, and change nothing.
            drop(books.apply(at, &event));
        }
        let mut stepped = books.clone();
        let steps = reserved.steps(at.time);
        let refused = steps.iter().any(|step| stepped.apply(at, step).is_err());
        prop_assert_eq!(books.apply(at, &reserved).is_err(), refused);
        if !refused {
            prop_assert_eq!(books.ledger(), stepped.ledger());
        }
    }

    #[test]
    fn any_event_is_folded_or_refused_whole_and_can_be_taken_back(
        reported in vec((events::id(), events::cluster(), events::amounts()), 0..4),
        history in vec((events::stamp(), events::event(), any::<bool>()), 1..80),
    ) {
        let mut books = Books::default();
        let mut now = Stamp::default();
        hear_reports(&mut books, reported);
        for (later, event, keep) in history {
            // Most records follow each other; some come from nowhere.
            let at = if keep || later.revision >= now.revision { now } else { later };
            let before = books.ledger().clone();
            match books.apply(at, &event) {
                Err(_) => prop_assert_eq!(books.ledger(), &before),
                Ok(reversal) if !keep => {
                    books.revert(reversal).unwrap();
                    prop_assert_eq!(books.ledger(), &before);
                }
                Ok(_) => now = Stamp { revision: now.revision.next(), ..now },
            }
            prop_assert_eq!(invariants::check_books(&books), []);
            let image = serde_json::to_string(books.ledger()).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Ledger>(&image).unwrap(), books.ledger());
        }
    }
}

/// Every provider reports some grants, so that ghosts and use have to be kept along.
fn hear_reports(books: &mut Books, reported: Vec<(ReservationId, ClusterId, Resources)>) {
    for (id, provider, amounts) in reported {
        let requester = provider.clone();
        let used = Resources::new(amounts.cpu / 2, amounts.memory / 2);
        let generation = Generation(1);
        let report =
            GrantReport { id, generation, requester, amounts, used: used.clone(), remaining: None };
        let allocatable = Resources::new(u64::MAX, u64::MAX);
        let plain = Advertisement::plain(provider, allocatable, used);
        let advertisement = Advertisement { grants: Some(std::vec![report]), ..plain };
        let heard = advertisement.validated().unwrap();
        books.hear(heard, Time::default(), &Policy::default().silence);
    }
}

/// What the random commands must lead to: events, replies, refusals, reasons, states.
#[rustfmt::skip]
const EVERYTHING: [&str; 49] = [
    "Acknowledged", "Activated", "Adopted", "Advertised", "Capped", "Confirmed", "Cordoned", "Done",
    "Drained", "Ended", "Ending", "Expired", "Filled", "Forgotten", "Generation", "Ghost", "Granted",
    "InUse", "KeyReleased", "KeyReused", "Lost", "NeverActivated", "NobodyFits", "NotFound",
    "NothingHeld", "NothingToFill", "OnlySuspects", "Overcommitted", "PeeringFailed", "Phase",
    "ProviderIsOld", "ProviderLost", "Reconciled", "Reinstated", "ReleasedByOperator",
    "ReleasedByRequester", "Renewed", "Requested", "Reservation", "Resized", "Returned", "Revoked",
    "Swept", "TooManyReservations", "TooManyWaiting", "Unconfirmed", "Uncordoned", "WaitOver",
    "WithdrawnByProvider",
];

#[test]
fn the_random_commands_contend_and_reach_everything() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(cases(300), rng);
    let (mut asked, mut refused, mut seen) = (0, 0, BTreeSet::new());
    for _ in 0..300 {
        let ops = (policy(), vec(op(), 150)).new_tree(&mut runner).unwrap().current();
        let mut player = Player::new(ops.0);
        ops.1.iter().for_each(|op| player.play(op));
        (asked, refused) = (asked + player.asked, refused + player.refused);
        seen.append(&mut player.seen);
    }
    let percent = refused * 100 / asked;
    assert!((30..=70).contains(&percent), "{percent} % of {asked} requests are refused");
    let missed: Vec<_> = EVERYTHING.iter().filter(|name| !seen.contains(**name)).collect();
    assert!(missed.is_empty(), "never seen: {missed:?}");
}
