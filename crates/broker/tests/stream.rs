//! Streams of instructions on a running engine: nothing is missed, whatever is cut.

mod gated;

use std::sync::Arc;
use std::time::Duration;

use gated::Gated;

use sublet_broker::engine::{self, Handle, Options, Running};
use sublet_broker::stream::{Cursor, Part, Stream};
use sublet_core::advertisement::{Advertisement, GrantReport};
use sublet_core::event::{Event, Note};
use sublet_core::id::{ClusterId, Generation, ReservationId, Revision};
use sublet_core::instruction::{Duty, Side};
use sublet_core::ledger::{Ledger, Stamp};
use sublet_core::market::Freshness;
use sublet_core::plan::{Command, Refusal, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Confirmation, Reason};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::{Body, Head, Log, Memory, Record, Writer, snapshot};

const GIB: u64 = 1 << 30;

fn cluster(name: &str) -> ClusterId {
    name.parse().unwrap()
}

fn start(log: &Arc<impl Log + 'static>) -> Running {
    let log: Arc<dyn Log> = log.clone();
    let loaded = snapshot::load(log.as_ref()).unwrap();
    let policy = Arc::new(Policy { recovery_grace: Span::ZERO, ..Policy::default() });
    engine::start(log, loaded, policy, &Options::alone(Writer(1))).unwrap()
}

async fn advertise(handle: &Handle, name: &str) {
    let room = Resources::new(1_000_000, 1000 * GIB);
    let advertisement = Advertisement::plain(cluster(name), room, Resources::default());
    let said = Command::Advertise(Box::new(advertisement));
    handle.submit(said).unwrap().answer().await.unwrap();
}

fn request(key: &str) -> Command {
    let ask = Ask { resources: Resources::new(1000, GIB), ..Ask::default() };
    let key = key.parse().unwrap();
    Command::Reserve { requester: cluster("c1"), key, ask, explain: false }
}

async fn reserve(handle: &Handle, key: &str) -> ReservationId {
    let answer = handle.submit(request(key)).unwrap().answer().await.unwrap();
    answer.reservation.unwrap().id
}

async fn release(handle: &Handle, id: ReservationId) {
    let (by, which) = (Actor::Cluster(cluster("c1")), Which::Id(id));
    handle.submit(Command::Release { by, which }).unwrap().answer().await.unwrap();
}

async fn open(handle: &Handle, name: &str, after: Option<Cursor>) -> (Stream, Part) {
    Stream::open(handle.clone(), cluster(name), after).await.unwrap()
}

/// The next part; the limit only ends a test that would hang.
async fn next(stream: &mut Stream) -> Part {
    tokio::time::timeout(Duration::from_secs(10), stream.next()).await.unwrap().unwrap()
}

fn duties(part: &Part) -> Vec<(ReservationId, Side, Duty)> {
    part.instructions.iter().map(|i| (i.reservation, i.side, i.duty)).collect()
}

#[tokio::test]
async fn both_sides_are_told_of_a_grant_and_of_its_end() {
    let running = start(&Arc::new(Memory::new()));
    let handle = running.handle();
    advertise(&handle, "c2").await;
    let (mut lender, first) = open(&handle, "c2", None).await;
    assert!(first.whole && first.instructions.is_empty());
    let (mut borrower, _) = open(&handle, "c1", None).await;
    let id = reserve(&handle, "a").await;
    assert_eq!(duties(&next(&mut lender).await), [(id, Side::Provider, Duty::Keep)]);
    assert_eq!(duties(&next(&mut borrower).await), [(id, Side::Requester, Duty::Keep)]);
    release(&handle, id).await;
    // An old provider never confirms, so it is over at once.
    assert_eq!(duties(&next(&mut lender).await), [(id, Side::Provider, Duty::Gone)]);
    assert_eq!(duties(&next(&mut borrower).await), [(id, Side::Requester, Duty::Gone)]);
}

