//! What an engine does while the disk is slow or stuck, on both ways to it.

mod gated;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use gated::Gated;
use sublet_broker::engine::{self, Answer, Failure, Handle, Options, Running, Settled, Ticket};
use sublet_core::advertisement::Advertisement;
use sublet_core::books::Books;
use sublet_core::event::Subject;
use sublet_core::id::{ClusterId, Revision};
use sublet_core::plan::{Action, Command, Refusal, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Phase};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::{Log, Writer, snapshot};
use tokio::sync::oneshot::Receiver;

const PLANNING: &str = "sublet-plan";
const WRITING: &str = "sublet-write";

fn cluster(name: &str) -> ClusterId {
    name.parse().unwrap()
}

fn start(log: &Gated, policy: &Arc<Policy>, queue_max: usize) -> Running {
    let loaded = snapshot::load(log).unwrap();
    let options = Options { queue_max, ..Options::alone(Writer(1)) };
    engine::start(Arc::new(log.clone()), loaded, Arc::clone(policy), &options).unwrap()
}

fn advertise(handle: &Handle, cores: u64) {
    let room = Resources::new(cores, cores);
    let said = Advertisement::plain(cluster("c1"), room, Resources::default());
    handle.submit(Command::Advertise(Box::new(said))).unwrap().wait().unwrap();
}

fn request(key: &str) -> Command {
    let ask = Ask { resources: Resources::new(1, 1), ..Ask::default() };
    let key = key.parse().unwrap();
    Command::Reserve { requester: cluster("c0"), key, ask, explain: false }
}

fn granted(answer: &Answer) -> bool {
    let Ok(Settled { reservation: Some(reservation), .. }) = answer else { return false };
    reservation.phase() == Phase::Reserved
}

/// Waits for a condition, not for a time; the limit only ends a test that would hang.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{what} did not happen within 10 s");
}

/// Opens the gate at the end of a test, also of one that fails: an engine behind a shut gate cannot
/// be stopped. To be made after the engine.
struct Opens(Gated);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.admit(usize::MAX);
    }
}

/// An answer that can be looked at before it is there.
struct Awaited(Pin<Box<dyn Future<Output = Answer> + Send>>);

impl Awaited {
    fn of(ticket: Ticket) -> Self {
        Self(Box::pin(ticket.answer()))
    }

    fn is_told(&mut self) -> Option<Answer> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    fn wait(mut self) -> Answer {
        let mut told = None;
        until("an answer", || {
            told = self.is_told();
            told.is_some()
        });
        told.unwrap()
    }
}

/// Looks at what is held, and waits until that was planned. Whatever the engine was about to tell
/// before that, it has told.
fn look(handle: &Handle) -> Receiver<u64> {
    let planned = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&planned);
    let seen = handle.look(move |books, _| {
        flag.store(true, Ordering::SeqCst);
        books.held(&cluster("c1")).cpu
    });
    until("a look being planned", || planned.load(Ordering::SeqCst));
    seen.unwrap()
}

#[test]
fn an_answer_waits_until_it_is_durable_and_so_does_a_refusal_and_a_look() {
    let log = Gated::default();
    let engine = start(&log, &Arc::default(), 100);
    let (handle, _opens) = (engine.handle(), Opens(log.clone()));
    advertise(&handle, 1);
    let mut first = Awaited::of(handle.submit(request("a")).unwrap());
    until("the first request reaching the disk", || log.reached().len() == 1);
    let mut refused = Awaited::of(handle.submit(request("b")).unwrap());
    let mut seen = look(&handle);
    // Planning goes on while the disk is slow. Another round of it has begun when this returns, so
    // what the rounds before would have told too early is here by now.
    let mut later = look(&handle);
    let early = (first.is_told(), refused.is_told(), seen.try_recv().ok(), later.try_recv().ok());
    let head = log.head().unwrap().revision;
    log.admit(usize::MAX);
    assert_eq!(early, (None, None, None, None));
    assert_eq!(head, Revision(0));
    assert!(granted(&first.wait()));
    assert!(matches!(refused.wait(), Err(Failure::Refused(Refusal::NobodyFits(_)))));
    assert_eq!((seen.blocking_recv(), later.blocking_recv()), (Ok(1), Ok(1)));
    engine.stop().unwrap();
}

