//! Whether a provider can keep what it lends within its bounds.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use sublet_agent::peering::{Peering as _, Progress};
use sublet_core::resources::Resources;
use sublet_crds::Obstacle;
use sublet_crds::condition::Reason;

use super::world::{World, small, when};
use crate::on_kubernetes::until::until;

pub(super) async fn without_liqos_webhook_nothing_is_lent(world: &mut World<'_>) {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let hooks = world.milan.api.get(path).unwrap();
    let mut hook = hooks["items"][0].clone();
    let name = hook["metadata"]["name"].as_str().unwrap().to_owned();
    hook["metadata"] = json!({ "name": name });
    world.milan.api.delete(&format!("{path}/{name}")).unwrap();
    world.milan.restart().await;
    let order = world.milan.order("rsv-lax", &small());
    world.instruct(&order);
    let asked = world.milan.links.asked.load(Ordering::Relaxed);
    let refused = || async {
        match world.milan.peering.establish(&order).await {
            Progress::Pending(why) if why.message.contains("webhook") => {
                assert_eq!(why.obstacle, Some(Obstacle::NotLending));
                Some(())
            }
            _ => None,
        }
    };
    until("a refusal to lend", refused).await;
    let asked_since = world.milan.links.asked.load(Ordering::Relaxed);
    assert_eq!(asked_since, asked, "nobody gets in while nothing is enforced");
    let unwilling = world.milan.peering.unwilling().unwrap();
    let reason = unwilling.borrow().as_ref().map(|why| why.reason);
    assert_eq!(reason, Some(Reason::WebhookMissing));
    world.milan.api.create(path, &hook).unwrap();
    world.keep("rsv-lax", &small()).await;
    assert_eq!(*unwilling.borrow(), None);

    // Nor does anybody get more than he has.
    world.milan.api.delete(&format!("{path}/{name}")).unwrap();
    does_not_lend(world, Some(Reason::WebhookMissing)).await;
    let has = |cpu: &'static str| {
        move |slice: &Value| slice["status"]["resources"]["cpu"].as_str() == Some(cpu)
    };
    let (replica, api) = (world.milan.slice("rsv-lax"), &world.milan.api);
    for (cpu, granted) in [(1000, "1"), (3000, "1")] {
        let order = world.milan.order("rsv-lax", &Resources::new(cpu, 4 << 30));
        world.instruct(&order);
        let progress = world.milan.peering.establish(&order).await;
        let Progress::Pending(why) = progress else { panic!("it lends: {progress:?}") };
        assert_eq!(why.obstacle, Some(Obstacle::NotLending));
        when(api, &replica, has(granted)).await;
    }
    api.create(path, &hook).unwrap();
    world.keep("rsv-lax", &Resources::new(3000, 4 << 30)).await;
    when(api, &replica, has("3")).await;
    world.end("rsv-lax").await;
}

/// Waits until Milan does not lend for this reason, or does.
pub(super) async fn does_not_lend(world: &World<'_>, wanted: Option<Reason>) {
    let unwilling = world.milan.peering.unwilling().unwrap();
    let seen = || async {
        let reason = unwilling.borrow().as_ref().map(|why| why.reason);
        (reason == wanted).then_some(())
    };
    until(&format!("that it does not lend: {wanted:?}"), seen).await;
}

/// Where Liqo's parts have other names, and where nobody can say how they were started.
pub(super) async fn how_liqo_was_started_is_seen_or_nothing_is_lent(world: &mut World<'_>) {
    let deployments = "/apis/apps/v1/namespaces/liqo/deployments";
    let api = world.rig.clusters[1].api();
    let known = format!("{deployments}/liqo-webhook");
    let webhook = api.get(&known).unwrap();
    let named = |name: &str, labels: Value, words: &[&str]| {
        let mut other = webhook.clone();
        other["metadata"] = json!({ "name": name, "labels": labels });
        let container = &mut other["spec"]["template"]["spec"]["containers"][0];
        let flags = container["args"].as_array_mut().unwrap();
        flags.retain(|flag| !flag.as_str().unwrap().contains("resource-enforcement"));
        flags.extend(words.iter().map(|word| json!(word)));
        container["command"] = json!(["/bin/start"]);
        other
    };
    api.delete(&known).unwrap();
    world.milan.restart().await;
    let (world, api) = (&*world, &world.milan.api);
    let order = world.milan.order("rsv-unseen", &small());
    world.instruct(&order);
    let refused = || async {
        let progress = world.milan.peering.establish(&order).await;
        let Progress::Pending(why) = progress else { panic!("it lends: {progress:?}") };
        assert_eq!(why.obstacle, Some(Obstacle::NotLending));
        why.message.contains("app.kubernetes.io/name=webhook").then_some(())
    };
    until("that nobody can say how it was started", refused).await;
    does_not_lend(world, Some(Reason::EnforcementUnknown)).await;
    let label = json!({ "app.kubernetes.io/name": "webhook" });
    api.create(deployments, &named("borders", label.clone(), &[])).unwrap();
    does_not_lend(world, Some(Reason::NotEnforced)).await;
    let manager = format!("{deployments}/liqo-controller-manager");
    let strict = lets_in_whoever_does_not_say(world, &manager);
    api.delete(&format!("{deployments}/borders")).unwrap();
    api.create(deployments, &named("borders", label, &["--enable-resource-enforcement"])).unwrap();
    does_not_lend(world, Some(Reason::LimitsNotEnforced)).await;
    api.patch(&manager, &strict).unwrap();
    does_not_lend(world, None).await;
    world.keep("rsv-unseen", &small()).await;
    api.delete(&format!("{deployments}/borders")).unwrap();
    let mut back = webhook.clone();
    back["metadata"] = json!({ "name": "liqo-webhook", "labels": webhook["metadata"]["labels"] });
    api.create(deployments, &back).unwrap();
    world.end("rsv-unseen").await;
}

/// Has Liqo let pods in that do not say what they take, and so count as nothing; what undoes that.
fn lets_in_whoever_does_not_say(world: &World<'_>, manager: &str) -> Value {
    let api = &world.milan.api;
    let known = api.get(manager).unwrap()["spec"]["template"]["spec"]["containers"][0].clone();
    let with = |container: &Value| json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    let mut lax = known.clone();
    let flags = lax["args"].as_array_mut().unwrap();
    let all = flags.len();
    flags.retain(|flag| !flag.as_str().unwrap().starts_with("--default-limits-enforcement"));
    assert_eq!(flags.len(), all - 1, "{known}");
    flags.push(json!("--default-limits-enforcement=None"));
    api.patch(manager, &with(&lax)).unwrap();
    with(&known)
}

/// Liqo's lists of webhooks in Milan, which are away meanwhile.
pub(super) struct Hooks(Vec<(String, Value)>);

impl Hooks {
    pub(super) fn take_away(world: &World<'_>) -> Self {
        let kinds = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
        Self(Vec::from(kinds.map(|kind| {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}");
            let mut hook = world.milan.api.get(&path).unwrap()["items"][0].clone();
            let name = hook["metadata"]["name"].as_str().unwrap().to_owned();
            let metadata = &hook["metadata"];
            let (labels, notes) = (metadata["labels"].clone(), metadata["annotations"].clone());
            hook["metadata"] = json!({ "name": name, "labels": labels, "annotations": notes });
            world.milan.api.delete(&format!("{path}/{name}")).unwrap();
            (path, hook)
        })))
    }

    pub(super) fn put_back(self, world: &World<'_>) {
        for (path, hook) in self.0 {
            world.milan.api.create(&path, &hook).unwrap();
        }
    }
}