#[tokio::test]
async fn a_stream_that_was_cut_resumes_with_what_it_missed() {
    let running = start(&Arc::new(Memory::new()));
    let handle = running.handle();
    advertise(&handle, "c2").await;
    let (mut stream, _) = open(&handle, "c2", None).await;
    let kept = reserve(&handle, "a").await;
    let cursor = next(&mut stream).await.cursor;
    drop(stream);
    let gone = reserve(&handle, "b").await;
    release(&handle, gone).await;
    let cursor = cursor.to_string().parse().unwrap();
    let (_, part) = open(&handle, "c2", Some(cursor)).await;
    assert!(!part.whole);
    assert_eq!(duties(&part), [(gone, Side::Provider, Duty::Gone)]);
    let (_, whole) = open(&handle, "c2", None).await;
    assert_eq!(duties(&whole), [(kept, Side::Provider, Duty::Keep)]);
}

#[tokio::test]
async fn a_cursor_that_is_too_old_or_of_another_history_gets_the_whole_list() {
    let running = start(&Arc::new(Memory::new()));
    let handle = running.handle();
    advertise(&handle, "c2").await;
    let id = reserve(&handle, "a").await;
    for cursor in ["0.0", "999999.99999999999999"] {
        let (_, part) = open(&handle, "c2", Some(cursor.parse().unwrap())).await;
        assert!(part.whole, "{cursor}");
        assert_eq!(duties(&part), [(id, Side::Provider, Duty::Keep)]);
    }
    assert!("".parse::<Cursor>().is_err() && "1".parse::<Cursor>().is_err());
}

#[test]
fn a_cursor_of_the_history_that_a_restore_forgot_gets_the_whole_list() {
    let at = |revision, seconds: u64| Stamp {
        revision: Revision(revision),
        time: Time::from_millis(seconds * 1000),
    };
    let mut ledger = Ledger::default();
    let note = Note { by: Actor::Broker, why: "restored".into() };
    // The log had come to 905 when a backup of 900 was restored; others have written since.
    ledger.apply(at(901, 1000), &Event::Restored { note }).unwrap();
    let cluster = cluster("c2");
    let note = Note { by: Actor::Cluster(cluster.clone()), why: "reported".into() };
    let reconciled = Event::Reconciled { cluster: cluster.clone(), note };
    ledger.apply(at(906, 1002), &reconciled).unwrap();
    let text = serde_json::to_string(&ledger).unwrap();
    for ledger in [&ledger, &serde_json::from_str(&text).unwrap()] {
        let is_whole = |cursor: &str| {
            let (after, now) = (Some(cursor.parse().unwrap()), at(906, 1003).time);
            Part::look(ledger, &cluster, after, now).whole
        };
        assert!(is_whole("904.999000"), "it was told another 904");
        assert!(is_whole("900.999000"));
        assert!(!is_whole("904.1001000"), "this is the 904 that it knows");
    }
}

#[test]
fn a_cursor_from_before_the_last_change_that_was_forgotten_or_of_another_log_gets_the_whole_list() {
    let at = |revision, seconds: u64| Stamp {
        revision: Revision(revision),
        time: Time::from_millis(seconds * 1000),
    };
    let (id, requester) = (ReservationId::FIRST, cluster("c1"));
    let (key, by) = ("k".parse().unwrap(), Actor::Cluster(requester.clone()));
    let (ask, until) = (Ask::default(), at(0, 2000).time);
    let asked = Event::Requested { id, requester: requester.clone(), key, ask, priority: 0, until };
    let (reason, confirmation) = (Reason::ReleasedByRequester, Confirmation::NothingHeld);
    let ended = Event::Ended { id, reason, by, confirmation, hindrance: None };
    let forgotten = Event::Forgotten { reservations: vec![id], tombstones: vec![] };
    let mut ledger = Ledger::default();
    let steps = [(at(1, 1000), asked), (at(5, 1010), ended), (at(8, 1020), forgotten)];
    let mut told = Vec::new();
    for (stamp, event) in steps {
        told.push((stamp, ledger.apply(stamp, &event).unwrap()));
        let text = serde_json::to_string(&ledger).unwrap();
        let again: Ledger = serde_json::from_str(&text).unwrap();
        assert_eq!(again, ledger);
    }
    let is_whole = |ledger: &Ledger, cursor: &str| {
        Part::look(ledger, &requester, Some(cursor.parse().unwrap()), at(9, 1030).time).whole
    };
    assert!(is_whole(&ledger, "4.1009000"), "it has not heard of the end");
    assert!(!is_whole(&ledger, "5.1010000"), "it has heard everything that was forgotten");
    assert!(is_whole(&ledger, "6.999000"), "it is of a log from before this one");
    // What was planned to be forgotten, and was not, is remembered.
    ledger.revert(told.pop().unwrap().1).unwrap();
    assert!(!is_whole(&ledger, "4.1009000"));
}

