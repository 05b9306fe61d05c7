//! A requester that wants more than it was given, with the certificates that Liqo really gave to it.
//! Each attempt comes to nothing, and is counted and written down: by the agent, or by the API server whose
//! policies refused it.

use std::path::PathBuf;

use serde_json::{Value, json};
use sublet_agent::peering::Peering as _;
use sublet_agent::transport::Order;
use sublet_core::instruction::{Duty, Side};
use sublet_testkit::{Controller, Process};

use super::audited::{is_audited, is_refused};
use super::forging::{of_another_cluster, user_of};
use super::guests::{
    HOME, bind, has_ended, offload, place, pod_abroad, remote, stay_home, take_machine,
};
use super::snapshot::Snapshot;
use super::world::{World, condition, is_gone, small, stolen, when, when_gone};
use crate::on_kubernetes::logged::is_logged;
use crate::on_kubernetes::until::until;

/// In full, because Kubernetes has a kind of that name too.
pub(super) const SLICE: &str = "resourceslices.authentication.liqo.io";

/// Somebody in Rome who speaks to Milan's API server without Liqo.
pub(super) struct Rogue {
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
    namespace: String,
}

impl Rogue {
    /// With the identity of the whole cluster.
    pub(super) fn of_cluster(world: &World<'_>) -> Self {
        let (folder, kubeconfig) = stolen(world, "kubeconfig-controlplane-milan");
        Self { folder, kubeconfig, namespace: "liqo-tenant-rome".to_owned() }
    }

    /// With the identity of one slice, where its pods are.
    pub(super) fn of_slice(world: &World<'_>, slice: &str) -> Self {
        let secrets = "/api/v1/namespaces/liqo-tenant-milan/secrets";
        let secrets = world.rome.api.get(secrets).unwrap();
        let names = secrets["items"].as_array().unwrap().iter();
        let mut names = names.map(|secret| secret["metadata"]["name"].as_str().unwrap());
        let is_its = |name: &&str| name.starts_with("kubeconfig-") && name.contains(slice);
        let (folder, kubeconfig) = stolen(world, names.find(is_its).unwrap());
        Self { folder, kubeconfig, namespace: format!("{HOME}-rome") }
    }

