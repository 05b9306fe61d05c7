//! What people do to the objects of a link, and how it comes right.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sublet_agent::peering::liqo::link::Links;
use sublet_core::instruction::Side;
use sublet_testkit::Api;
use sublet_testkit::wait::Stopwatch;
use x509_parser::pem::parse_x509_pem;

use super::world::{Town, World};
use crate::on_kubernetes::until::until;

pub(super) const TENANT: &str =
    "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-rome/tenants/rome";
pub(super) const IDENTITY: &str = "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-milan/\
                        identities/controlplane-milan";
const SLICES: &str =
    "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-milan/resourceslices";
const REPLICAS: &str =
    "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-rome/resourceslices";
const CSRS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn uid(api: &Api, path: &str) -> Option<Value> {
    Some(api.get(path).ok()?["metadata"]["uid"].clone())
}

/// Waits until there is another one in the place of what had this uid.
async fn another(api: &Api, path: &str, before: &Value) -> Value {
    until(&format!("another {path}"), || async {
        let there = api.get(path).ok()?;
        (there["metadata"]["uid"] != *before).then_some(there)
    })
    .await
}

/// Asks for a slice, and waits until Liqo has brought it to Milan and believes who it is from.
pub(super) async fn replicated(world: &World, name: &str) {
    let slice = json!({
        "apiVersion": "authentication.liqo.io/v1beta1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": name,
            "labels": {
                "liqo.io/replication": "true",
                "liqo.io/remoteID": "milan",
                "liqo.io/remote-cluster-id": "milan",
            },
        },
        "spec": {
            "class": "sublet.test/link",
            "providerClusterID": "milan",
            "resources": { "cpu": "1", "memory": "1Gi" },
        },
    });
    world.rome.api.create(SLICES, &slice).unwrap();
    until(&format!("{name} at Milan"), || async {
        let replica = world.milan.api.get(&format!("{REPLICAS}/{name}")).ok()?;
        let conditions = replica["status"]["conditions"].as_array()?.clone();
        conditions
            .iter()
            .any(|said| said["type"] == "Authentication" && said["status"] == "Accepted")
            .then_some(())
    })
    .await;
}

/// Removes slices as their owner would, and what Liqo leaves behind of them. What it leaves of the link
/// is for the agent to remove.
pub(super) async fn removed(world: &World, names: &[&str]) {
    for name in names {
        world.rome.api.delete(&format!("{SLICES}/{name}")).unwrap();
    }
    for (api, path) in [(&world.rome.api, SLICES), (&world.milan.api, REPLICAS)] {
        until(&format!("the end of {path}"), || async {
            (api.get(path).ok()?["items"] == json!([])).then_some(())
        })
        .await;
    }
    let requests = world.milan.api.get(CSRS).unwrap();
    for request in requests["items"].as_array().unwrap() {
        let pem = BASE64.decode(request["spec"]["request"].as_str().unwrap()).unwrap();
        let (_, pem) = parse_x509_pem(&pem).unwrap();
        let is_in =
            |name: &&str| pem.contents.windows(name.len()).any(|part| part == name.as_bytes());
        if names.iter().any(is_in) {
            let name = request["metadata"]["name"].as_str().unwrap();
            world.milan.api.delete(&format!("{CSRS}/{name}")).unwrap();
        }
    }
}

pub(super) async fn a_tenant_deleted_by_hand_is_back(world: &mut World) {
    world.linked().await;
    let before = uid(&world.milan.api, TENANT).unwrap();
    let clock = Stopwatch::start();
    world.milan.api.delete(TENANT).unwrap();
    another(&world.milan.api, TENANT, &before).await;
    world.linked().await;
    eprintln!("the tenant was back after {:?}", clock.elapsed());
    replicated(world, "rsv-repaired").await;
    removed(world, &["rsv-repaired"]).await;
    world.unused().await;
    world.over().await;
}

pub(super) async fn an_identity_deleted_under_a_slice_is_back(world: &mut World) {
    world.linked().await;
    replicated(world, "rsv-first").await;
    let before = uid(&world.rome.api, IDENTITY).unwrap();
    let clock = Stopwatch::start();
    world.rome.api.delete(IDENTITY).unwrap();
    another(&world.rome.api, IDENTITY, &before).await;
    world.linked().await;
    eprintln!("the identity was back after {:?}", clock.elapsed());
    // Slices come and go as before, the one from before too.
    replicated(world, "rsv-second").await;
    removed(world, &["rsv-first", "rsv-second"]).await;
    world.unused().await;
    world.over().await;
}

/// Without its role in the namespace, an agent that starts sees none of what is there.
pub(super) async fn what_the_agent_may_not_see_stays(world: &mut World) {
    world.linked().await;
    replicated(world, "rsv-unseen").await;
    let namespace = "/api/v1/namespaces/liqo-tenant-rome";
    let binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/liqo-tenant-rome/rolebindings/\
                   sublet-agent-tenant";
    let before = [namespace, TENANT].map(|path| uid(&world.milan.api, path).unwrap());
    world.milan.api.delete(binding).unwrap();
    world.milan.restart(None).await;
    world.milan.keeper.unused(Side::Provider, &world.rome.id).await;

    // By the time that a whole link has come and gone, the other one was looked at.
    let venice = "venice".parse().unwrap();
    let nonce = Town::secret("venice", "liqo-nonce");
    until("a nonce for Venice", || async {
        world.milan.keeper.ensure(Side::Provider, &venice).await;
        world.milan.api.get(&nonce).ok()
    })
    .await;
    world.milan.keeper.unused(Side::Provider, &venice).await;
    until("the end of it", || async {
        world.milan.api.get("/api/v1/namespaces/liqo-tenant-venice").err().map(drop)
    })
    .await;
    let there = world.milan.api.get(namespace).unwrap();
    assert!(there["metadata"]["deletionTimestamp"].is_null(), "{there}");
    assert_eq!([namespace, TENANT].map(|path| uid(&world.milan.api, path).unwrap()), before);

    world.linked().await;
    removed(world, &["rsv-unseen"]).await;
    world.unused().await;
    world.over().await;
}

pub(super) async fn everything_of_one_side_deleted_is_back(world: &mut World) {
    for (is_provider, peer) in [(true, "rome"), (false, "milan")] {
        world.linked().await;
        let namespace = format!("/api/v1/namespaces/liqo-tenant-{peer}");
        let api = if is_provider { &world.milan.api } else { &world.rome.api };
        let before = uid(api, &namespace).unwrap();
        let clock = Stopwatch::start();
        api.delete(&namespace).unwrap();
        another(api, &namespace, &before).await;
        world.linked().await;
        eprintln!(
            "without its namespace for {peer}, it was linked again after {:?}",
            clock.elapsed()
        );
        let name = format!("rsv-of-{peer}");
        replicated(world, &name).await;
        removed(world, &[&name]).await;
    }
    world.unused().await;
    world.over().await;
}
