//! Clusters joined by the real liqoctl, and by programs that only pretend to be it.

mod world;
mod life;
mod ending;
mod lying;

#[test]
fn a_pair_has_one_slice_of_all_its_reservations_and_none_after_the_last() {
    scenarios!(
        life::two_reservations_are_one_slice_of_their_sum,
        life::both_may_be_restarted_at_any_time,
        ending::pods_leave_before_the_clusters_part,
        ending::capacity_is_back_when_its_pods_are_gone,
        ending::what_nobody_wants_is_swept,
        ending::an_existing_network_is_left_alone;
        with all
        life::both_directions_of_a_pair_coexist,
    );
}

#[test]
fn a_pair_ends_whoever_is_silent_or_lost() {
    scenarios!(
        ending::a_requester_that_is_silent_is_drained,
        // The last, because it kills an API server.
        ending::a_lost_provider_is_given_up_and_cleans_up_when_it_returns,
    );
}

#[test]
fn liqoctl_is_not_believed() {
    scenarios!(
        lying::whoever_does_nothing_is_not_believed,
        lying::whoever_hangs_is_ended,
        lying::whoever_fails_is_heard_and_tried_again,
        lying::a_kubeconfig_must_be_there_and_of_that_cluster,
        lying::what_is_in_force_outlives_a_missing_file;
        with all
        lying::what_somebody_peered_by_hand_is_his,
    );
}
