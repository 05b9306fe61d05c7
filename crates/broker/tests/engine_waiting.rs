//! A long queue of waiting requests: tried in pieces, and in its order all the same.

use std::sync::Arc;

use sublet_broker::engine::{Answer, Engine, Failure, Submitted, Work};
use sublet_core::advertisement::Advertisement;
use sublet_core::books::Books;
use sublet_core::decision::{Constraint, Match};
use sublet_core::event::{Event, Note};
use sublet_core::id::ClusterId;
use sublet_core::ledger::Stamp;
use sublet_core::plan::{Command, Fill, Refusal, Which};
use sublet_core::policy::{Allowance, Policy, Silence};
use sublet_core::reservation::{Actor, Ask, Phase, Reservation};
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::{Span, Time};

/// So many wait between the first and the last; nobody can lend what they ask for.
const CROWD: u64 = 3000;
const NOW: Time = Time::from_millis(1_800_000_000_000);

fn cluster(name: &str) -> ClusterId {
    name.parse().unwrap()
}

fn advertise(name: &str, cores: u64) -> Work {
    let room = Resources::new(cores, cores);
    let said = Advertisement::plain(cluster(name), room, Resources::default());
    Work::Command(Command::Advertise(Box::new(said)))
}

fn request(key: &str, cores: u64, priority: i32) -> Work {
    let resources = Resources::new(cores, cores);
    let ask = Ask { resources, priority, wait: Some(Span::from_secs(60)), ..Ask::default() };
    let (requester, key) = (cluster("me"), key.parse().unwrap());
    Work::Command(Command::Reserve { requester, key, ask, explain: false })
}

struct Stage(Engine<()>);

impl Stage {
    /// An engine with a crowd that waits, and one request before and one after it.
    fn crowded(front: u64, back: u64) -> Self {
        let allowance = Allowance { waiting_max: u32::MAX, ..Allowance::default() };
        let policy = Policy { waiting_max: u32::MAX, allowance, ..Policy::default() };
        let mut stage = Self(Engine::new(Books::default(), Arc::new(policy)));
        stage.finish([request("front", front, 5)]);
        stage.finish((0..CROWD).map(|number| request(&format!("crowd-{number}"), 1000, 1)));
        stage.finish([request("back", back, 1)]);
        stage
    }

    /// One step; what is durable is told.
    fn step(&mut self, work: impl IntoIterator<Item = Work>) -> Vec<Answer> {
        let work = work.into_iter().map(|work| Submitted { work, ticket: () });
        self.0.step(work, NOW).unwrap();
        let (batch, mut answers) = self.0.close();
        if batch.is_some() {
            answers.extend(self.0.committed());
        }
        answers.into_iter().map(|((), answer)| answer).collect()
    }

    /// As many steps as there are to do; how many.
    fn finish(&mut self, work: impl IntoIterator<Item = Work>) -> usize {
        self.step(work);
        let mut steps = 1;
        while self.0.is_behind() {
            self.step([]);
            steps += 1;
        }
        steps
    }

    fn find(&self, key: &str) -> Option<&Reservation> {
        let key = key.parse().unwrap();
        self.0.books().ledger().reservations(None).find(|r| r.key.as_ref() == Some(&key))
    }

    fn is_granted(&self, key: &str) -> bool {
        self.find(key).is_some_and(|found| found.phase() == Phase::Reserved)
    }
}

#[test]
fn a_long_queue_is_tried_in_pieces_to_its_end() {
    let mut stage = Stage::crowded(1000, 2);
    let steps = stage.finish([advertise("c1", 2)]);
    assert!(steps > 2, "all in {steps} steps");
    assert!(stage.is_granted("back") && !stage.is_granted("front"));
}

#[test]
fn what_comes_free_between_two_pieces_goes_to_who_waits_in_front() {
    let mut stage = Stage::crowded(4, 4);
    stage.step([advertise("c1", 2)]);
    assert!(stage.0.is_behind(), "the queue is tried in pieces");
    stage.step([]);
    stage.finish([advertise("c2", 4)]);
    assert!(stage.is_granted("front") && !stage.is_granted("back"));
}

