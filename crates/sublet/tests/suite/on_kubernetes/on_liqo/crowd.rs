//! Many reservations at once, in all directions between three clusters that each lend and borrow.

use serde_json::{Value, json};
use sublet_testkit::wait::{PATIENCE, Stopwatch};
use sublet_testkit::{Setup, Signal, wait_for};

use super::super::member::at_broker;
use super::dice::Dice;
use super::side::{self, REQUESTS, Side};
use super::unpinned::a_key_that_is_not_pinned_is_said_everywhere;
use crate::broker::Town;

const CLUSTERS: [(&str, &str); 3] = [("shop", "16"), ("edge", "16"), ("yard", "16")];
/// Who borrows from whom.
const DIRECTIONS: [(usize, usize); 6] = [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)];
const CROWD: usize = 20;
const MIB: u64 = 1 << 20;

/// Something that is asked for.
struct Wish {
    name: String,
    from: usize,
    to: usize,
    milli_cpu: u64,
    mebibytes: u64,
}

impl Wish {
    /// All have different sizes, so that no two can be mistaken for each other.
    fn new(number: usize, dice: &mut Dice) -> Self {
        let (from, to) = DIRECTIONS[number % DIRECTIONS.len()];
        let unit = number as u64;
        let milli_cpu = 500 + 100 * (dice.below(10) as u64) + unit;
        let mebibytes = 512 + 128 * (dice.below(10) as u64) + unit;
        Self { name: format!("crowd-{number}"), from, to, milli_cpu, mebibytes }
    }

    fn request(&self) -> Value {
        json!({
            "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ResourceRequest",
            "metadata": { "name": self.name },
            "spec": {
                "requestedCPU": format!("{}m", self.milli_cpu),
                "requestedMemory": format!("{}Mi", self.mebibytes),
                "duration": "1h",
                "targetClusterID": CLUSTERS[self.to].0,
            },
        })
    }

    /// Is it exactly what was asked for?
    fn is(&self, amounts: &Value) -> bool {
        let text = |name: &str| amounts[name].as_str().unwrap_or_default().to_owned();
        milli(&text("cpu")) == Some(self.milli_cpu)
            && bytes(&text("memory")) == Some(self.mebibytes * MIB)
    }
}

/// As Kubernetes prints cores.
fn milli(text: &str) -> Option<u64> {
    match text.strip_suffix('m') {
        Some(milli) => milli.parse().ok(),
        None => text.parse::<u64>().ok().map(|cores| cores * 1000),
    }
}

/// As Kubernetes prints what is a whole number of mebibytes.
fn bytes(text: &str) -> Option<u64> {
    match (text.strip_suffix("Mi"), text.strip_suffix("Gi")) {
        (Some(mebibytes), _) => mebibytes.parse::<u64>().ok().map(|count| count * MIB),
        (_, Some(gibibytes)) => gibibytes.parse::<u64>().ok().map(|count| count * 1024 * MIB),
        _ => text.parse().ok(),
    }
}

/// What each has left to lend, as the broker sees it.
fn available(town: &Town) -> Vec<(u64, u64)> {
    let left = |(name, _): &(&str, &str)| {
        let told = at_broker(town, name).unwrap();
        let text = |what: &str| told["resources"]["available"][what].as_str().unwrap().to_owned();
        (milli(&text("cpu")).unwrap(), bytes(&text("memory")).unwrap())
    };
    CLUSTERS.iter().map(left).collect()
}

/// Waits until all requests of a cluster that are there are usable, and there are so many.
#[track_caller]
fn wait_until_usable(side: &Side, count: usize) {
    let mut seen = Vec::new();
    let usable = wait_for("all to be usable", PATIENCE, || {
        let list = side.get(REQUESTS)?;
        let all = list["items"].as_array()?;
        let say = |one: &Value| format!("{} {}", one["metadata"]["name"], one["status"]);
        seen = all.iter().map(say).collect();
        let active = all.iter().filter(|one| one["status"]["phase"] == "Active");
        (active.count() == count && all.len() == count).then_some(())
    });
    assert!(usable.is_ok(), "{}: {seen:#?}\n{}", side.name(), side.agent.log_tail());
}

/// A node of exactly this size at the one, and a quota of exactly this size at the other.
fn check(wish: &Wish, sides: &[Side]) {
    let (borrows, lends) = (&sides[wish.from], &sides[wish.to]);
    let status = borrows.request(&wish.name).unwrap()["status"].clone();
    assert_eq!(status["targetClusterID"], lends.name(), "{}", wish.name);
    let id = status["reservationName"].as_str().unwrap();
    let node = borrows.get(&format!("/api/v1/nodes/{id}")).unwrap();
    let allocatable = &node["status"]["allocatable"];
    assert!(wish.is(allocatable), "{} has a node of {allocatable}", wish.name);
    assert_eq!(node["metadata"]["labels"]["liqo.io/remote-cluster-id"], lends.name());
    let namespace = format!("liqo-tenant-{}", borrows.name());
    let quotas = format!("/apis/offloading.liqo.io/v1beta1/namespaces/{namespace}/quotas");
    let quotas = lends.get(&quotas).unwrap();
    let is_its = |quota: &&Value| quota["metadata"]["name"].as_str().unwrap().starts_with(id);
    let mut its = quotas["items"].as_array().unwrap().iter().filter(is_its);
    let (Some(quota), None) = (its.next(), its.next()) else { panic!("one quota of {id}") };
    let resources = &quota["spec"]["resources"];
    assert!(wish.is(resources), "{} has a quota of {resources}", wish.name);
}