/// A log that was restored from a backup in which nothing was.
fn restored() -> Memory {
    let log = Memory::new();
    let note = Note { by: Actor::Broker, why: "restored".into() };
    let body = Body::of([Event::Restored { note }]).unwrap();
    let restored = Record::seal(&Head::default(), Writer(1), Time::from_millis(1), body).unwrap();
    log.append(&restored).unwrap();
    log
}

/// A cluster says what it holds.
async fn report(handle: &Handle, name: &str, grants: Vec<GrantReport>) {
    let room = Resources::new(1_000_000, 1000 * GIB);
    let plain = Advertisement::plain(cluster(name), room, Resources::default());
    let said = Advertisement { grants: Some(grants), ..plain };
    handle.submit(Command::Advertise(Box::new(said))).unwrap().answer().await.unwrap();
}

#[tokio::test]
async fn after_a_restore_nobody_is_told_what_is_over_before_it_has_reported_what_it_holds() {
    let running = start(&Arc::new(restored()));
    let handle = running.handle();
    let (mut stream, first) = open(&handle, "c2", None).await;
    assert!(first.early && !first.whole, "what it holds may have been forgotten");
    let held = GrantReport {
        id: ReservationId::derive(&cluster("c1"), &"forgotten".parse().unwrap(), Revision(7)),
        requester: cluster("c1"),
        amounts: Resources::new(1000, GIB),
        generation: Generation(1),
        used: Resources::default(),
        remaining: None,
    };
    let id = held.id;
    report(&handle, "c2", vec![held]).await;
    let mut part = next(&mut stream).await;
    while part.early {
        part = next(&mut stream).await;
    }
    assert!(part.whole);
    assert_eq!(duties(&part), [(id, Side::Provider, Duty::Keep)]);
    let (_, again) = open(&handle, "c2", None).await;
    assert!(again.whole && !again.early);
}

