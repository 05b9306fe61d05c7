//! A provider that says it has less than is held on it: nothing new is granted there, whatever is
//! asked for, and a refusal says what it would need.

use crate::explain::refused;
use crate::fleet::{Fleet, GI, ask, id};
use crate::scenarios::verdict;
use sublet_core::advertisement::Advertisement;
use sublet_core::decision::filter::{Filter, Verdict};
use sublet_core::reservation::Ask;
use sublet_core::resources::{Kind, Resources};

#[test]
fn an_advertisement_that_shrinks_below_what_is_held_stops_every_new_grant_there() {
    let size = Resources::new(8000, 16 * GI).with(Kind::Gpu, 4).unwrap();
    let mut fleet = Fleet::new().with("c1", size.clone(), size.clone());
    let with_gpu = |gpu| Ask {
        resources: ask(500, GI).resources.with(Kind::Gpu, gpu).unwrap(),
        ..Ask::default()
    };
    fleet.reserve("c0", &with_gpu(4)).unwrap();
    fleet.hear({
        let mut ad = fleet.word(&id("c1"));
        ad.allocatable = ad.allocatable.clone().with(Kind::Gpu, 2).unwrap();
        ad
    });
    assert!(fleet.books.is_overcommitted(&id("c1")));
    assert_eq!(fleet.pick("c0", &with_gpu(1)), None);
    // Of cpu there is plenty.
    let plain = ask(500, GI);
    assert_eq!(verdict(&fleet, "c0", "c1", &plain), Verdict::Refused(Filter::Overcommitted));
    assert_eq!(fleet.pick("c0", &plain), None);
    fleet.hear(Advertisement { allocatable: size, ..fleet.word(&id("c1")) });
    assert_eq!(fleet.pick("c0", &plain).unwrap(), "c1", "it has again what is held there");
}

#[test]
fn a_cluster_that_lacks_what_nobody_holds_there_still_lends_the_rest() {
    let size = Resources::new(8000, 16 * GI).with(Kind::Gpu, 4).unwrap();
    let mut fleet = Fleet::new().with("c1", size.clone(), size);
    fleet.reserve("c0", &ask(500, GI)).unwrap();
    // Its own pods keep their GPUs while the driver restarts.
    fleet.hear({
        let mut ad = fleet.word(&id("c1"));
        ad.allocatable.gpu = 0;
        ad.allocated.gpu = 4;
        ad
    });
    assert!(!fleet.books.is_overcommitted(&id("c1")), "no GPU is held");
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "c1");
}

#[test]
fn a_provider_that_reports_no_grants_is_not_closed_by_the_pods_inside_them() {
    let size = Resources::new(8000, 16 * GI).with(Kind::Gpu, 4).unwrap();
    let mut fleet = Fleet::new().with("c1", size.clone(), size);
    let with_gpu = |gpu| Ask {
        resources: ask(500, GI).resources.with(Kind::Gpu, gpu).unwrap(),
        ..Ask::default()
    };
    fleet.reserve("c0", &with_gpu(3)).unwrap();
    let word = |fleet: &Fleet, gpu| {
        let mut ad = fleet.word(&id("c1"));
        (ad.grants, ad.allocated.gpu) = (None, gpu);
        ad
    };
    fleet.hear(word(&fleet, 3));
    assert!(!fleet.books.is_overcommitted(&id("c1")), "these may be the pods of the grant");
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "c1");
    assert_eq!(fleet.pick("c0", &with_gpu(1)), None, "of GPUs none is surely free");
    fleet.hear(word(&fleet, 5));
    assert!(fleet.books.is_overcommitted(&id("c1")), "these cannot all be");
}

#[test]
fn a_word_that_ends_a_shortage_may_admit_somebody_also_where_it_leaves_nothing_free_of_it() {
    let mut fleet =
        Fleet::new().with("c1", Resources::new(8000, 8 * GI), Resources::new(8000, 8 * GI));
    fleet.reserve("c0", &ask(500, 8 * GI)).unwrap();
    let mut word = |memory| {
        let ad =
            Advertisement { allocatable: Resources::new(8000, memory), ..fleet.word(&id("c1")) };
        fleet.books.hear(ad, fleet.now, &fleet.policy.silence)
    };
    assert!(!word(7 * GI), "less");
    assert!(!word(7 * GI + 1), "still less than is held");
    assert!(word(8 * GI), "what is held is there again, and cpu can be lent");
}

#[test]
fn what_is_overcommitted_needs_more_than_the_request_is_short_of() {
    let mut fleet =
        Fleet::new().with("c1", Resources::new(16_000, 64 * GI), Resources::new(16_000, 64 * GI));
    fleet.reserve("c0", &ask(10_000, 4 * GI)).unwrap();
    let size = Resources::new(8000, 64 * GI);
    fleet.hear(Advertisement::plain(id("c1"), size, Resources::default()));
    let why = refused(&fleet, &ask(1000, GI));
    assert_eq!(why.nearest[0].less, None, "nothing would be left of the request");
    assert_eq!(why.nearest[0].more, Some(Resources::new(3000, 0)));
    assert_eq!(
        why.to_string(),
        "of 1 cluster 1 with less than is held on them; enough would be 3 cores more free on c1"
    );
}

#[test]
fn of_clusters_with_less_than_is_held_those_are_named_that_need_the_least() {
    let gpus = |of: Resources, gpu| of.with(Kind::Gpu, gpu).unwrap();
    let size = |gpu| gpus(Resources::new(8000, 64 * GI), gpu);
    let mut fleet = Fleet::new();
    for (name, left) in [("c1", 0), ("c2", 2), ("c3", 3), ("c4", 1)] {
        fleet = fleet.with(name, size(4), size(4));
        let (resources, target) = (gpus(Resources::new(1000, GI), 4), Some(id(name)));
        fleet.reserve("c0", &Ask { resources, target, ..Ask::default() }).unwrap();
        fleet.hear(Advertisement { allocatable: size(left), ..fleet.word(&id(name)) });
    }
    let why = refused(&fleet, &ask(1000, GI));
    assert_eq!(why.refused, [(Filter::Overcommitted, 4)].into());
    let named: Vec<_> = why.nearest.iter().map(|near| near.cluster.as_str()).collect();
    assert_eq!(named, ["c3", "c2", "c4"]);
    let needs = Some(gpus(Resources::default(), 2));
    assert_eq!(why.nearest[1].more, needs, "what is asked for is there");
}

#[test]
fn where_more_than_64_bits_are_taken_of_one_resource_the_others_are_counted_all_the_same() {
    let size = || Resources::new(8000, 16 * GI);
    let mut fleet = Fleet::new().with("c1", size(), size());
    fleet.reserve("c0", &ask(500, GI)).unwrap();
    let allocated = Resources::new(100, u64::MAX);
    fleet.hear(Advertisement { allocated, ..fleet.word(&id("c1")) });
    assert_eq!(fleet.books.room(&id("c1")), Resources::new(7400, 0));
    assert!(fleet.books.is_overcommitted(&id("c1")));
}
