//! The full tier: virtual nodes, and the webhook.

use serde_json::json;
use sublet_testkit::wait::{PATIENCE, Stopwatch};
use sublet_testkit::{Api, Cluster, Liqo, Setup, Signal, Tier, wait_for};

use super::by_hand::{Pair, condition, until_gone, when};
use super::slices::a_slice_of_a_class_of_ours_is_what_the_provider_grants;

const NODE: &str = "/api/v1/nodes/rsv-aaaa";

#[test]
fn a_slice_is_what_is_granted_and_a_node_of_exactly_its_size_and_without_it_the_node_is_gone() {
    let clock = Stopwatch::start();
    let clusters = Cluster::start_all(["rome", "milan"].map(Setup::for_liqo)).unwrap();
    let liqo = Liqo::start_all(&clusters, Tier::Full).unwrap();
    println!("a pair with Liqo, full tier, after {:?}", clock.elapsed());
    let pair = Pair { requester: &clusters[0], provider: &clusters[1] };
    pair.link();
    a_slice_of_a_class_of_ours_is_what_the_provider_grants(pair, &liqo);
    let (requester, provider) = (pair.requester.api(), pair.provider.api());

    let clock = Stopwatch::start();
    let size = json!({ "cpu": "2", "memory": "4Gi", "pods": "20", "ephemeral-storage": "10Gi" });
    pair.ask("rsv-aaaa", &size);
    when(&provider, &pair.replica("rsv-aaaa"), |_| true);
    pair.grant("rsv-aaaa", &size);
    let ready = |node: &_| condition(node, "Ready") == Some("True");
    let node = when(&requester, NODE, ready);
    println!("from the slice to a ready node {:?}", clock.elapsed());
    assert_eq!(node["status"]["allocatable"], size);
    assert_eq!(node["status"]["capacity"], size);
    assert_eq!(node["metadata"]["labels"]["sublet.test/reservation"], "rsv-aaaa");

    // The webhook has a say: a virtual kubelet's pods are for those who have a quota.
    let path = "/apis/offloading.liqo.io/v1beta1/namespaces/default/shadowpods";
    let stray = json!({
        "apiVersion": "offloading.liqo.io/v1beta1",
        "kind": "ShadowPod",
        "metadata": { "name": "stray" },
        "spec": { "pod": { "containers": [{ "name": "main", "image": "simulated" }] } },
    });
    let refused = provider.create(path, &stray).unwrap_err().to_string();
    assert!(refused.contains("liqo.io"), "{refused}");

    // A virtual kubelet that the test has killed is back when the test starts it; one that ends in
    // another way, by itself. Nobody else makes the node ready again.
    let kubelet = liqo[0].virtual_kubelet("rsv-aaaa").unwrap();
    kubelet.kill();
    say_not_ready(&requester);
    kubelet.start().unwrap();
    when(&requester, NODE, ready);
    let before = kubelet.pid();
    kubelet.signal(Signal::KILL).unwrap();
    let now = || liqo[0].virtual_kubelet("rsv-aaaa")?.pid();
    let another = || now().filter(|pid| Some(*pid) != before);
    wait_for("another virtual kubelet", PATIENCE, another).unwrap();
    say_not_ready(&requester);
    when(&requester, NODE, ready);

    let clock = Stopwatch::start();
    requester.delete(&pair.slice("rsv-aaaa")).unwrap();
    until_gone(&requester, NODE);
    println!("the node is gone after {:?}", clock.elapsed());
    until_gone(&provider, &pair.replica("rsv-aaaa"));
    for (api, path) in [(&requester, pair.virtual_nodes()), (&provider, pair.quotas())] {
        when(api, &path, |list| list["items"] == json!([]));
    }
    let over = || liqo[0].virtual_kubelet("rsv-aaaa").is_none().then_some(());
    wait_for("the end of the virtual kubelet", PATIENCE, over).unwrap();
}

fn say_not_ready(api: &Api) {
    let conditions = json!([{ "type": "Ready", "status": "False" }]);
    let status = json!({ "status": { "conditions": conditions } });
    api.patch(&format!("{NODE}/status"), &status).unwrap();
}