#[tokio::test]
async fn who_is_told_much_is_told_everything_all_the_same_when_it_has_reported() {
    let running = start(&Arc::new(restored()));
    let handle = running.handle();
    report(&handle, "c2", vec![]).await;
    let (mut stream, first) = open(&handle, "c1", None).await;
    assert!(first.early);
    report(&handle, "c1", vec![]).await;
    // There is always news before a second has passed.
    for number in 0..100 {
        reserve(&handle, &format!("key-{number}")).await;
        if next(&mut stream).await.whole {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it was never told everything");
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_given_the_whole_list_again() {
    let running = start(&Arc::new(Memory::new()));
    let handle = running.handle();
    advertise(&handle, "c2").await;
    let (mut stream, _) = open(&handle, "c2", None).await;
    let mut ids = Vec::new();
    for number in 0..200 {
        ids.push(reserve(&handle, &format!("key-{number}")).await);
    }
    ids.sort();
    let mut part = next(&mut stream).await;
    while !part.whole {
        part = next(&mut stream).await;
    }
    let mut told: Vec<_> = part.instructions.iter().map(|i| i.reservation).collect();
    told.sort();
    assert_eq!(told, ids);
    // And it goes on from there.
    let id = reserve(&handle, "later").await;
    assert_eq!(duties(&next(&mut stream).await), [(id, Side::Provider, Duty::Keep)]);
}

#[tokio::test]
async fn a_stream_ends_with_the_engine() {
    let running = start(&Arc::new(Memory::new()));
    let (mut stream, _) = open(&running.handle(), "c2", None).await;
    running.stop().unwrap();
    assert!(stream.next().await.is_err());
}

#[tokio::test]
async fn the_market_is_remembered_across_a_restart_and_not_believed() {
    let log = Arc::new(Memory::new());
    let running = start(&log);
    advertise(&running.handle(), "c2").await;
    running.stop().unwrap();
    let running = start(&log);
    let handle = running.handle();
    let seen = handle.look(|books, now| {
        let entry = books.market().entry(&cluster("c2"))?;
        Some(entry.freshness(&Policy::default().silence, now))
    });
    assert_eq!(seen.unwrap().await.unwrap(), Some(Freshness::Suspect));
    let refused = handle.submit(request("a")).unwrap().answer().await.unwrap_err();
    assert!(matches!(refused, engine::Failure::Refused(Refusal::OnlySuspects(_))), "{refused}");
    advertise(&handle, "c2").await;
    reserve(&handle, "a").await;
}

#[tokio::test]
async fn what_runs_inside_a_grant_is_counted_once_after_a_restart_too() {
    let log = Arc::new(Memory::new());
    let running = start(&log);
    let handle = running.handle();
    let size = Resources::new(2000, 2 * GIB);
    let said = Advertisement::plain(cluster("c2"), size, Resources::default());
    let advertise = |said| handle.submit(Command::Advertise(Box::new(said))).unwrap().answer();
    advertise(said.clone()).await.unwrap();
    let amounts = Resources::new(1000, GIB);
    let grant = GrantReport {
        id: reserve(&handle, "a").await,
        generation: Generation(1),
        requester: cluster("c1"),
        amounts: amounts.clone(),
        used: amounts.clone(),
        remaining: None,
    };
    let grants = Some(vec![grant]);
    advertise(Advertisement { allocated: amounts, grants, ..said }).await.unwrap();
    running.stop().unwrap();
    let running = start(&log);
    // There is room for it, once the provider is heard.
    let refused = running.handle().submit(request("b")).unwrap().answer().await.unwrap_err();
    assert!(matches!(refused, engine::Failure::Refused(Refusal::OnlySuspects(_))), "{refused}");
}

#[tokio::test]
async fn what_a_list_has_taken_in_is_not_told_again_after_it() {
    let gate = Gated::default();
    gate.admit(usize::MAX);
    let running = start(&Arc::new(gate.clone()));
    let handle = running.handle();
    advertise(&handle, "c2").await;
    let over = reserve(&handle, "a").await;
    // Somebody watches already, so that changes are collected.
    let (_other, _) = open(&handle, "c2", None).await;
    gate.admit(0);
    let reached = gate.reached().len();
    let kept = handle.submit(request("b")).unwrap();
    while gate.reached().len() == reached {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // One record is on its way to the disk, and the end of the other is planned for the next.
    let (by, which) = (Actor::Cluster(cluster("c1")), Which::Id(over));
    let released = handle.submit(Command::Release { by, which }).unwrap();
    let opened = open(&handle, "c2", None);
    let ((mut stream, list), ()) = tokio::join!(opened, async { gate.admit(usize::MAX) });
    let kept = kept.answer().await.unwrap().reservation.unwrap().id;
    released.answer().await.unwrap();
    assert_eq!(duties(&list), [(kept, Side::Provider, Duty::Keep)]);
    assert_eq!(duties(&next(&mut stream).await), [(over, Side::Provider, Duty::Gone)]);
}