#[test]
fn a_request_that_comes_between_two_pieces_has_its_own_place() {
    for (priority, passes) in [(2, true), (1, false), (0, false)] {
        let mut stage = Stage::crowded(1000, 2);
        stage.step([advertise("c1", 2)]);
        assert!(stage.0.is_behind(), "the queue is tried in pieces");
        stage.finish([request("new", 2, priority)]);
        assert_eq!(stage.is_granted("new"), passes, "priority {priority}");
        assert_eq!(stage.is_granted("back"), !passes, "priority {priority}");
    }
}

#[test]
fn a_queue_comes_to_its_end_although_something_comes_free_all_the_time() {
    let mut stage = Stage::crowded(1000, 2);
    stage.step([advertise("c1", 2)]);
    let steps = (0..100).take_while(|number| {
        stage.step([advertise(&format!("new-{number}"), 1)]);
        !stage.is_granted("back")
    });
    assert!((2..50).contains(&steps.count()));
}

/// Half of them have the label that is asked for, and nothing to lend; the others have room.
const FLEET: u64 = 10_000;
const LABELLED: u64 = 100;

fn labelled(number: u64, zone: &str, free: u64) -> Advertisement {
    let size = Resources::new(8, 8);
    let taken = Resources::new(8 - free, 8 - free);
    let mut said = Advertisement::plain(cluster(&format!("p{number}")), size, taken);
    said.labels.insert("zone".into(), zone.into());
    said
}

fn asks_for_a_zone(key: &str) -> Work {
    let Work::Command(Command::Reserve { requester, key, ask, explain }) = request(key, 1, 1)
    else {
        panic!()
    };
    let is = Match::In(vec!["full".into()]);
    let ask = Ask { constraints: vec![Constraint { label: "zone".into(), is }], ..ask };
    Work::Command(Command::Reserve { requester, key, ask, explain })
}

impl Stage {
    fn policy() -> Arc<Policy> {
        let allowance = Allowance { waiting_max: u32::MAX, ..Allowance::default() };
        Arc::new(Policy { waiting_max: u32::MAX, allowance, ..Policy::default() })
    }

    /// A large fleet, and many who wait for what each of them would have to look for everywhere.
    fn searching() -> Self {
        let (mut books, policy) = (Books::default(), Self::policy());
        for number in 0..FLEET {
            let (zone, free) = if number % 2 == 0 { ("full", 0) } else { ("other", 4) };
            books.hear(labelled(number, zone, free), NOW, &policy.silence);
        }
        let mut stage = Self(Engine::new(books, policy));
        stage.finish((0..LABELLED).map(|number| asks_for_a_zone(&format!("w{number:03}"))));
        stage
    }

    /// One step, and how many clusters were looked at in it for those who wait.
    fn looks(&mut self, work: impl IntoIterator<Item = Work>) -> u64 {
        let before = self.0.looked_at();
        self.step(work);
        self.0.looked_at() - before
    }
}

fn says(number: u64, zone: &str, free: u64) -> Work {
    Work::Command(Command::Advertise(Box::new(labelled(number, zone, free))))
}

#[test]
fn one_step_looks_at_so_many_clusters_however_many_wait() {
    let mut stage = Stage::searching();
    // Under another policy everybody is tried on the whole fleet; meanwhile somebody has more room
    // all the time.
    stage.0.set_policy(Stage::policy());
    let mut steps = 0;
    while steps == 0 || stage.0.is_behind() {
        let looks = stage.looks([says(1 + 2 * (steps % 4000), "other", 5 + steps / 4000)]);
        assert!(looks <= 2 * Fill::LOOKS + FLEET, "{looks} in step {steps}");
        steps += 1;
        assert!(steps <= 2 * LABELLED, "the pass does not come to its end");
    }
    assert!(steps >= LABELLED / 2, "{steps} steps: nothing was looked at");
    // Who was tried is asked about the one cluster that has more.
    let looks = stage.looks([says(9001, "other", 5)]);
    assert!(looks <= 3 * LABELLED && !stage.0.is_behind(), "{looks} looks");
}

