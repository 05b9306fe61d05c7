//! A reservation lives its whole life, and at every step of it somebody is killed and started again:
//! an agent, the broker, one of Liqo's programs, an API server. It goes on all the same, and nothing is
//! left of it at the end.
//!
//! At each step of one life a victim is drawn, everybody in turn. With `$SUBLET_TEST_ALL`, which `cargo xtask test
//! --all` sets, there are as many lives as victims, and everybody is killed at every step.

mod step;
mod victim;

use serde_json::{Value, json};
use sublet_testkit::wait::{PATIENCE, Stopwatch};
use sublet_testkit::{Setup, wait_for};

use super::dice::Dice;
use super::side::{self, REQUESTS, Side};
use crate::broker::Town;
use step::Step;
use victim::Victim;

/// Cores of the nodes of each: shop has too little, so edge lends.
const CLUSTERS: [(&str, &str); 2] = [("shop", "2"), ("edge", "16")];
/// A replicator that starts while the provider is away takes the slice there for gone, and lets go of its
/// own. Then the provider takes it back, half a minute after this deadline.
const DEADLINE: &str = "--eviction-deadline=5s";
/// The namespace whose pods go to the other cluster.
const HOME: &str = "away";

/// Both clusters, and the broker.
struct World {
    town: Town,
    shop: Side,
    edge: Side,
}

/// The reservation of one life.
struct Life {
    request: String,
    /// Known from the step on in which it is granted.
    id: Option<String>,
}

impl Life {
    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }
}

impl World {
    fn start() -> Self {
        let town = Town::new();
        let sides = side::start_with(&town, |name| Setup::for_liqo(name), &CLUSTERS, &[DEADLINE]);
        let [shop, edge] = sides.try_into().ok().expect("two clusters");
        Self { town, shop, edge }
    }

    /// What both agents said last.
    fn logs(&self) -> String {
        let tail = |side: &Side| format!("{}:\n{}", side.name(), side.agent.log_tail());
        format!("{}\n{}", tail(&self.shop), tail(&self.edge))
    }

    fn attend(&self) {
        self.shop.attend();
        self.edge.attend();
    }

    fn create(&self, life: &Life) {
        let request = json!({
            "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ResourceRequest",
            "metadata": { "name": life.request },
            "spec": { "requestedCPU": "3", "requestedMemory": "2Gi", "duration": "1h",
                      "namespaces": [HOME] },
        });
        self.shop.member.cluster.api().create(REQUESTS, &request).unwrap();
    }

    fn delete(&self, life: &Life) {
        let path = format!("{REQUESTS}/{}", life.request);
        self.shop.member.cluster.api().delete(&path).unwrap();
    }

    /// Waits for a step, and kills somebody the moment that it is seen.
    fn kill_at(&mut self, step: Step, victim: Victim, life: &mut Life) {
        let clock = Stopwatch::start();
        let seen = wait_for(&format!("{step:?}"), PATIENCE, || {
            self.attend();
            step.is_taken(self, life)
        });
        let seen_after = clock.elapsed();
        assert!(seen.is_ok(), "{step:?} was not reached\n{}", self.logs());
        if !victim.is_there(step) {
            eprintln!("{step:?} after {seen_after:.1?}: there is no {victim:?}");
            return;
        }
        let clock = Stopwatch::start();
        victim.die_and_rise(self, step, life);
        let back = clock.elapsed();
        eprintln!("{step:?} after {seen_after:.1?}: {victim:?} was killed, back after {back:.1?}");
    }