    fn elsewhere(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    pub(super) fn kubectl(&self, world: &World<'_>, arguments: &[&str]) -> Result<String, String> {
        let arguments = [&["-n", &self.namespace], arguments].concat();
        let done = world.rig.clusters[1].kubectl_as(&self.kubeconfig, &arguments);
        done.map_err(|error| error.to_string())
    }

    pub(super) fn create(&self, world: &World<'_>, object: &Value) -> Result<String, String> {
        self.kubectl(world, &["create", "-f", &self.written(object)])
    }

    /// Without leaving anything.
    pub(super) fn try_to_create(
        &self,
        world: &World<'_>,
        object: &Value,
    ) -> Result<String, String> {
        self.kubectl(world, &["create", "--dry-run=server", "-f", &self.written(object)])
    }

    fn written(&self, object: &Value) -> String {
        let file = self.folder.path().join("object.json");
        std::fs::write(&file, object.to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

/// A slice as the rogue would like it, without Rome's Liqo.
pub(super) fn slice(name: &str, class: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
        "metadata": { "name": name, "labels": {
            "liqo.io/replicated": "true", "liqo.io/originID": "rome",
            "liqo.io/remoteID": "milan", "liqo.io/remote-cluster-id": "rome",
        }},
        "spec": {
            "class": class, "providerClusterID": "milan", "consumerClusterID": "rome",
            "resources": { "cpu": cpu, "memory": "4Gi", "pods": "110" },
        },
    })
}

const CLASS: &str = "sublet.io/reservation";

/// The policies that refuse it.
pub(super) const SLICES: &str = "sublet-liqo-slices";
/// See [`SLICES`].
pub(super) const PODS: &str = "sublet-liqo-pods";
/// See [`SLICES`].
pub(super) const COPIES: &str = "sublet-liqo-copies";

/// Rome's own Liqo, which removes in Milan what is not in Rome: a rogue would not let it.
pub(super) fn replicator<'a>(world: &'a World<'_>) -> &'a Process {
    world.rig.liqo[0].controller(Controller::Replicator).unwrap()
}

/// How often Milan's API server refused something because of our policies.
pub(super) fn refusals(world: &World<'_>) -> u64 {
    let page = world.rig.clusters[1].kubectl(&["get", "--raw", "/metrics"]).unwrap();
    let name = "apiserver_validating_admission_policy_check_total{";
    let ours = page.lines().filter(|line| {
        line.starts_with(name)
            && line.contains("policy=\"sublet-liqo-")
            && line.contains("enforcement_action=\"deny\"")
    });
    ours.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// How often Milan's agent decided so.
pub(super) fn decided(world: &World<'_>, decision: &str) -> u64 {
    let name = format!("sublet_agent_slices_total{{decision=\"{decision}\"}}");
    let page = world.milan.metrics.page();
    let line = page.lines().find_map(|line| line.strip_prefix(&name).map(str::to_owned));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

pub(super) async fn is_decided(world: &World<'_>, decision: &str, times: u64) {
    let what = format!("{decision} for the {times}. time");
    until(&what, || async { (decided(world, decision) >= times).then_some(()) }).await;
    assert_eq!(decided(world, decision), times, "{decision}");
}

/// Has it as long to end as what is over has?
pub(super) fn is_hurried(pod: &Value) -> bool {
    pod["metadata"]["deletionGracePeriodSeconds"] == 10
}

fn is_denied(slice: &Value) -> bool {
    condition(slice, "Resources") == Some("Denied")
}

/// Before and after the grant, it asks for more than is reserved.
pub(super) async fn whoever_asks_for_more_is_cut_and_counted(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    replicator(world).kill();
    let (rogue, cut) = (Rogue::of_cluster(world), decided(world, "cut"));
    let order = world.milan.order("rsv-greedy", &small());
    world.instruct(&order);
    rogue.create(world, &slice("rsv-greedy", CLASS, "64")).unwrap();
    let path = world.milan.slice("rsv-greedy");
    let is_granted = |slice: &Value| condition(slice, "Resources") == Some("Accepted");
    let granted = when(&world.milan.api, &path, is_granted).await;
    assert_eq!(granted["status"]["resources"]["cpu"], "2");
    is_decided(world, "cut", cut + 1).await;
    let more = r#"{"spec":{"resources":{"cpu":"128","nvidia.com/gpu":"8"}}}"#;
    rogue.kubectl(world, &["patch", SLICE, "rsv-greedy", "--type=merge", "-p", more]).unwrap();
    is_decided(world, "cut", cut + 2).await;
    let granted = world.milan.api.get(&path).unwrap();
    assert_eq!(granted["status"]["resources"]["cpu"], "2");
    assert!(granted["status"]["resources"]["nvidia.com/gpu"].is_null());
    assert!(granted["status"]["conditions"].to_string().contains("and not cpu 128"), "{granted}");
    is_logged(&["a slice is granted", "rsv-greedy", "and not cpu 128"]).await;
    world.tell_end("rsv-greedy");
    world.milan.is_gone(&Order { duty: Duty::Gone, ..order }).await;
    world.forget("rsv-greedy");
    replicator(world).start().unwrap();
    before.is_back(world).await;
}

/// In its own name, and in others'.
pub(super) async fn whoever_poses_as_another_gets_nothing(world: &mut World<'_>) {
    let before = swept(world).await;
    let rogue = Rogue::of_cluster(world);
    replicator(world).kill();
    let names = ["for_another", "bad_request", "discarded"];
    let [for_another, bad_request, discarded] = names.map(|name| decided(world, name));
    // Of Turin's reservation it knows the name.
    let turins =
        Order { peer: "turin".parse().unwrap(), ..world.milan.order("rsv-turins", &small()) };
    world.instruct(&turins);
    rogue.create(world, &slice("rsv-turins", CLASS, "2")).unwrap();
    let denied = when(&world.milan.api, &world.milan.slice("rsv-turins"), is_denied).await;
    assert!(denied["status"]["conditions"].to_string().contains("ReservedForAnother"), "{denied}");
    is_decided(world, "for_another", for_another + 1).await;
    is_logged(&["a slice is denied", "rsv-turins", "reserved for another"]).await;
    let namespace = json!({ "metadata": { "name": "liqo-tenant-turin" } });
    world.milan.api.create("/api/v1/namespaces", &namespace).unwrap();
    let there = Rogue::of_cluster(world).elsewhere("liqo-tenant-turin");
    let refused = there.create(world, &slice("rsv-turins", CLASS, "2")).unwrap_err();
    assert!(refused.contains("forbidden"), "{refused}");
    is_refused(world, "rome", "liqo-tenant-turin", "cannot create resource").await;
    let known = refusals(world);
    let mut posing = slice("rsv-posing", CLASS, "2");
    posing["spec"]["consumerClusterID"] = json!("turin");
    let refused = rogue.create(world, &posing).unwrap_err();
    assert!(refused.contains("in its own name alone"), "{refused}");
    assert!(refusals(world) > known, "what a policy refuses is counted");
    is_audited(world, "rome", SLICES, "in its own name alone").await;
    world.milan.api.delete("/api/v1/namespaces/liqo-tenant-turin").unwrap();

    // In a request for a certificate.
    let order = world.milan.order("rsv-forger", &small());
    world.instruct(&order);
    let mut forging = slice("rsv-forger", CLASS, "2");
    forging["spec"]["csr"] = json!(of_another_cluster(&user_of("rsv-forger")));
    rogue.create(world, &forging).unwrap();
    let denied = when(&world.milan.api, &world.milan.slice("rsv-forger"), is_denied).await;
    let why = denied["status"]["conditions"].to_string();
    assert!(why.contains("BadCertificateRequest") && why.contains("another group"), "{why}");
    is_decided(world, "bad_request", bad_request + 1).await;
    is_logged(&["WARN", "wants to be somebody else", "rsv-forger"]).await;
    let quotas = world.milan.api.get(&world.milan.liqo("offloading", "quotas")).unwrap();
    assert_eq!(quotas["items"], json!([]));

    // What is denied does not stay for ever, and does not keep the link.
    world.tell_end("rsv-forger");
    world.milan.is_gone(&Order { duty: Duty::TakeDown, ..order }).await;
    for name in ["rsv-turins", "rsv-forger"] {
        world.forget(name);
        when_gone(&world.milan.api, &world.milan.slice(name)).await;
    }
    is_decided(world, "discarded", discarded + 2).await;
    replicator(world).start().unwrap();
    is_back_when_swept(world, &before).await;
}

async fn sweep(world: &World<'_>) {
    world.milan.peering.sweep(&[Side::Provider], &|_: Side, _: &str| false).await;
}

/// What there is, without what others have left.
pub(super) async fn swept(world: &World<'_>) -> Snapshot {
    sweep(world).await;
    Snapshot::of(world).await
}

/// Waits until everything is as it was, while Milan's agent sweeps: Liqo, which looks at a forged request later
/// than we do, may make the certificate, and ask for it, after the slice has gone.
pub(super) async fn is_back_when_swept(world: &World<'_>, before: &Snapshot) {
    before.is_back_with(world, async || sweep(world).await).await;
}

/// A pod that would take as long to end as it may, on a machine whose kubelet nobody hurries.
pub(super) async fn whoever_clings_to_what_is_over_loses_it(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let names = ["over", "no_reservation"];
    let [over, no_reservation] = names.map(|name| decided(world, name));
    // Another one lives on, so that its namespace in Milan does.
    world.keep("rsv-stays", &small()).await;
    world.keep("rsv-cling", &small()).await;
    offload(world).await;
    let spec = json!({ "terminationGracePeriodSeconds": 600 });
    place(world, "guest", "rsv-cling", (json!({}), spec)).await;
    let (cluster, pods) = (Rogue::of_cluster(world), Rogue::of_slice(world, "rsv-cling"));
    let mut copy: Value = serde_json::from_str(
        &pods.kubectl(world, &["get", "shadowpods", "guest", "-o", "json"]).unwrap(),
    )
    .unwrap();
    let (there, milan) = (pod_abroad("guest"), &world.milan.api);
    bind(milan, "guest");

    // Milan is told that nobody waits any more, and Rome does nothing.
    replicator(world).kill();
    world.tell_end("rsv-cling");
    let over_now = Order { duty: Duty::Gone, ..world.milan.order("rsv-cling", &small()) };
    tokio::join!(world.milan.is_gone(&over_now), async {
        when(milan, &there, is_hurried).await;
        has_ended(milan, "guest");
    });
    world.forget("rsv-cling");
    is_decided(world, "over", over + 1).await;
    is_logged(&["a slice is denied", "rsv-cling", "is over"]).await;
    assert_eq!(remote(milan).len(), 0);
    take_machine(milan);

    // Rome brings the slice back, and its pods.
    cluster.create(world, &slice("rsv-cling", CLASS, "2")).unwrap();
    when(milan, &world.milan.slice("rsv-cling"), is_denied).await;
    is_decided(world, "no_reservation", no_reservation + 1).await;
    is_logged(&["a slice is denied", "rsv-cling", "no reservation"]).await;
    copy["metadata"] = json!({ "name": "guest", "labels": copy["metadata"]["labels"] });
    copy["status"] = Value::Null;
    let refused = pods.create(world, &copy).unwrap_err();
    assert!(refused.contains("admission webhook") && refused.contains("quota"), "{refused}");
    is_refused(world, "rsv-cling-", &format!("{HOME}-rome"), "quota").await;
    let quotas = milan.get(&world.milan.liqo("offloading", "quotas")).unwrap();
    let quotas = quotas["items"].as_array().unwrap().iter();
    let users = quotas.map(|quota| quota["metadata"]["name"].as_str().unwrap());
    assert_eq!(users.collect::<Vec<_>>(), [user_of("rsv-stays")]);
    assert_eq!(remote(milan).len(), 0);

    replicator(world).start().unwrap();
    let over = Order { duty: Duty::TakeDown, ..world.rome.order("rsv-cling", &small()) };
    world.rome.is_gone(&over).await;
    world.end("rsv-stays").await;
    stay_home(world).await;
    until("the copy to go", || async {
        is_gone(milan, &world.milan.slice("rsv-cling")).then_some(())
    })
    .await;
    before.is_back(world).await;
}
