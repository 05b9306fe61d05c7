//! Links of two clusters on real Liqo, with a relay between the agents that can be as bad as a broker
//! may be.

mod relay;
mod world;
mod life;
mod repairs;
mod keys;
mod hostile;
mod words;

pub(super) use keys::{PINS, another_key};
pub(super) use relay::Relay;
pub(super) use world::folder;

#[test]
fn what_somebody_breaks_is_made_whole() {
    scenarios!(
        repairs::a_tenant_deleted_by_hand_is_back,
        repairs::an_identity_deleted_under_a_slice_is_back,
        repairs::what_the_agent_may_not_see_stays,
        repairs::everything_of_one_side_deleted_is_back,
        keys::a_certificate_that_liqo_renews_changes_nothing_else,
        keys::new_keys_of_the_provider_are_taken_when_the_pin_says_so,
        keys::new_keys_of_the_requester_are_taken_when_the_pin_says_so,
    );
}

#[test]
fn two_clusters_are_linked_while_they_need_it_and_nobody_becomes_another() {
    scenarios!(
        hostile::a_key_that_is_not_pinned_is_refused,
        hostile::letters_of_an_earlier_link_do_nothing,
        hostile::a_poser_is_nobody,
        hostile::what_liqo_objects_to_is_said_to_both,
        words::what_liqo_says_of_a_tenant_is_understood,
        life::a_link_comes_from_nothing_and_leaves_nothing,
        life::both_directions_of_a_pair_coexist,
        life::a_link_that_is_needed_again_is_kept,
        life::a_network_of_the_operators_keeps_the_namespace_it_is_in,
        life::letters_may_be_lost_doubled_and_late,
        life::both_agents_may_end_after_each_step,
    );
}
