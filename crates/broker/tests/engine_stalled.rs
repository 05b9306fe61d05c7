//! What is planned while a write takes long: written as of the time at which the disk is free.

use std::sync::Arc;

use sublet_broker::engine::{Answer, Batch, Engine, Failure, Submitted, Work};
use sublet_core::advertisement::Advertisement;
use sublet_core::books::Books;
use sublet_core::event::Event;
use sublet_core::id::ClusterId;
use sublet_core::plan::{Command, Refusal, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};

fn cluster(name: &str) -> ClusterId {
    name.parse().unwrap()
}

fn at(seconds: u64) -> Time {
    Time::from_millis(1_800_000_000_000 + seconds * 1000)
}

fn advertise(name: &str) -> Work {
    let said = Advertisement::plain(cluster(name), Resources::new(8, 8), Resources::default());
    Work::Command(Command::Advertise(Box::new(said)))
}

fn request(key: &str, ask: Ask) -> Work {
    let ask = Ask { resources: Resources::new(1, 1), ..ask };
    let (requester, key) = (cluster("me"), key.parse().unwrap());
    Work::Command(Command::Reserve { requester, key, ask, explain: false })
}

fn tombstone(key: &str) -> Work {
    let which = Which::Key(cluster("me"), key.parse().unwrap());
    Work::Command(Command::Release { by: Actor::Cluster(cluster("me")), which })
}

struct Stage(Engine<u32>);

impl Stage {
    /// An engine whose disk is busy with a batch of time zero, and whose next batch is open since then.
    fn stalled() -> Self {
        let mut stage = Self(Engine::new(Books::default(), Arc::new(Policy::default())));
        stage.step(0, [advertise("c1"), tombstone("first")]);
        assert!(stage.0.close().0.is_some());
        stage.step(0, [tombstone("second")]);
        stage
    }

    fn step(&mut self, seconds: u64, work: impl IntoIterator<Item = Work>) {
        let work = work.into_iter().zip(0..).map(|(work, ticket)| Submitted { work, ticket });
        self.0.step(work, at(seconds)).unwrap();
    }

    /// The disk is free: what is handed to it, and what is answered once that is durable.
    fn goes_on(mut self, seconds: u64) -> (Batch, Vec<(u32, Answer)>) {
        self.0.committed();
        assert!(self.0.plan_anew(at(seconds)).unwrap(), "nothing was taken back");
        self.step(seconds, []);
        let batch = self.0.close().0.unwrap();
        (batch, self.0.committed())
    }
}

#[test]
fn a_grant_that_was_planned_during_a_long_write_lasts_as_long_as_was_asked() {
    let mut stage = Stage::stalled();
    let asked = Ask { duration: Some(Span::from_secs(5)), ..Ask::default() };
    stage.step(7, [request("short", asked)]);
    let (batch, answers) = stage.goes_on(8);
    assert_eq!(batch.stamp.time, at(8));
    let [Event::KeyReleased { .. }, Event::Reserved { expires_at, .. }] = batch.body.events()
    else {
        panic!("{:?}", batch.body.events())
    };
    assert_eq!(*expires_at, Some(at(13)));
    assert!(answers.len() == 2 && answers.iter().all(|(_, answer)| answer.is_ok()), "{answers:?}");
}

#[test]
fn a_provider_that_fell_silent_during_a_long_write_is_not_chosen() {
    let mut stage = Stage::stalled();
    stage.step(88, [request("late", Ask::default())]);
    let (batch, answers) = stage.goes_on(95);
    assert!(matches!(batch.body.events(), [Event::KeyReleased { .. }]));
    let suspects = |(_, answer): &(u32, Answer)| {
        matches!(answer, Err(Failure::Refused(Refusal::OnlySuspects(_))))
    };
    assert!(answers.iter().any(suspects), "{answers:?}");
}

#[test]
fn what_was_planned_just_now_is_written_as_it_is() {
    let mut stage = Stage::stalled();
    stage.0.committed();
    assert!(!stage.0.plan_anew(at(1)).unwrap());
    let batch = stage.0.close().0.unwrap();
    assert_eq!(batch.stamp.time, at(0));
}
