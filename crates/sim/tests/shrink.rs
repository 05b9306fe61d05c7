//! A failure is told as shortly as possible. Alone in its process: a planted bug is everywhere in it.

use sublet_sim::bugs::shortens;

#[test]
fn the_shortest_history_of_a_planted_bug_fails_alike_and_is_clean_without_it() {
    let short = shortens().unwrap();
    assert!(short.after * 2 < short.before, "{} of {} steps", short.after, short.before);
}