/// How many of these borrow here.
fn of(wishes: &[Wish], cluster: usize) -> usize {
    wishes.iter().filter(|wish| wish.from == cluster).count()
}

fn create(wish: &Wish, sides: &[Side]) {
    sides[wish.from].member.cluster.api().create(REQUESTS, &wish.request()).unwrap();
}

fn delete(wish: &Wish, sides: &[Side]) {
    let api = sides[wish.from].member.cluster.api();
    api.delete(&format!("{REQUESTS}/{}", wish.name)).unwrap();
}

/// Half of them go while the others are used and as many more come: all that are there then.
fn exchange(mut wishes: Vec<Wish>, sides: &[Side], dice: &mut Dice) -> Vec<Wish> {
    dice.shuffle(&mut wishes);
    let mut kept = wishes.split_off(CROWD / 2);
    let more = (CROWD..CROWD + CROWD / 2).map(|number| Wish::new(number, dice));
    for (old, new) in wishes.iter().zip(more) {
        delete(old, sides);
        create(&new, sides);
        kept.push(new);
    }
    for (number, side) in sides.iter().enumerate() {
        wait_until_usable(side, of(&kept, number));
    }
    for wish in &kept {
        check(wish, sides);
    }
    kept
}

/// All go at once: the agents are frozen until the last one is to go, so that they find all of them.
fn release(wishes: &[Wish], sides: &[Side]) {
    let tell = |signal: Signal| sides.iter().for_each(|side| side.agent.signal(signal).unwrap());
    tell(Signal::STOP);
    for wish in wishes {
        delete(wish, sides);
    }
    let is_going = |one: &&Value| one["metadata"]["deletionTimestamp"].is_string();
    let going = |side: &Side| {
        let requests = side.get(REQUESTS).unwrap();
        requests["items"].as_array().unwrap().iter().filter(is_going).count()
    };
    assert_eq!(sides.iter().map(going).sum::<usize>(), wishes.len());
    tell(Signal::CONT);
}

#[test]
fn twenty_at_once_between_three_clusters_are_each_exactly_what_was_asked_for() {
    let clock = Stopwatch::start();
    let mut dice = Dice::new();
    let town = Town::new();
    town.anna.ok("ca issue yard --out certs/yard");
    let sides = side::start(&town, |name| Setup::for_liqo(name), &CLUSTERS);
    eprintln!("three clusters with Liqo and agents after {:?}", clock.elapsed());
    let before: Vec<_> = sides.iter().map(Side::inventory).collect();
    let all = available(&town);
    // The crowd then finds two clusters that could not be joined a moment ago.
    a_key_that_is_not_pinned_is_said_everywhere(&town, &sides);

    let clock = Stopwatch::start();
    let mut wishes: Vec<_> = (0..CROWD).map(|number| Wish::new(number, &mut dice)).collect();
    dice.shuffle(&mut wishes);
    for wish in &wishes {
        create(wish, &sides);
    }
    for (number, side) in sides.iter().enumerate() {
        wait_until_usable(side, of(&wishes, number));
    }
    eprintln!("{CROWD} are usable after {:?}", clock.elapsed());
    for wish in &wishes {
        check(wish, &sides);
    }
    let held = |lender: usize| {
        let lent = wishes.iter().filter(|wish| wish.to == lender);
        lent.fold((0, 0), |(cpu, memory), wish| {
            (cpu + wish.milli_cpu, memory + wish.mebibytes * MIB)
        })
    };
    let left = (0..).zip(&all).map(|(lender, (cpu, memory))| {
        let (held_cpu, held_memory) = held(lender);
        (cpu - held_cpu, memory - held_memory)
    });
    assert_eq!(available(&town), left.collect::<Vec<_>>());

    let clock = Stopwatch::start();
    let kept = exchange(wishes, &sides, &mut dice);
    eprintln!("half have gone, and others are usable, after {:?}", clock.elapsed());
    let clock = Stopwatch::start();
    release(&kept, &sides);
    for (side, before) in sides.iter().zip(&before) {
        side.wait_until_as(before);
    }
    eprintln!("everything is as before after {:?}", clock.elapsed());
    let again =
        wait_for("all of it to be available", PATIENCE, || (available(&town) == all).then_some(()));
    assert!(again.is_ok(), "{:?} of {all:?}", available(&town));
}
