//! Requests, instructions and the broker, on real API servers.

mod line;
mod looking;
mod hearing;
mod hindered;
mod world;
mod life;
mod crowd;
mod phases;
mod apart;
mod crashes;
mod outage;
mod old;

use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use sublet_crds::{RequestPhase, ResourceRequest};
use sublet_wire::v1::Reservation;

use crate::on_kubernetes::until::until;
use world::{House, Town, clusters};

/// Two clusters, and a broker between them. Rome borrows, Milan lends.
struct World {
    house: House,
    rome: Town,
    milan: Town,
}

impl World {
    /// Creates a request in Rome.
    async fn ask(&self, name: &str, spec: Value) -> ResourceRequest {
        let object = json!({
            "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ResourceRequest",
            "metadata": { "name": name }, "spec": spec,
        });
        let object = serde_json::from_value(object).unwrap();
        self.rome.requests().create(&PostParams::default(), &object).await.unwrap()
    }

    /// The request, once it is in this phase.
    async fn in_phase(&self, name: &str, phase: RequestPhase) -> ResourceRequest {
        let api = self.rome.requests();
        let last = std::sync::Mutex::new(None);
        until(&format!("{name} to be {phase:?}"), || async {
            let found = api.get(name).await.unwrap();
            let is_there = found.status.as_ref().and_then(|status| status.phase) == Some(phase);
            let mut last = last.lock().unwrap();
            if *last != found.status {
                eprintln!("  {name}: {:?}", found.status.as_ref().map(|s| (s.phase, &s.message)));
                last.clone_from(&found.status);
            }
            is_there.then_some(found)
        })
        .await
    }

    async fn delete(&self, name: &str) {
        self.rome.requests().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a deleted request is gone, and with it everything that it brought about.
    async fn is_clean(&self) {
        until("no request, no instruction, nothing held", || async {
            let requests = self.rome.requests().list(&ListParams::default()).await.unwrap();
            let live = requests.items.iter().filter(|one| {
                let phase = one.status.as_ref().and_then(|status| status.phase);
                one.metadata.deletion_timestamp.is_some()
                    || !phase.is_some_and(RequestPhase::is_over)
            });
            let borrowed = self.rome.borrowed().list(&ListParams::default()).await.unwrap();
            let lent = self.milan.lent().list(&ListParams::default()).await.unwrap();
            let held = self.rome.reservations().await;
            let held = held.iter().filter(|one| is_live(one)).count();
            let sum = live.count() + borrowed.items.len() + lent.items.len() + held;
            (sum == 0).then_some(())
        })
        .await;
    }
}

impl World {
    /// Waits until so many reservations are held, each with an instruction in both clusters that is
    /// carried out, and no instruction is there without one.
    async fn balances(&self, live: usize) {
        until("books that balance", || async {
            let held = self.rome.reservations().await;
            let held = sorted(held.iter().filter(|one| is_live(one)).map(|one| one.id.clone()));
            let borrowed = self.rome.borrowed().list(&ListParams::default()).await.unwrap();
            let borrowed = borrowed.items.into_iter().map(|one| {
                let is_done = one.status.is_some_and(|status| status.delivered);
                if is_done { one.spec.reservation_name } else { String::new() }
            });
            let lent = self.milan.lent().list(&ListParams::default()).await.unwrap();
            let lent = lent.items.into_iter().map(|one| {
                let is_done = one.status.is_some_and(|status| status.enforced);
                if is_done { one.spec.reservation_name } else { String::new() }
            });
            let balance = held.len() == live && held == sorted(borrowed) && held == sorted(lent);
            balance.then_some(())
        })
        .await;
    }
}

/// In order, and with whatever is there twice.
fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Is something of it left?
fn is_live(reservation: &Reservation) -> bool {
    !matches!(&*reservation.status.phase, "Released" | "Failed")
}

fn small() -> Value {
    json!({ "requestedCPU": "500m", "requestedMemory": "256Mi", "priority": 10, "duration": "1h" })
}

/// All of it in one, because a pair of clusters takes longer to start than all of this to run.
#[test]
fn requests_become_reservations_and_instructions_and_leave_nothing_behind() {
    let clusters = clusters();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        let house = House::new().await;
        let options = |name| house.authority.options(name, house.address());
        let mut rome = Town::new(&clusters[0], "rome", options("rome")).await;
        let mut milan = Town::new(&clusters[1], "milan", options("milan")).await;
        rome.begin(None);
        milan.begin(None);
        let mut world = World { house, rome, milan };
        life::a_request_is_reserved_used_and_given_back(&world).await;
        life::a_refusal_says_why_and_a_change_is_asked_anew(&world).await;
        life::a_request_may_wait_and_may_stop_waiting(&world).await;
        life::a_reservation_ends_with_its_time(&world).await;
        life::a_reservation_that_its_provider_takes_back_has_failed(&world).await;
        life::amounts_can_be_changed_while_it_runs(&world).await;
        life::an_edit_that_makes_no_sense_leaves_what_runs(&world).await;
        life::an_instruction_that_somebody_deletes_comes_back(&world).await;
        looking::what_is_in_force_is_looked_at_again_and_not_written(&mut world).await;
        hindered::what_could_not_be_joined_says_why_after_its_end(&world).await;
        hindered::what_was_in_force_is_not_given_up_but_says_what_is_wrong(&world).await;
        hearing::what_the_other_side_sends_is_heard_also_after_a_restart(&mut world).await;
        outage::what_is_asked_and_given_back_while_the_broker_is_away_happens_later(&mut world)
            .await;
        outage::what_nobody_reserved_is_removed(&mut world).await;
        outage::what_has_a_wrong_name_is_removed_and_the_right_one_stays(&mut world).await;
        outage::what_ended_while_the_agents_were_away_is_seen(&mut world).await;
        outage::what_expired_while_the_agents_were_away_is_taken_down(&mut world).await;
        outage::an_end_that_takes_time_is_written_down_though_nothing_was(&mut world).await;
        crashes::the_agents_may_die_after_any_step_of_a_reservation(&mut world).await;
        crashes::the_agents_may_die_after_any_step_of_a_change(&mut world).await;
        crashes::the_agents_may_die_after_any_step_of_a_failure(&mut world).await;
        crashes::the_agents_may_die_after_any_step_of_a_release(&mut world).await;
        phases::a_request_may_be_deleted_before_it_has_a_phase(&mut world).await;
        phases::a_request_may_be_deleted_in_every_phase(&mut world).await;
        phases::each_phase_was_an_event(&world).await;
        crowd::two_hundred_at_once_are_all_reserved_and_nothing_twice(&world).await;
        apart::watches_may_break_at_any_time(&world).await;
        apart::two_agents_of_one_cluster_do_no_harm(&mut world).await;
        apart::clocks_may_be_hours_apart(&mut world).await;
        apart::api_servers_may_die_and_come_back(&world, &clusters).await;
        apart::a_provider_may_disappear_and_come_back(&mut world).await;
        old::an_old_broker_is_understood(&clusters, world).await;
    });
}
