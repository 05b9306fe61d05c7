//! How reservations of one pair share a slice.

use sublet_agent::peering::{Peering as _, Progress, Removal};
use sublet_agent::transport::Order;
use sublet_core::id::Generation;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_testkit::wait::Stopwatch;

use super::super::snapshot::Snapshot;
use super::world::{World, sizes, small, when};

pub(super) async fn two_reservations_are_one_slice_of_their_sum(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let clock = Stopwatch::start();
    world.keep("rsv-first", &small()).await;
    eprintln!("  the first after {:?}", clock.elapsed());
    let slice = world.rome.api.get(&world.rome.slice()).unwrap();
    assert_eq!(sizes(&slice), [("2", "4Gi"); 2]);
    assert_eq!(slice["spec"]["resources"]["pods"], "33");
    assert_eq!(slice["metadata"]["annotations"]["sublet.io/reservations"], "rsv-first");
    assert_eq!(world.rome.node(), ("2".into(), "4Gi".into()));
    // The first one stays usable while the second one comes.
    let clock = Stopwatch::start();
    let first = world.rome.order(Side::Requester, "rsv-first", &small());
    let second = Resources::new(1000, 1 << 30);
    let watched = async {
        loop {
            assert_eq!(world.rome.peering.establish(&first).await, Progress::Ready);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = world.keep("rsv-second", &second) => {}
        () = watched => {}
    }
    eprintln!("  the second after {:?}", clock.elapsed());
    let slice = world.rome.api.get(&world.rome.slice()).unwrap();
    assert_eq!(sizes(&slice), [("3", "5Gi"); 2]);
    assert_eq!(world.rome.node(), ("3".into(), "5Gi".into()));
    // A smaller one is in force at the provider when the slice is smaller, and not before.
    let smaller = Resources::new(500, 1 << 30);
    let generation = Some(Generation(2));
    let lent = Order { generation, ..world.milan.order(Side::Provider, "rsv-first", &smaller) };
    world.milan.record(&lent);
    let progress = world.milan.peering.establish(&lent).await;
    assert!(
        matches!(&progress, Progress::Pending(why) if why.message.contains("cpu 3")),
        "{progress:?}"
    );
    let borrowed = Order { generation, ..world.rome.order(Side::Requester, "rsv-first", &smaller) };
    tokio::join!(world.rome.keep(&borrowed), world.milan.keep(&lent));
    let made = |cpu: &'static str, memory: &'static str| {
        move |slice: &serde_json::Value| sizes(slice) == [(cpu, memory); 2]
    };
    when(&world.rome.api, &world.rome.slice(), made("1500m", "2Gi")).await;
    // One is over: the other stays, and the capacity is back when the slice is smaller.
    let [_, over] = world.over("rsv-first");
    world.milan.record(&over);
    let removal = world.milan.peering.withdraw(&over).await;
    assert!(matches!(removal, Removal::Pending(_)), "{removal:?}");
    let clock = Stopwatch::start();
    world.end("rsv-first").await;
    eprintln!("  one released after {:?}", clock.elapsed());
    let slice = world.rome.api.get(&world.rome.slice()).unwrap();
    assert_eq!(sizes(&slice), [("1", "1Gi"); 2]);
    assert_eq!(slice["metadata"]["annotations"]["sublet.io/reservations"], "rsv-second");
    // The last one.
    let clock = Stopwatch::start();
    world.end("rsv-second").await;
    eprintln!("  the last released after {:?}", clock.elapsed());
    before.is_back(world).await;
    // What was never there ends as well.
    for order in world.over("rsv-never") {
        let town = if order.side == Side::Requester { &world.rome } else { &world.milan };
        assert_eq!(town.peering.withdraw(&order).await, Removal::Gone);
    }
}

pub(super) async fn both_directions_of_a_pair_coexist(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-there", &small()).await;
    let back = Resources::new(1000, 2 << 30);
    let lent = world.rome.order(Side::Provider, "rsv-back", &back);
    let borrowed = world.milan.order(Side::Requester, "rsv-back", &back);
    tokio::join!(world.rome.keep(&lent), world.milan.keep(&borrowed));
    assert_eq!(world.rome.node(), ("2".into(), "4Gi".into()));
    assert_eq!(world.milan.node(), ("1".into(), "2Gi".into()));
    world.end("rsv-there").await;
    assert_eq!(
        world.milan.peering.establish(&borrowed).await,
        Progress::Ready,
        "it is not touched"
    );
    let over =
        |order: Order| Order { duty: Duty::TakeDown, generation: Some(Generation(9)), ..order };
    let (lent, borrowed) = (over(lent), over(borrowed));
    world.rome.record(&lent);
    world.milan.record(&borrowed);
    tokio::join!(world.rome.is_gone(&lent), world.milan.is_gone(&borrowed));
    world.rome.forget(&lent);
    world.milan.forget(&borrowed);
    before.is_back(world).await;
}

pub(super) async fn both_may_be_restarted_at_any_time(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let one = Resources::new(1000, 1 << 30);
    let orders = ["rsv-a", "rsv-b"].map(|name| {
        let borrowed = world.rome.order(Side::Requester, name, &one);
        (borrowed, world.milan.order(Side::Provider, name, &one))
    });
    for (borrowed, lent) in &orders {
        world.rome.record(borrowed);
        world.milan.record(lent);
    }
    // An agent that was just started knows of both, although only one was spoken of.
    let (borrowed, lent) = &orders[0];
    let mut cuts = 0;
    while world.rome.peering.establish(borrowed).await != Progress::Ready {
        // Later each time, so that liqoctl is cut at another place each time, and gets there at last.
        tokio::time::sleep(std::time::Duration::from_millis(300 << cuts)).await;
        cuts += 1;
        assert!(cuts < 8, "it does not become ready");
        world.rome.restart().await;
        world.milan.restart().await;
    }
    eprintln!("  ready after {cuts} restarts");
    world.milan.is_ready(lent).await;
    let slice = when(&world.rome.api, &world.rome.slice(), |slice| sizes(slice)[1].0 == "2").await;
    assert_eq!(sizes(&slice), [("2", "2Gi"); 2]);
    for name in ["rsv-a", "rsv-b"] {
        let [borrowed, lent] = world.over(name);
        world.rome.record(&borrowed);
        world.milan.record(&lent);
        let (mut cuts, mut is_over) = (0, (false, false));
        while is_over != (true, true) {
            is_over.0 = world.rome.peering.withdraw(&borrowed).await == Removal::Gone;
            is_over.1 = world.milan.peering.withdraw(&lent).await == Removal::Gone;
            tokio::time::sleep(std::time::Duration::from_millis(300 << cuts)).await;
            cuts += 1;
            assert!(cuts < 8, "it does not end: {is_over:?}");
            world.rome.restart().await;
            world.milan.restart().await;
        }
        eprintln!("  {name} gone after {cuts} restarts");
        world.rome.forget(&borrowed);
        world.milan.forget(&lent);
    }
    before.is_back(world).await;
}