#[test]
fn room_that_comes_up_during_a_long_pass_goes_to_who_waits_in_front() {
    let mut stage = Stage::searching();
    stage.0.set_policy(Stage::policy());
    for _ in 0..10 {
        stage.step([]);
    }
    assert!(stage.0.is_behind());
    stage.step([says(4000, "full", 2)]);
    assert!(stage.0.is_behind(), "the pass goes on");
    let granted = |key: &str| stage.is_granted(key);
    assert!(granted("w000") && granted("w001") && !granted("w002"));
}

#[test]
fn who_may_borrow_more_is_tried_everywhere_again() {
    let held = Limits([(Kind::Cpu, 2)].into());
    let allowance = Allowance { held, ..Allowance::default() };
    let policy = Policy { allowance, ..Policy::default() };
    let mut stage = Stage(Engine::new(Books::default(), Arc::new(policy)));
    stage.finish([advertise("c1", 2), advertise("c2", 2), request("first", 2, 0)]);
    stage.finish([request("waits", 2, 0)]);
    assert!(stage.is_granted("first") && !stage.is_granted("waits"));
    let (by, id) = (Actor::Cluster(cluster("me")), stage.find("first").unwrap().id);
    let release = Command::Release { by, which: Which::Id(id) };
    stage.finish([advertise("c1", 1), Work::Command(release)]);
    assert!(stage.is_granted("waits"), "on the other cluster, which has not changed");
}

#[test]
fn one_cluster_cannot_fill_the_queue() {
    let allowance = Allowance { waiting_max: 2, ..Allowance::default() };
    let policy = Policy { allowance, ..Policy::default() };
    let mut stage = Stage(Engine::new(Books::default(), Arc::new(policy)));
    let answers = stage.step(["a", "b", "c"].map(|key| request(key, 1, 0)));
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    let [Failure::Refused(Refusal::TooManyWaiting { most: 2, why })] = refused.as_slice() else {
        panic!("{refused:?}")
    };
    assert_eq!(why.to_string(), "no cluster is known");
    // Who waits no longer makes room for another.
    stage.finish([advertise("c1", 1)]);
    assert!(stage.is_granted("a"));
    assert!(stage.step([request("c", 1, 0)])[0].is_ok());
    assert!(stage.step([request("d", 1, 0)])[0].is_err());
}

#[test]
fn what_was_held_back_after_a_restore_is_granted_when_that_is_over_though_nothing_else_happens() {
    let silence = Silence { stale_after: Span::from_secs(40), ..Silence::default() };
    let policy = Policy { silence, ..Policy::default() };
    let mut stage = Stage(Engine::new(Books::default(), Arc::new(policy.clone())));
    stage.finish([request("waits", 2, 0)]);
    let mut ledger = stage.0.books().ledger().clone();
    let note = Note { by: Actor::Operator("ops".into()), why: "test".into() };
    let at = Stamp { revision: ledger.stamp().revision.next(), time: NOW };
    ledger.apply(at, &Event::Restored { note: note.clone() }).unwrap();
    let vouched = Event::Reconciled { cluster: cluster("c1"), note };
    ledger.apply(at, &vouched).unwrap();
    let mut stage = Stage(Engine::new(Books::new(ledger).listening(NOW), Arc::new(policy)));
    let later = |seconds| NOW.checked_add(Span::from_secs(seconds)).unwrap();
    let said = Submitted { work: advertise("c1", 2), ticket: () };
    stage.0.step([said], later(38)).unwrap();
    drop(stage.0.close());
    stage.0.committed();
    for (seconds, granted) in [(39, false), (40, true)] {
        stage.0.sweep(later(seconds), false).unwrap();
        assert_eq!(stage.is_granted("waits"), granted, "after {seconds} s");
    }
}