    /// One life. At each step the victim of that step is killed.
    fn live(&mut self, name: &str, mut victim_at: impl FnMut(Step) -> Victim) {
        let clock = Stopwatch::start();
        let before = [self.shop.inventory(), self.edge.inventory()];
        let mut life = Life { request: name.to_owned(), id: None };
        let kubectl = |arguments: &[&str]| self.shop.member.cluster.kubectl(arguments).unwrap();
        kubectl(&["create", "namespace", HOME]);
        kubectl(&["label", "namespace", HOME, "sublet.io/may-be-offloaded=true"]);
        self.create(&life);
        for step in Step::COMING {
            self.kill_at(step, victim_at(step), &mut life);
        }
        self.check_usable(&life);
        self.send_pod(&life);
        self.delete(&life);
        for step in Step::GOING {
            self.kill_at(step, victim_at(step), &mut life);
        }
        self.shop.member.delete("namespace", HOME);
        for (side, before) in [&self.shop, &self.edge].into_iter().zip(&before) {
            side.wait_until_as(before);
        }
        let reservation = self.town.reservation(life.id());
        assert_eq!(reservation["status"]["phase"], "Released", "{reservation}");
        eprintln!("{name} lived for {:.1?}", clock.elapsed());
    }

    /// The node is there and exactly as large as was asked for, whoever was killed on the way to it and
    /// after that.
    fn check_usable(&self, life: &Life) {
        let usable = wait_for("the node", PATIENCE, || {
            self.attend();
            let phase = self.shop.request(&life.request)?["status"]["phase"].clone();
            let node = self.shop.get(&format!("/api/v1/nodes/{}", life.id()))?;
            (phase == "Active" && step::is_ready(&node)).then_some(node)
        });
        let node = usable.unwrap_or_else(|late| panic!("{late}\n{}", self.logs()));
        let has: &Value = &node["status"]["allocatable"];
        assert_eq!((has["cpu"].as_str(), has["memory"].as_str()), (Some("3"), Some("2Gi")));
    }
}

impl World {
    /// Puts a pod on the node, and waits until it is in the other cluster.
    fn send_pod(&self, life: &Life) {
        let requests = json!({ "cpu": "500m", "memory": "64Mi" });
        let pod = json!({
            "metadata": { "name": "guest" },
            "spec": { "nodeName": life.id(), "containers": [{
                "name": "main", "image": "simulated",
                "resources": { "requests": requests, "limits": requests },
            }] },
        });
        let offloading = format!(
            "/apis/offloading.liqo.io/v1beta1/namespaces/{HOME}/namespaceoffloadings/offloading"
        );
        let sent = wait_for("the namespace over there", PATIENCE, || {
            self.attend();
            (self.shop.get(&offloading)?["status"]["offloadingPhase"] == "Ready").then_some(())
        })
        .and_then(|()| {
            // Liqo's webhook is asked about it, and may have been killed a moment ago.
            let pods = format!("/api/v1/namespaces/{HOME}/pods");
            let api = self.shop.member.cluster.api();
            wait_for("the pod to be taken", PATIENCE, || api.create(&pods, &pod).ok().map(drop))
        })
        .and_then(|()| {
            wait_for("the pod over there", PATIENCE, || {
                self.attend();
                self.edge.get(&format!("/api/v1/namespaces/{HOME}-shop/pods/guest")).map(drop)
            })
        });
        sent.unwrap_or_else(|late| panic!("{late}\n{}", self.logs()));
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration but its environment")]
fn is_whole() -> bool {
    std::env::var_os("SUBLET_TEST_ALL").is_some()
}

#[test]
fn whoever_is_killed_at_any_step_a_reservation_lives_and_leaves_nothing() {
    let clock = Stopwatch::start();
    let mut world = World::start();
    eprintln!("two clusters with Liqo and agents after {:?}", clock.elapsed());
    if is_whole() {
        // Each step has another victim in each life, and so all of them in all lives.
        for turn in 0..Victim::ALL.len() {
            let victim_at = |step: Step| Victim::ALL[(step as usize + turn) % Victim::ALL.len()];
            world.live(&format!("life-{turn}"), victim_at);
        }
        return;
    }
    let (mut dice, mut deck) = (Dice::new(), Vec::new());
    world.live("life", |step| draw(step, &mut deck, &mut dice));
}

/// A victim who is there: everybody in turn, in any order.
fn draw(step: Step, deck: &mut Vec<Victim>, dice: &mut Dice) -> Victim {
    loop {
        if let Some(place) = deck.iter().position(|victim| victim.is_there(step)) {
            return deck.remove(place);
        }
        let mut all = Victim::ALL;
        dice.shuffle(&mut all);
        deck.extend(all);
    }
}
