//! The life of a request, while everything works.

use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
};
use serde_json::{Value, json};
use sublet_agent::transport::Broker as _;
use sublet_crds::condition::{Type, holds};
use sublet_crds::{Duty, RequestPhase};

use super::{World, small};
use crate::on_kubernetes::until::until;

pub(super) async fn a_request_is_reserved_used_and_given_back(world: &World) {
    world.milan.advertise(16).await;
    world.ask("first", small()).await;
    let request = world.in_phase("first", RequestPhase::Active).await;
    let status = request.status.unwrap();
    assert_eq!(status.target_cluster_id, "milan");
    assert_eq!(status.message, "Resources reserved in cluster milan");
    assert!(status.expires_at.is_some() && status.reserved_at.is_some());
    assert_eq!(holds(&status.conditions, Type::Ready), Some(true));
    let id = status.reservation_name;
    let borrowed = world.rome.borrowed().get(&id).await.unwrap();
    let spec = &borrowed.spec;
    assert_eq!(spec.message, "Use milan for 500m CPU / 256Mi Memory");
    assert_eq!((&*spec.reservation_name, &*spec.target_cluster_id), (&*id, "milan"));
    assert_eq!((&*spec.amounts.cpu, &*spec.amounts.memory), ("500m", "256Mi"));
    let done = borrowed.status.unwrap();
    assert!(done.delivered && done.last_update_time.is_some());
    let name = format!("{id}-provider");
    let lent = until("the provider's acknowledgement", || async {
        let lent = world.milan.lent().get(&name).await.ok()?;
        lent.status.as_ref()?.acknowledged_generation?;
        Some(lent)
    })
    .await;
    let spec = &lent.spec;
    assert_eq!(spec.message, "Hold 500m CPU / 256Mi Memory for requester rome");
    assert_eq!((spec.requester_cluster_id.as_str(), spec.duty), ("rome", Some(Duty::Keep)));
    assert!(spec.expires_at.is_some() && lent.status.unwrap().enforced);
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::all(world.rome.client.clone());
    let events = events.list(&ListParams::default()).await.unwrap();
    let reasons: Vec<_> = events.items.iter().filter_map(|event| event.reason.clone()).collect();
    for reason in ["Reserved", "Active", "Delivered"] {
        assert!(reasons.iter().any(|said| said == reason), "{reason} is not in {reasons:?}");
    }
    world.delete("first").await;
    world.is_clean().await;
    let ended = world.rome.wire.reservation(id.parse().unwrap()).await.unwrap();
    assert_eq!(ended.status.reason.as_deref(), Some("ReleasedByRequester"));
    assert_eq!(ended.status.confirmation.as_deref(), Some("Confirmed"));
}

pub(super) async fn a_refusal_says_why_and_a_change_is_asked_anew(world: &World) {
    world.milan.advertise(16).await;
    world.ask("big", json!({ "requestedCPU": "99", "requestedMemory": "1Gi" })).await;
    let request = world.in_phase("big", RequestPhase::Failed).await;
    let status = request.status.unwrap();
    let begin = "Reservation request failed: No suitable cluster found: ";
    assert!(status.message.starts_with(begin), "{}", status.message);
    assert!(status.message.contains("83"), "what is missing is named: {}", status.message);
    let accepted = status.conditions.iter().find(|one| one.type_ == "Accepted").unwrap();
    assert_eq!((&*accepted.status, &*accepted.reason), ("False", "Refused"));
    until("no finalizer on what holds nothing", || async {
        let found = world.rome.requests().get("big").await.unwrap();
        found.metadata.finalizers.is_none_or(|names| names.is_empty()).then_some(())
    })
    .await;
    let change = json!({ "spec": { "requestedCPU": "9" } });
    let patch = Patch::Merge(&change);
    world.rome.requests().patch("big", &PatchParams::default(), &patch).await.unwrap();
    world.in_phase("big", RequestPhase::Active).await;
    world.delete("big").await;
    world.is_clean().await;
}