/// The broker's time, as whatever is planned now finds it.
fn now(handle: &Handle) -> Time {
    let seen = Arc::new(AtomicU64::new(0));
    let place = Arc::clone(&seen);
    let look = handle.look(move |_, now| place.fetch_max(now.as_millis(), Ordering::SeqCst));
    until("a look at the clock", || seen.load(Ordering::SeqCst) > 0);
    drop(look.unwrap());
    Time::from_millis(seen.load(Ordering::SeqCst))
}

#[test]
fn what_came_during_a_long_write_is_granted_as_of_its_end() {
    let log = Gated::default();
    let engine = start(&log, &Arc::default(), 100_000);
    let (handle, _opens) = (engine.handle(), Opens(log.clone()));
    advertise(&handle, 100);
    let first = handle.submit(request("first")).unwrap();
    until("the first request reaching the disk", || log.reached().len() == 1);
    let came: Vec<_> = (0..50).map(|key| handle.submit(request(&format!("k{key}")))).collect();
    let began = now(&handle);
    let mut end = began;
    until("a long write", || {
        end = now(&handle);
        end.since(began) > Span::from_millis(1200)
    });
    log.admit(usize::MAX);
    assert!(granted(&first.wait()));
    for ticket in came {
        let Ok(Settled { reservation: Some(found), .. }) = ticket.unwrap().wait() else { panic!() };
        assert!(found.grant().unwrap().granted_at >= end, "{found:?}, before {end:?}");
    }
    assert_eq!(log.head().unwrap().revision, Revision(2), "what was one batch is one");
    engine.stop().unwrap();
}

#[test]
fn a_full_queue_is_an_answer_and_not_a_wait() {
    let (log, policy) = (Gated::default(), Arc::default());
    let engine = start(&log, &policy, 8);
    let (handle, _opens) = (engine.handle(), Opens(log.clone()));
    advertise(&handle, 100);
    let first = handle.submit(request("first")).unwrap();
    until("the first request reaching the disk", || log.reached().len() == 1);
    // The engine goes on planning behind a stuck disk, but only for as many as it has places.
    let taken: Vec<_> = (0..7).map(|key| handle.submit(request(&format!("k{key}")))).collect();
    // With the old policy it let go of, the engine has taken everything out of its queue.
    handle.set_policy(Arc::default()).unwrap();
    until("the engine taking what was submitted", || Arc::strong_count(&policy) == 1);
    let refused: Vec<_> = (7..100).map(|key| handle.submit(request(&format!("k{key}")))).collect();
    // What keeps capacity moving has places of its own.
    let which = Which::Key(cluster("c0"), "none".parse().unwrap());
    let release = handle.submit(Command::Release { by: Actor::Cluster(cluster("c0")), which });
    log.admit(usize::MAX);
    assert!(release.unwrap().wait().is_ok());
    assert!(refused.into_iter().all(|ticket| ticket.err() == Some(Failure::Overloaded)));
    assert!(granted(&first.wait()));
    for ticket in taken {
        assert!(granted(&ticket.unwrap().wait()));
    }
    assert!(granted(&handle.submit(request("later")).unwrap().wait()));
    engine.stop().unwrap();
}

/// Submits requests until the planning thread itself stands at the shut gate with one: the log was
/// quick the last time, so it does not hand it over.
fn stick_the_planner(log: &Gated, handle: &Handle) -> Awaited {
    for number in 0..1000 {
        let reached = log.reached().len();
        log.admit(0);
        let ticket = handle.submit(request(&format!("try-{number}"))).unwrap();
        until("a request reaching the disk", || log.reached().len() > reached);
        if log.reached().last().is_some_and(|by| by == PLANNING) {
            return Awaited::of(ticket);
        }
        log.admit(usize::MAX);
        assert!(granted(&ticket.wait()));
    }
    panic!("nothing was ever written by the planning thread");
}

