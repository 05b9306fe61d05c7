//! Programs that are not what they say, and files that are not where they should be.

use std::fs;
use std::time::Duration;

use serde_json::json;
use sublet_agent::peering::{Peering as _, Progress, Removal, Why};
use sublet_core::instruction::Side;
use sublet_crds::Obstacle;
use sublet_testkit::wait::Stopwatch;

use super::super::snapshot::Snapshot;
use super::world::{World, liqoctl, script, small, until};

const LONG: Duration = Duration::from_mins(1);

pub(super) async fn whoever_does_nothing_is_not_believed(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let (_folder, nothing) = script("echo 'Peering established'; exit 0");
    world.rome.restart_with(&nothing, LONG).await;
    let order = world.rome.order(Side::Requester, "rsv-nothing", &small());
    world.rome.record(&order);
    let said = world.rome.says(&order, "liqoctl peer ended well, but").await;
    let has = |why: &Why| why.message.contains("there is no slice");
    assert!(matches!(&said, Progress::Pending(why) if has(why)), "{said:?}");
    // The real one puts it right.
    world.rome.restart_with(&liqoctl(), LONG).await;
    world.keep("rsv-nothing", &small()).await;
    // Nor is the end believed.
    world.rome.restart_with(&nothing, LONG).await;
    let [borrowed, _] = world.over("rsv-nothing");
    world.rome.record(&borrowed);
    let ended = async {
        loop {
            match world.rome.peering.withdraw(&borrowed).await {
                Removal::Pending(why) if why.message.contains("still there") => return,
                Removal::Pending(_) => tokio::time::sleep(Duration::from_millis(40)).await,
                Removal::Gone => panic!("it is not gone"),
            }
        }
    };
    tokio::time::timeout(LONG, ended).await.unwrap();
    world.rome.restart_with(&liqoctl(), LONG).await;
    world.end("rsv-nothing").await;
    before.is_back(world).await;
}

pub(super) async fn whoever_hangs_is_ended(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let (folder, hangs) = script("echo $$ >> \"$0.ids\"; echo 'waiting'; exec sleep 1000");
    let clock = Stopwatch::start();
    world.rome.restart_with(&hangs, Duration::from_secs(1)).await;
    let order = world.rome.order(Side::Requester, "rsv-hangs", &small());
    world.rome.record(&order);
    let said = world.rome.says(&order, "liqoctl peer was ended after 1s").await;
    let is_its = |why: &Why| why.obstacle == Some(Obstacle::LiqoctlFailed);
    assert!(matches!(&said, Progress::Pending(why) if is_its(why)), "{said:?}");
    // However many wait for it, and however often they ask, there is one at a time, for a second each.
    let ids = || fs::read_to_string(folder.path().join("liqoctl.ids")).unwrap_or_default();
    until("another try", || async {
        world.rome.peering.establish(&order).await;
        (ids().lines().count() > 1).then_some(())
    })
    .await;
    let runs = u64::try_from(ids().lines().count()).unwrap();
    assert!(runs <= clock.elapsed().as_secs() + 1, "it was run {runs} times");
    world.rome.stop().await;
    until("the end of all of them", || async {
        let is_there = |id: &str| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("sleep")
        };
        (!ids().lines().any(is_there)).then_some(())
    })
    .await;
    world.rome.restart_with(&liqoctl(), LONG).await;
    let [over, _] = world.over("rsv-hangs");
    world.rome.record(&over);
    world.rome.is_gone(&over).await;
    world.rome.forget(&over);
    before.is_back(world).await;
}

pub(super) async fn whoever_fails_is_heard_and_tried_again(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let real = liqoctl();
    let body = format!(
        "if [ ! -e \"$0.failed\" ]; then touch \"$0.failed\"; head -c 3000000 /dev/urandom; \
         echo 'no route to host' >&2; exit 1; fi; exec {} \"$@\"",
        real.display()
    );
    let (_folder, fails_once) = script(&body);
    world.rome.restart_with(&fails_once, LONG).await;
    let order = world.rome.order(Side::Requester, "rsv-fails", &small());
    world.rome.record(&order);
    let said = world.rome.says(&order, "no route to host").await;
    let text = "liqoctl peer failed (exit status: 1): no route to host";
    assert_eq!(said, Progress::Pending(Why::hindered(Obstacle::LiqoctlFailed, text)));
    world.keep("rsv-fails", &small()).await;
    world.end("rsv-fails").await;
    world.rome.restart_with(&real, LONG).await;
    before.is_back(world).await;
}