pub(super) async fn a_request_may_wait_and_may_stop_waiting(world: &World) {
    world.milan.advertise(16).await;
    let much = json!({ "requestedCPU": "20", "requestedMemory": "1Gi", "wait": "10m" });
    for name in ["patient", "impatient"] {
        world.ask(name, much.clone()).await;
        let request = world.in_phase(name, RequestPhase::Pending).await;
        let status = request.status.unwrap();
        assert!(!status.reservation_name.is_empty() && status.target_cluster_id.is_empty());
        let reserved = status.conditions.iter().find(|one| one.type_ == "Reserved").unwrap();
        assert_eq!((&*reserved.status, &*reserved.reason), ("False", "Waiting"));
    }
    world.delete("impatient").await;
    until("the deleted one to go", || async {
        world.rome.requests().get_opt("impatient").await.unwrap().is_none().then_some(())
    })
    .await;
    world.milan.advertise(32).await;
    world.in_phase("patient", RequestPhase::Active).await;
    world.delete("patient").await;
    world.is_clean().await;
    let short = json!({ "requestedCPU": "99", "requestedMemory": "1Gi", "wait": "1s" });
    world.ask("short", short).await;
    let request = world.in_phase("short", RequestPhase::Failed).await;
    assert_eq!(request.status.unwrap().message, "No cluster had room while it waited");
    world.delete("short").await;
}

/// Renewed every two seconds, with four to spare where the machine stands still for a moment.
pub(super) fn renewed() -> Value {
    json!({ "requestedCPU": "1", "requestedMemory": "1Gi", "duration": "6s", "renew": true })
}

pub(super) async fn a_reservation_ends_with_its_time(world: &World) {
    world.milan.advertise(16).await;
    let brief = json!({ "requestedCPU": "1", "requestedMemory": "1Gi", "duration": "2s" });
    world.ask("brief", brief).await;
    world.ask("kept", renewed()).await;
    let first = world.in_phase("kept", RequestPhase::Active).await.status.unwrap().expires_at;
    let request = world.in_phase("brief", RequestPhase::Released).await;
    let ready = request.status.unwrap().conditions;
    let ready = ready.iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!((&*ready.status, &*ready.reason), ("False", "Expired"));
    until("the other to be renewed", || async {
        let status = world.rome.requests().get("kept").await.unwrap().status.unwrap();
        assert_eq!(status.phase, Some(RequestPhase::Active));
        let later =
            status.expires_at.unwrap().0.as_second() - first.as_ref().unwrap().0.as_second();
        (later >= 4).then_some(())
    })
    .await;
    world.delete("brief").await;
    world.delete("kept").await;
    world.is_clean().await;
}

pub(super) async fn a_reservation_that_its_provider_takes_back_has_failed(world: &World) {
    world.milan.advertise(16).await;
    world.ask("taken", small()).await;
    let request = world.in_phase("taken", RequestPhase::Active).await;
    world.milan.http.release(&request.status.unwrap().reservation_name).await.unwrap();
    let request = world.in_phase("taken", RequestPhase::Failed).await;
    let status = request.status.unwrap();
    assert_eq!(status.message, "Taken back by its provider");
    world.is_clean().await;
    world.delete("taken").await;
}

pub(super) async fn amounts_can_be_changed_while_it_runs(world: &World) {
    world.milan.advertise(16).await;
    world.ask("grows", small()).await;
    let request = world.in_phase("grows", RequestPhase::Active).await;
    let status = request.status.unwrap();
    let (id, end) = (status.reservation_name, status.expires_at);
    let resize = |cpu: &str| json!({ "spec": { "requestedCPU": cpu } });
    let (api, how) = (world.rome.requests(), PatchParams::default());
    api.patch("grows", &how, &Patch::Merge(&resize("2"))).await.unwrap();
    let name = format!("{id}-provider");
    until("both sides to know the new amounts", || async {
        let lent = world.milan.lent().get(&name).await.unwrap();
        let borrowed = world.rome.borrowed().get(&id).await.unwrap();
        let is_known = lent.spec.amounts.cpu == "2" && borrowed.spec.amounts.cpu == "2";
        let status = lent.status.unwrap();
        let is_done = status.acknowledged_generation == lent.spec.instruction_generation;
        (is_known && is_done && status.enforced).then_some(())
    })
    .await;
    let observed = until("the change to be dealt with", || async {
        let found = api.get("grows").await.unwrap();
        let status = found.status.unwrap();
        (status.observed_generation == found.metadata.generation).then_some(status)
    })
    .await;
    assert_eq!(observed.expires_at, end, "other amounts do not move the end");
    api.patch("grows", &how, &Patch::Merge(&resize("99"))).await.unwrap();
    until("a change that cannot be to be refused", || async {
        let found = api.get("grows").await.unwrap();
        let status = found.status.unwrap();
        assert_eq!(status.phase, Some(RequestPhase::Active));
        let accepted = holds(&status.conditions, Type::Accepted);
        (accepted == Some(false) && status.observed_generation == found.metadata.generation)
            .then_some(())
    })
    .await;
    world.delete("grows").await;
    world.is_clean().await;
}