#[test]
fn a_quick_log_that_gets_stuck_has_acknowledged_nothing_and_holds_up_planning_once() {
    let log = Gated::default();
    let engine = start(&log, &Arc::default(), 8);
    let (handle, _opens) = (engine.handle(), Opens(log.clone()));
    advertise(&handle, 10_000);
    let mut stuck = stick_the_planner(&log, &handle);
    // Nobody plans now, so what comes waits in the queue, and the queue has an end.
    let head = log.head().unwrap().revision;
    let queued: Vec<_> = (0..7).map(|key| handle.submit(request(&format!("q{key}")))).collect();
    let beyond = handle.submit(request("beyond")).err();
    let early = stuck.is_told();
    // A disk that takes longer than a quick one does.
    thread::sleep(Duration::from_millis(5));
    let still = log.head().unwrap().revision;
    log.admit(usize::MAX);
    assert_eq!((early, beyond, still), (None, Some(Failure::Overloaded), head));
    assert!(granted(&stuck.wait()));
    for ticket in queued {
        assert!(granted(&ticket.unwrap().wait()));
    }
    engine.stop().unwrap();
}

#[test]
fn after_a_slow_write_by_the_planning_thread_the_next_one_does_not_hold_up_planning() {
    let log = Gated::default();
    let engine = start(&log, &Arc::default(), 100);
    let (handle, _opens) = (engine.handle(), Opens(log.clone()));
    advertise(&handle, 10_000);
    let slow = stick_the_planner(&log, &handle);
    // A disk that takes longer than a quick one does. The next request comes meanwhile, so nothing
    // quick is written in between.
    let reached = log.reached().len();
    let mut next = Awaited::of(handle.submit(request("next")).unwrap());
    thread::sleep(Duration::from_millis(5));
    log.admit(1);
    assert!(granted(&slow.wait()));
    until("the next request reaching the disk", || log.reached().len() > reached);
    let mut seen = look(&handle);
    let (by, early) = (log.reached(), (next.is_told(), seen.try_recv().ok()));
    log.admit(usize::MAX);
    assert_eq!(by.last().map(String::as_str), Some(WRITING));
    assert_eq!(early, (None, None));
    assert!(granted(&next.wait()));
    assert!(seen.blocking_recv().is_ok());
    engine.stop().unwrap();
}

#[test]
fn what_came_while_the_disk_was_busy_is_written_together() {
    let log = Gated::default();
    let engine = start(&log, &Arc::default(), 100);
    let (handle, _opens) = (engine.handle(), Opens(log.clone()));
    advertise(&handle, 10_000);
    let stuck = stick_the_planner(&log, &handle);
    let head = log.head().unwrap().revision;
    let queued: Vec<_> = (0..90).map(|key| handle.submit(request(&format!("q{key}")))).collect();
    log.admit(usize::MAX);
    assert!(granted(&stuck.wait()));
    for ticket in queued {
        assert!(granted(&ticket.unwrap().wait()));
    }
    assert_eq!(log.head().unwrap().revision, head.next().next(), "more records than one");
    engine.stop().unwrap();
}

#[test]
fn a_revocation_that_is_answered_holds_also_while_others_look_at_much() {
    let log = Gated::default();
    let running = start(&log, &Arc::new(Policy::default()), 8192);
    let _opens = Opens(log.clone());
    let (handle, revoked) = (running.handle(), running.handle().revoked());
    let subject = Subject::Cluster(cluster("c1"));
    let action = Action::Revoke(subject.clone());
    let command = Command::Operate { operator: "ada".into(), why: String::new(), action };
    let mut answer = Some(Awaited::of(handle.submit(command).unwrap()));
    until("the revocation is at the gate", || log.reached() == [WRITING]);
    let (begins, begun) = std::sync::mpsc::sync_channel(1);
    let (let_go, gate) = std::sync::mpsc::sync_channel::<()>(1);
    let first = move |_: &Books, _| {
        begins.try_send(()).ok();
        gate.recv().ok();
    };
    drop(handle.survey(first).unwrap());
    begun.recv().unwrap();
    // Those who wait behind it look at whether the answer is out, and whether it is true then.
    let (says, said) = std::sync::mpsc::sync_channel(1);
    let looks = Arc::new(Mutex::new(move || {
        let Some(awaited) = &mut answer else { return };
        if awaited.is_told().is_some() {
            answer = None;
            says.send(revoked.borrow().contains_key(&subject)).ok();
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }));
    for _ in 0..5000 {
        let looks = Arc::clone(&looks);
        drop(handle.survey(move |_, _| looks.lock().unwrap()()).unwrap());
    }
    log.admit(1);
    let_go.send(()).unwrap();
    drop(looks);
    assert_eq!(said.recv(), Ok(true), "the answer came before what it says was so");
}