pub(super) async fn a_kubeconfig_must_be_there_and_of_that_cluster(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let (place, own) = (world.rig.kubeconfig("milan"), world.rig.kubeconfig("rome"));
    let good = fs::read(&place).unwrap();
    for (content, wanted) in [
        (None, format!("there is no kubeconfig of milan at {}", place.display())),
        (Some(b"[oh dear".to_vec()), "is not a kubeconfig".to_owned()),
        (Some(fs::read(&own).unwrap()), "is a kubeconfig of \"rome\"".to_owned()),
    ] {
        match content {
            None => fs::remove_file(&place).unwrap(),
            Some(content) => fs::write(&place, content).unwrap(),
        }
        let order = world.rome.order(Side::Requester, "rsv-lost", &small());
        world.rome.record(&order);
        let said = world.rome.says(&order, &wanted).await;
        assert!(matches!(said, Progress::Failed(_)), "{said:?}");
        world.rome.forget(&order);
        let [borrowed, _] = world.over("rsv-lost");
        world.rome.is_gone(&borrowed).await;
    }
    // Without the program nothing works either, and it is said.
    fs::write(&place, good).unwrap();
    world.rome.restart_with("/nowhere/liqoctl".as_ref(), LONG).await;
    let order = world.rome.order(Side::Requester, "rsv-lost", &small());
    world.rome.record(&order);
    let said = world.rome.says(&order, "--liqoctl-path").await;
    assert!(matches!(said, Progress::Failed(_)), "{said:?}");
    world.rome.restart_with(&liqoctl(), LONG).await;
    let [over, _] = world.over("rsv-lost");
    world.rome.record(&over);
    world.rome.is_gone(&over).await;
    world.rome.forget(&over);
    before.is_back(world).await;
}

pub(super) async fn what_is_in_force_outlives_a_missing_file(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-kept", &small()).await;
    let place = world.rig.kubeconfig("milan");
    let good = fs::read(&place).unwrap();
    fs::remove_file(&place).unwrap();
    world.rome.restart().await;
    let order = world.rome.order(Side::Requester, "rsv-kept", &small());
    assert_eq!(world.rome.peering.establish(&order).await, Progress::Ready);
    // One that would need it waits, and ends nothing.
    let more = world.rome.order(Side::Requester, "rsv-more", &small());
    world.rome.record(&more);
    let said = world.rome.says(&more, "there is no kubeconfig of milan").await;
    assert!(matches!(said, Progress::Pending(_)), "{said:?}");
    assert_eq!(world.rome.peering.establish(&order).await, Progress::Ready);
    world.rome.forget(&more);
    fs::write(&place, good).unwrap();
    let [over, _] = world.over("rsv-more");
    world.rome.is_gone(&over).await;
    world.end("rsv-kept").await;
    before.is_back(world).await;
}

pub(super) async fn what_somebody_peered_by_hand_is_his(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let by_hand = |verb: &str, more: &[&str]| {
        let status = std::process::Command::new(liqoctl())
            .arg(verb)
            .arg("--kubeconfig")
            .arg(world.rig.kubeconfig("rome"))
            .arg("--remote-kubeconfig")
            .arg(world.rig.kubeconfig("milan"))
            .args(more)
            .arg("--skip-confirm")
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
    };
    by_hand("peer", &["--networking-disabled", "--cpu", "7", "--memory", "3Gi"]);
    // Nothing of ours is over there, and nobody takes it down.
    let [borrowed, _] = world.over("rsv-never");
    world.rome.is_gone(&borrowed).await;
    world.rome.peering.sweep(&[Side::Requester], &|_, _| false).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let slice = world.rome.api.get(&world.rome.slice()).unwrap();
    assert_eq!(slice["spec"]["resources"]["cpu"], json!("7"));
    by_hand("unpeer", &["--delete-namespaces"]);
    // What Liqo knows of another cluster stays with it; it is not what this is about.
    let foreign = "/apis/core.liqo.io/v1beta1/foreignclusters/";
    for (town, peer) in [(&world.rome, "milan"), (&world.milan, "rome")] {
        drop(town.api.delete(&format!("{foreign}{peer}")));
    }
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    for request in world.milan.api.get(requests).unwrap()["items"].as_array().unwrap() {
        let name = request["metadata"]["name"].as_str().unwrap();
        world.milan.api.delete(&format!("{requests}/{name}")).unwrap();
    }
    before.is_back(world).await;
}
