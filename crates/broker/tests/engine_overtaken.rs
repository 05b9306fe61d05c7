//! What is planned again because another broker was faster.

use std::sync::Arc;

use sublet_broker::engine::{Batch, Engine, Submitted, Work};
use sublet_core::advertisement::{Advertisement, Capabilities, Number};
use sublet_core::books::Books;
use sublet_core::event::{Event, Note, Subject};
use sublet_core::id::ClusterId;
use sublet_core::market::Entry;
use sublet_core::plan::{Action, Command, Reply};
use sublet_core::policy::Policy;
use sublet_core::reservation::Actor;
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::{Body, Head, Record, Writer};

fn at(seconds: u64) -> Time {
    Time::from_millis(1_800_000_000_000 + seconds * 1000)
}

fn provider() -> ClusterId {
    "c1".parse().unwrap()
}

fn note() -> Note {
    Note { by: Actor::Operator("ada".into()), why: String::new() }
}

/// Two brokers on one log: one is an engine, the other only writes records.
struct Stage {
    engine: Engine<u32>,
    head: Head,
}

impl Stage {
    /// The provider was given up, and somebody cordoned it.
    fn new() -> Self {
        let engine = Engine::new(Books::default(), Arc::new(Policy::default())).shared(true);
        let mut stage = Self { engine, head: Head::default() };
        stage.other_writes(0, Event::Lost { cluster: provider(), note: note() });
        stage
    }

    fn other_writes(&mut self, seconds: u64, event: Event) {
        let body = Body::of([event]).unwrap();
        let record = Record::seal(&self.head, Writer(2), at(seconds), body).unwrap();
        self.head = record.head();
        self.engine.overtaken(&[record]).unwrap();
    }

    fn says(&mut self, ticket: u32, sequence: Option<u64>, seconds: u64) {
        let plain =
            Advertisement::plain(provider(), Resources::new(4000, 4000), Resources::default());
        let said = Advertisement {
            number: sequence.map(|sequence| Number { incarnation: 1, sequence }),
            grants: Some(vec![]),
            capabilities: Capabilities { acknowledge: true, ..<_>::default() },
            ..plain
        };
        let work = Work::Command(Command::Advertise(Box::new(said)));
        self.engine.step([Submitted { work, ticket }], at(seconds)).unwrap();
    }

    fn plans(&mut self, seconds: u64) {
        while self.engine.is_behind() {
            self.engine.step([], at(seconds)).unwrap();
        }
    }

    fn entry(&self) -> &Entry {
        self.engine.books().market().entry(&provider()).unwrap()
    }

    /// What is written in the end, and who was told that its advertisement was news.
    fn commits(mut self) -> (Batch, Vec<(u32, bool)>) {
        let (batch, early) = self.engine.close();
        assert_eq!(early, []);
        let told = self.engine.committed().into_iter().map(|(ticket, answer)| {
            let Reply::Advertised { news } = answer.unwrap().reply else { panic!() };
            (ticket, news)
        });
        let told = told.collect();
        (batch.unwrap(), told)
    }
}

fn returns(batch: &Batch) -> usize {
    let returned = |event: &&Event| matches!(event, Event::Returned { .. });
    batch.body.events().iter().filter(returned).count()
}

fn cordoned() -> Event {
    Event::Cordoned { cluster: provider(), drain: false, note: note() }
}

#[test]
fn an_advertisement_that_is_planned_again_is_still_news_and_was_heard_when_it_came() {
    for sequence in [Some(1), None] {
        let mut stage = Stage::new();
        stage.says(1, sequence, 10);
        stage.other_writes(11, cordoned());
        stage.plans(30);
        assert_eq!(stage.entry().received_at, at(10), "{sequence:?}");
        assert_eq!(stage.entry().interval, None, "{sequence:?}");
        let (batch, told) = stage.commits();
        assert_eq!((returns(&batch), told), (1, vec![(1, true)]), "{sequence:?}");
    }
}

#[test]
fn a_copy_that_was_planned_with_it_is_a_copy_again_and_hides_nothing() {
    let mut stage = Stage::new();
    stage.says(1, Some(1), 10);
    stage.says(2, Some(1), 11);
    stage.other_writes(12, cordoned());
    stage.plans(13);
    let (batch, told) = stage.commits();
    assert_eq!((returns(&batch), told), (1, vec![(1, true), (2, false)]));
}

#[test]
fn of_two_that_are_planned_again_the_newer_one_stays() {
    for numbers in [[Some(1), Some(2)], [None, None]] {
        let mut stage = Stage::new();
        stage.says(1, numbers[0], 10);
        stage.says(2, numbers[1], 40);
        stage.other_writes(41, cordoned());
        stage.plans(50);
        assert_eq!(stage.entry().advertisement.number.map(|n| n.sequence), numbers[1]);
        assert_eq!(stage.entry().received_at, at(40));
        assert_eq!(stage.entry().interval, Some(Span::from_secs(30)));
        assert_eq!(returns(&stage.commits().0), 1);
    }
}

#[test]
fn only_what_is_durable_is_shown_of_who_is_not_believed() {
    let mut engine: Engine<u32> = Engine::new(Books::default(), Arc::new(Policy::default()));
    let subject = |name: &str| Subject::Cluster(name.parse().unwrap());
    let revoke = |engine: &mut Engine<u32>, name| {
        let (operator, action) = ("ada".into(), Action::Revoke(subject(name)));
        let command = Command::Operate { operator, why: String::new(), action };
        let work = Work::Command(command);
        engine.step([Submitted { work, ticket: 1 }], at(1)).unwrap();
    };
    let shown = |engine: &mut Engine<u32>| {
        let revoked = engine.changes().revoked;
        revoked.map(|revoked| revoked.keys().cloned().collect::<Vec<_>>())
    };
    revoke(&mut engine, "c1");
    let first = engine.close().0.unwrap();
    // The next batch is planned while the first is written.
    revoke(&mut engine, "c2");
    assert_eq!(shown(&mut engine), None, "nothing is durable yet");
    engine.committed();
    assert_eq!(shown(&mut engine), Some(vec![subject("c1")]));
    let second = engine.close().0.unwrap();
    assert_eq!(second.stamp.revision, first.stamp.revision.next());
    // Another broker was faster, and revoked somebody else.
    let mine = Record::seal(&Head::default(), Writer(1), first.stamp.time, first.body).unwrap();
    let theirs = Body::of([Event::Revoked { subject: subject("c3"), note: note() }]).unwrap();
    let theirs = Record::seal(&mine.head(), Writer(2), at(2), theirs).unwrap();
    engine.overtaken(&[theirs]).unwrap();
    assert_eq!(shown(&mut engine), Some(vec![subject("c1"), subject("c3")]));
}
