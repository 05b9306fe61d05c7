//! Slices on real Liqo. `cargo xtask test` knows such tests by the name of this module, and leaves them
//! out, by name, where Liqo cannot be had.

/// Runs scenarios on a fresh pair of clusters, one after the other: a pair takes longer to start than
/// any of them. Whoever uses it has a module `world` with a rig and the world on it.
macro_rules! scenarios {
    ($($scenario:path),* $(,)?) => {{
        let clock = sublet_testkit::wait::Stopwatch::start();
        let rig = world::Rig::start();
        eprintln!("a pair with Liqo after {:?}", clock.elapsed());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        runtime.unwrap().block_on(async {
            let mut all = world::World::new(&rig).await;
            $(
                let clock = sublet_testkit::wait::Stopwatch::start();
                $scenario(&mut all).await;
                eprintln!("{} after {:?}", stringify!($scenario), clock.elapsed());
            )*
        });
    }};
}

mod by_liqoctl;
mod linking;
mod world;
mod snapshot;
mod guests;
mod granting;
mod ending;
mod stubborn;
mod losing;
mod hostile;

#[test]
fn a_slice_is_exactly_what_is_reserved_and_nobody_can_take_more() {
    scenarios!(
        granting::a_node_is_exactly_as_large_as_its_reservation,
        granting::two_reservations_are_two_nodes,
        granting::amounts_follow_the_reservation_up_and_down,
        granting::a_slice_that_is_ahead_of_its_instruction_waits,
        granting::a_slice_without_a_reservation_is_denied,
        granting::whoever_asks_for_more_gets_what_is_reserved,
        granting::nobody_grants_himself_anything,
        granting::what_somebody_else_changes_is_put_right_without_a_broker,
        granting::trouble_with_a_link_ends_nothing_that_was_granted,
        granting::whoever_wants_to_be_somebody_else_is_denied,
        hostile::whoever_asks_for_more_is_cut_and_counted,
        hostile::whoever_poses_as_another_gets_nothing,
        granting::without_liqos_webhook_nothing_is_lent,
    );
}

#[test]
fn a_reservation_ends_with_nothing_left_of_it() {
    scenarios!(
        ending::a_release_leaves_nothing_behind,
        ending::pods_leave_before_their_node_does,
        ending::a_disruption_budget_is_honoured_until_the_deadline,
        ending::the_last_node_takes_the_remote_namespaces_with_it,
        ending::both_may_be_restarted_between_any_two_steps,
    );
}

#[test]
fn an_end_comes_whoever_does_not_want_it() {
    scenarios!(
        stubborn::a_stuck_pod_stops_nobody_else,
        stubborn::a_requester_that_is_silent_loses_its_pods,
        stubborn::nobody_holds_on_to_what_is_over,
        hostile::whoever_clings_to_what_is_over_loses_it,
        stubborn::what_nobody_wants_is_swept,
    );
}

#[test]
fn a_provider_may_be_lost_and_come_back() {
    scenarios!(losing::a_lost_provider_is_given_up_and_cleans_up_when_it_returns);
}
