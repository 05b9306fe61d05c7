//! Slices on real Liqo. `cargo xtask test` knows such tests by the name of this module, and leaves them
//! out, by name, where Liqo cannot be had.

use serde_json::json;
use sublet_testkit::Api;

macro_rules! timed {
    ($scenario:path, $all:ident) => {
        let clock = sublet_testkit::wait::Stopwatch::start();
        $scenario(&mut $all).await;
        eprintln!("{} after {:?}", stringify!($scenario), clock.elapsed());
    };
}

/// Runs scenarios on a fresh pair of clusters, one after the other: a pair takes longer to start than
/// any of them. Whoever uses it has a module `world` with a rig and the world on it. Those after
/// `with all` are run with `$SUBLET_TEST_ALL` alone, which `cargo xtask test --all` sets: what takes long
/// and goes the same ways as others.
macro_rules! scenarios {
    (in $rig:path, $world:path; $($scenario:path),* $(,)? $(; with all $($more:path),* $(,)?)?) => {{
        let clock = sublet_testkit::wait::Stopwatch::start();
        let rig = $rig();
        eprintln!("a pair with Liqo after {:?}", clock.elapsed());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        runtime.unwrap().block_on(async {
            let mut all = $world(&rig).await;
            $(timed!($scenario, all);)*
            $(if super::is_whole() {
                $(timed!($more, all);)*
            })?
        });
    }};
    ($($scenarios:tt)*) => {
        scenarios!(in world::Rig::start, world::World::new; $($scenarios)*)
    };
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration but its environment")]
fn is_whole() -> bool {
    std::env::var_os("SUBLET_TEST_ALL").is_some()
}

/// What stands for a network that an operator made: it is in the namespace of the pair, and somebody else's.
fn network_to_milan(rome: &Api) -> String {
    let all = "/apis/networking.liqo.io/v1beta1/namespaces/liqo-tenant-milan/configurations";
    let network = json!({
        "apiVersion": "networking.liqo.io/v1beta1", "kind": "Configuration",
        "metadata": { "name": "milan", "labels": { "liqo.io/remote-cluster-id": "milan" } },
        "spec": { "remote": { "cidr": { "pod": ["10.1.0.0/16"], "external": ["10.2.0.0/16"] } } },
    });
    rome.create(all, &network).unwrap();
    format!("{all}/milan")
}

mod pair;
mod by_liqoctl;
mod linking;
mod links;
mod world;
mod snapshot;
mod audited;
mod guests;
mod granting;
mod enforcing;
mod ending;
mod stubborn;
mod losing;
mod stranded;
mod drained;
mod hostile;
mod forging;
mod holding;
mod taking;
mod policed;

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
        forging::whoever_asks_for_another_group_is_refused_before_liqo_signs,
        taking::nobodys_pods_take_more_than_is_counted,
        granting::what_is_reserved_for_another_leaves_nothing,
        policed::a_policy_that_somebody_removes_is_back_at_once,
        policed::a_slice_of_liqos_own_class_is_seen,
        enforcing::without_liqos_webhook_nothing_is_lent,
        enforcing::how_liqo_was_started_is_seen_or_nothing_is_lent,
    );
}

#[test]
fn a_reservation_ends_with_nothing_left_of_it() {
    scenarios!(
        ending::a_release_leaves_nothing_behind,
        ending::pods_leave_before_their_node_does,
        ending::a_node_is_empty_when_all_its_pods_were_looked_at,
        ending::a_disruption_budget_is_honoured_until_the_deadline,
        ending::the_last_node_takes_the_remote_namespaces_with_it,
        ending::a_link_is_unused_when_nothing_is_to_be_kept_any_more,
        ending::both_may_be_restarted_between_any_two_steps,
        drained::a_requester_that_was_drained_has_everything_again,
        // The last, because it kills an API server.
        losing::a_lost_provider_is_given_up_and_cleans_up_when_it_returns,
    );
}

#[test]
fn an_end_comes_whoever_does_not_want_it() {
    scenarios!(
        stubborn::a_stuck_pod_stops_nobody_else,
        stubborn::a_requester_that_is_silent_loses_its_pods,
        stubborn::nobody_holds_on_to_what_is_over,
        holding::a_slice_is_not_held_by_what_belongs_to_it,
        holding::nothing_of_a_requesters_is_held,
        hostile::whoever_clings_to_what_is_over_loses_it,
        stubborn::a_pod_that_got_in_without_a_webhook_ends_like_any_other,
        stubborn::pods_end_although_no_webhook_answers,
        stubborn::pods_leave_although_no_webhook_answers,
        stubborn::what_nobody_wants_is_swept,
        stubborn::pods_of_what_is_over_are_swept,
    );
}

#[test]
fn a_link_that_goes_before_its_slices_strands_nobody() {
    scenarios!(in world::Rig::unlinked, world::World::joined;
        stranded::a_tenant_deleted_under_a_slice_is_back,
        stranded::a_new_key_of_the_requester_is_taken_under_slices_that_live,
        stranded::a_provider_reminds_liqo_of_a_copy_without_a_quota,
        policed::a_slice_of_liqos_own_class_does_not_stay,
        stranded::a_slice_that_ends_without_its_tenant_strands_nobody,
        stranded::a_requester_that_comes_back_too_late_is_rid_of_everything,
    );
}
