//! How long a request takes to become a reservation, and instructions in two clusters.
//!
//! From before the object is sent to the API server, until a watch of each API server shows it: what
//! the two API servers take is in it. One request at a time; and then many at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sublet_testkit::wait::{PATIENCE, Stopwatch, wall};
use sublet_testkit::{Cluster, wait_for};

use crate::broker::Broker;
use crate::used::row;

const TRIALS: usize = 50;
/// So many at once.
const MANY: usize = 200;
const REQUESTS: &str = "/apis/rear.fluidos.eu/v1alpha1/namespaces/default/resourcerequests";
const BORROWED: &str = "/apis/rear.fluidos.eu/v1alpha1/namespaces/sublet/reservationinstructions";
const LENT: &str = "/apis/rear.fluidos.eu/v1alpha1/namespaces/sublet/providerinstructions";

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Reserved,
    Borrowed,
    Lent,
}

/// That it was seen, of which request or reservation, and when.
struct Sight {
    what: What,
    name: String,
    at: Duration,
}

/// Median and others, in milliseconds.
pub(crate) fn spread(times: &mut [Duration]) -> String {
    times.sort();
    let at = |percent: usize| {
        let index = (times.len() * percent / 100).min(times.len() - 1);
        times[index].as_secs_f64() * 1000.0
    };
    format!("p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms (of {})", at(50), at(90), at(99), times.len())
}

/// Tells of each of so many objects once, when it first is as it should be.
fn follow(
    cluster: &Cluster,
    (what, path): (What, &str),
    count: usize,
    tell: SyncSender<Sight>,
) -> Result<(), sublet_testkit::Error> {
    let mut seen = BTreeSet::new();
    cluster.api().watch(path, |event| {
        let at = wall();
        let object = &event["object"];
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let phase = &object["status"]["phase"];
        let is_it = what != What::Reserved || phase == "Reserved" || phase == "Active";
        if is_it && event["type"] != "DELETED" && seen.insert(name.clone()) {
            // Whoever listened has given up otherwise.
            drop(tell.send(Sight { what, name, at }));
        }
        seen.len() < count
    })
}

fn request(name: &str) -> Value {
    json!({
        "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ResourceRequest",
        "metadata": { "name": name },
        "spec": { "requestedCPU": "100m", "requestedMemory": "64Mi", "duration": "1h" },
    })
}

/// Creates one, and says when it was sent and when each thing was seen.
fn trial(
    cluster: &Cluster,
    number: usize,
    sights: &Receiver<Sight>,
) -> Result<(Duration, BTreeMap<What, Sight>)> {
    let (name, sent) = (format!("trial-{number}"), wall());
    cluster.api().create(REQUESTS, &request(&name))?;
    let mut seen = BTreeMap::new();
    while seen.len() < 3 {
        let sight = sights.recv_timeout(PATIENCE).context("something was never seen")?;
        seen.insert(sight.what, sight);
    }
    give_back(cluster, &name)?;
    Ok((sent, seen))
}

/// Deletes a request, and waits until it is gone.
fn give_back(cluster: &Cluster, name: &str) -> Result<()> {
    let path = format!("{REQUESTS}/{name}");
    cluster.api().delete(&path)?;
    Ok(wait_for("the request to go", PATIENCE, || cluster.api().get(&path).is_err().then_some(()))?)
}

/// Many requests at once: how long after the first was sent they are reserved.
pub(crate) fn measure_many(requester: &Cluster) -> Result<()> {
    let (tell, sights) = sync_channel(MANY);
    let names: Vec<_> = (0..MANY).map(|number| format!("crowd-{number}")).collect();
    let requests: Vec<_> = names.iter().map(|name| request(name)).collect();
    let mut times = thread::scope(|scope| {
        scope.spawn(move || follow(requester, (What::Reserved, REQUESTS), MANY, tell));
        let sent = wall();
        requester.api().create_all(REQUESTS, &requests)?;
        let mut times = Vec::new();
        while times.len() < MANY {
            let sight = sights.recv_timeout(PATIENCE).context("not all were reserved")?;
            times.push(sight.at.saturating_sub(sent));
        }
        anyhow::Ok(times)
    })?;
    times.sort();
    let at = |index: usize| times[index].as_secs_f64();
    let (half, last) = (at(MANY / 2), at(MANY - 1));
    let found = format!("first {:.2} s, half {half:.2} s, last {last:.2} s", at(0));
    row(&format!("{MANY} requests at once: until Reserved"), &found, "");
    names.iter().try_for_each(|name| give_back(requester, name))
}

/// When the broker decided, by reservation.
fn decisions(broker: &Broker) -> Result<BTreeMap<String, Duration>> {
    let list = broker.ask(&["get", "reservations", "--all", "-o", "json"])?;
    let mut found = BTreeMap::new();
    for one in list.as_array().context("no list")? {
        let at = one["createdAt"].as_str().context("no time")?;
        let at: jiff::Timestamp = at.parse()?;
        let at = Duration::from_millis(u64::try_from(at.as_millisecond())?);
        found.insert(one["id"].as_str().context("no id")?.to_owned(), at);
    }
    Ok(found)
}

/// Measures, and prints rows.
pub(crate) fn measure(requester: &Cluster, provider: &Cluster, broker: &Broker) -> Result<()> {
    let (tell, sights) = sync_channel(16);
    let mut times: BTreeMap<What, Vec<Duration>> = BTreeMap::new();
    let mut lent = Vec::new();
    thread::scope(|scope| {
        for (cluster, what, path) in [
            (requester, What::Reserved, REQUESTS),
            (requester, What::Borrowed, BORROWED),
            (provider, What::Lent, LENT),
        ] {
            let tell = tell.clone();
            scope.spawn(move || follow(cluster, (what, path), TRIALS + 1, tell));
        }
        // The first one is for the connections.
        for number in 0..=TRIALS {
            let (sent, seen) = trial(requester, number, &sights)?;
            for (what, sight) in seen.into_iter().filter(|_| number > 0) {
                times.entry(what).or_default().push(sight.at.saturating_sub(sent));
                if what == What::Lent {
                    lent.push(sight);
                }
            }
        }
        anyhow::Ok(())
    })?;
    let decided = decisions(broker)?;
    let since = |sight: &Sight| {
        let id = sight.name.trim_end_matches("-provider");
        decided.get(id).map(|decided| sight.at.saturating_sub(*decided))
    };
    let mut after: Vec<_> = lent.iter().filter_map(since).collect();
    for (what, name) in [
        (What::Reserved, "from create to status Reserved"),
        (What::Borrowed, "from create to ReservationInstruction"),
        (What::Lent, "from create to ProviderInstruction in the other cluster"),
    ] {
        row(name, &spread(times.get_mut(&what).context("nothing was seen")?), "");
    }
    row("from the decision to ProviderInstruction", &spread(&mut after), "< 50 ms");
    let clock = Stopwatch::start();
    requester.kubectl(&["get", "resourcerequests"])?;
    let kubectl = format!("{:.0} ms", clock.elapsed().as_secs_f64() * 1000.0);
    row("for comparison: one run of kubectl", &kubectl, "");
    Ok(())
}
