//! A long queue of waiting requests: tried in pieces, and in its order all the same.

use std::sync::Arc;

use sublet_broker::engine::{Answer, Engine, Failure, Submitted, Work};
use sublet_core::advertisement::Advertisement;
use sublet_core::books::Books;
use sublet_core::event::{Event, Note};
use sublet_core::id::ClusterId;
use sublet_core::ledger::Stamp;
use sublet_core::plan::{Command, Refusal};
use sublet_core::policy::{Allowance, Policy, Silence};
use sublet_core::reservation::{Actor, Ask, Phase, Reservation};
use sublet_core::resources::Resources;
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
    assert!(steps > 5, "all in {steps} steps");
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

#[test]
fn one_cluster_cannot_fill_the_queue() {
    let allowance = Allowance { waiting_max: 2, ..Allowance::default() };
    let policy = Policy { allowance, ..Policy::default() };
    let mut stage = Stage(Engine::new(Books::default(), Arc::new(policy)));
    let answers = stage.step(["a", "b", "c"].map(|key| request(key, 1, 0)));
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, [Failure::Refused(Refusal::TooManyWaiting(2))]);
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