/// The definition of requests in Rome.
fn definition(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(world.rome.client.clone(), &ApiResource::from_gvk(&kind))
}

/// Takes the rules out of a schema, which the Go system's has not either.
fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(all) => {
            all.remove("x-kubernetes-validations");
            all.values_mut().for_each(without_rules);
        }
        Value::Array(all) => all.iter_mut().for_each(without_rules),
        _ => {}
    }
}

pub(super) async fn an_edit_that_makes_no_sense_leaves_what_runs(world: &World) {
    const KIND: &str = "resourcerequests.rear.fluidos.eu";
    world.milan.advertise(16).await;
    world.ask("typo", small()).await;
    let status = world.in_phase("typo", RequestPhase::Active).await.status.unwrap();
    let (api, how) = (world.rome.requests(), PatchParams::default());
    let edit = |cpu: &str| json!({ "spec": { "requestedCPU": cpu } });
    api.patch("typo", &how, &Patch::Merge(&edit("lots"))).await.expect_err("the rules refuse it");
    let rules = definition(world).get(KIND).await.unwrap().data["spec"]["versions"].clone();
    let mut none = rules.clone();
    without_rules(&mut none);
    let versions = |all: &Value| json!({ "spec": { "versions": all } });
    definition(world).patch(KIND, &how, &Patch::Merge(&versions(&none))).await.unwrap();
    until("the edit to be taken", || async {
        api.patch("typo", &how, &Patch::Merge(&edit("lots"))).await.ok()
    })
    .await;
    let now = |holds_so: bool| {
        let (api, status) = (&api, &status);
        async move {
            let found = api.get("typo").await.unwrap();
            let now = found.status.unwrap();
            assert_eq!(now.phase, Some(RequestPhase::Active), "{}", now.message);
            assert_eq!(now.reservation_name, status.reservation_name);
            let is_observed = now.observed_generation == found.metadata.generation;
            let accepted = holds(&now.conditions, Type::Accepted);
            (accepted == Some(holds_so) && is_observed).then_some(now)
        }
    };
    let said = until("the edit to be objected to", || now(false)).await;
    assert!(said.conditions.iter().any(|one| one.reason == "InvalidSpec"), "{:?}", said.conditions);
    assert_eq!(said.expires_at, status.expires_at);
    world.balances(1).await;
    api.patch("typo", &how, &Patch::Merge(&edit("600m"))).await.unwrap();
    until("the mended edit to be dealt with", || now(true)).await;
    until("both sides to know the new amounts", || async {
        let name = format!("{}-provider", status.reservation_name);
        (world.milan.lent().get(&name).await.unwrap().spec.amounts.cpu == "600m").then_some(())
    })
    .await;
    definition(world).patch(KIND, &how, &Patch::Merge(&versions(&rules))).await.unwrap();
    world.delete("typo").await;
    world.is_clean().await;
}

pub(super) async fn an_instruction_that_somebody_deletes_comes_back(world: &World) {
    world.milan.advertise(16).await;
    world.ask("stays", small()).await;
    let request = world.in_phase("stays", RequestPhase::Active).await;
    let id = request.status.unwrap().reservation_name;
    let name = format!("{id}-provider");
    let (borrowed, lent) = (world.rome.borrowed(), world.milan.lent());
    let (first, second) = (borrowed.get(&id).await.unwrap(), lent.get(&name).await.unwrap());
    borrowed.delete(&id, &DeleteParams::default()).await.unwrap();
    lent.delete(&name, &DeleteParams::default()).await.unwrap();
    until("new ones, in force", || async {
        let new = borrowed.get(&id).await.ok()?;
        let also = lent.get(&name).await.ok()?;
        let is_new =
            new.metadata.uid != first.metadata.uid && also.metadata.uid != second.metadata.uid;
        (is_new && new.status?.delivered && also.status?.enforced).then_some(())
    })
    .await;
    world.delete("stays").await;
    world.is_clean().await;
}
