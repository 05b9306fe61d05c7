//! Whatever happens in whatever order, the rules hold: random commands through `plan` and `apply`,
//! recounted and judged after every step (see `world`).
//!
//! `SUBLET_CASES=10000 cargo test -p sublet-core --test properties` looks longer.

#[path = "model/mod.rs"]
mod model;
#[path = "properties/ops.rs"]
mod ops;
mod world;

use ops::{Player, op, policy};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[expect(clippy::disallowed_methods, reason = "a test looks longer on demand")]
fn cases(few: u32) -> Config {
    let more = std::env::var("SUBLET_CASES").ok().and_then(|text| text.parse().ok());
    Config { cases: more.unwrap_or(few), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn any_sequence_of_commands_keeps_every_rule(policy in policy(), ops in vec(op(), 1..150)) {
        let mut player = Player::new(policy);
        for op in &ops {
            player.play(op);
        }
        player.world.check_replay();
    }
}

#[test]
fn the_random_requests_contend() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(cases(60), rng);
    let (mut asked, mut refused) = (0, 0);
    for _ in 0..60 {
        let ops = vec(op(), 150).new_tree(&mut runner).unwrap().current();
        let mut player = Player::new(sublet_core::policy::Policy::default());
        ops.iter().for_each(|op| player.play(op));
        (asked, refused) = (asked + player.asked, refused + player.refused);
    }
    let percent = refused * 100 / asked;
    assert!((30..=70).contains(&percent), "{percent} % of {asked} requests are refused");
}
