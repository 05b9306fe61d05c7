//! The engine on real threads, on real homes of the log.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sublet_broker::engine::{
    self, Answer, Engine, Failure, Handle, Options, Running, Settled, Submitted, Work,
};
use sublet_core::advertisement::{Advertisement, Number};
use sublet_core::books::Books;
use sublet_core::event::Event;
use sublet_core::id::ClusterId;
use sublet_core::plan::{Command, Refusal, Reply, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Phase, State};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::embedded::Embedded;
use sublet_log::faulty::{Fault, Faulty, Plan};
use sublet_log::{Log, Memory, Writer, snapshot};

const GIB: u64 = 1 << 30;

fn cluster(name: &str) -> ClusterId {
    name.parse().unwrap()
}

/// Nothing expires late in a test: the grace after a start is for people.
fn policy() -> Arc<Policy> {
    Arc::new(Policy { recovery_grace: Span::ZERO, ..Policy::default() })
}

fn run_as(log: Arc<dyn Log>, writer: u128, follow_every: Option<Duration>) -> Running {
    let loaded = snapshot::load(log.as_ref()).unwrap();
    let options = Options { follow_every, ..Options::alone(Writer(writer)) };
    engine::start(log, loaded, policy(), &options).unwrap()
}

fn run(log: impl Log + 'static) -> Running {
    run_as(Arc::new(log), 1, None)
}

fn ask(handle: &Handle, command: Command) -> Answer {
    handle.submit(command)?.wait()
}

fn advertise(handle: &Handle, name: &str, cores: u64) {
    let room = Resources::new(cores * 1000, cores * GIB);
    let mut advertisement = Advertisement::plain(cluster(name), room, Resources::default());
    advertisement.number = Some(Number { incarnation: 1, sequence: 1 });
    advertisement.capabilities.acknowledge = true;
    ask(handle, Command::Advertise(Box::new(advertisement))).unwrap();
}

fn request(requester: &str, key: &str, cores: u64) -> Command {
    let ask = Ask { resources: Resources::new(cores * 1000, GIB), ..Ask::default() };
    Command::Reserve {
        requester: cluster(requester),
        key: key.parse().unwrap(),
        ask,
        explain: false,
    }
}

fn granted(answer: &Answer) -> bool {
    let Ok(Settled { reservation: Some(reservation), .. }) = answer else { return false };
    reservation.phase() == Phase::Reserved
}

fn held(handle: &Handle, provider: &str) -> u64 {
    let provider = cluster(provider);
    let look = handle.look(move |books, _| books.held(&provider).cpu).unwrap();
    look.blocking_recv().unwrap()
}

/// Waits for a condition, not for a time; the limit only ends a test that would hang.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not happen within 10 s");
}

fn contend(handles: &[Handle], callers: usize) -> usize {
    let barrier = Arc::new(Barrier::new(callers));
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let (handle, barrier) = (handles[caller % handles.len()].clone(), barrier.clone());
            thread::spawn(move || {
                barrier.wait();
                granted(&ask(&handle, request("c0", &format!("key-{caller}"), 1)))
            })
        })
        .collect();
    callers.into_iter().filter_map(|caller| caller.join().unwrap().then_some(())).count()
}

/// A look at much that says when it begins, and lasts until it is let go.
fn long_look(handle: &Handle) -> (Receiver<()>, SyncSender<()>) {
    let (begins, begun) = sync_channel(1);
    let (let_go, gate) = sync_channel::<()>(1);
    let look = move |_: &Books, _| {
        begins.try_send(()).ok();
        // A test that has failed lets everybody go.
        gate.recv().ok();
    };
    drop(handle.survey(look).unwrap());
    (begun, let_go)
}

#[test]
fn nobody_waits_for_an_answer_until_all_others_have_looked_at_much() {
    let engine = run(Memory::new());
    let handle = engine.handle();
    advertise(&handle, "c1", 9);
    let (begun, let_go) = long_look(&handle);
    begun.recv().unwrap();
    // All of these come while the first look lasts.
    let (requester, by) = (cluster("c0"), Actor::Cluster(cluster("c0")));
    let which = Which::Key(requester, "none".parse().unwrap());
    let short = [request("c0", "small", 1), Command::Release { by, which }];
    let answers = short.map(|command| {
        let ticket = handle.submit(command).unwrap();
        thread::spawn(|| ticket.wait())
    });
    let answered = || answers.iter().all(JoinHandle::is_finished);
    let looks: Vec<_> = (0..4).map(|_| long_look(&handle)).collect();
    let_go.send(()).unwrap();
    // An answer may be on its way to the disk when another look begins, so it may come with a later one,
    // but does not wait for the last.
    for (begun, let_go) in &looks[..3] {
        begun.recv().unwrap();
        for _ in 0..20 {
            if !answered() {
                thread::sleep(Duration::from_millis(10));
            }
        }
        let_go.send(()).unwrap();
    }
    let (begun, let_go) = &looks[3];
    begun.recv().unwrap();
    until("every answer during the last look", answered);
    let_go.send(()).unwrap();
    engine.stop().unwrap();
}

#[test]
fn exactly_what_fits_is_granted_to_a_hundred_callers_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let engine = run(Embedded::open(folder.path()).unwrap());
    advertise(&engine.handle(), "c1", 7);
    assert_eq!(contend(&[engine.handle()], 100), 7);
    assert_eq!(held(&engine.handle(), "c1"), 7000);
    engine.stop().unwrap();
    let again = snapshot::load(&Embedded::open(folder.path()).unwrap()).unwrap();
    assert_eq!(again.ledger.account(&cluster("c1")).unwrap().lent.cpu, 7000);
}

#[test]
fn two_brokers_on_one_log_grant_exactly_what_fits_and_end_with_the_same_ledger() {
    let log = Memory::new();
    let follow = Some(Duration::from_millis(5));
    let brokers = [1, 2].map(|writer| run_as(Arc::new(log.clone()), writer, follow));
    let handles = brokers.each_ref().map(Running::handle);
    for handle in &handles {
        advertise(handle, "c1", 7);
    }
    assert_eq!(contend(&handles, 60), 7);
    until("both brokers seeing all seven", || handles.iter().all(|h| held(h, "c1") == 7000));
    for broker in brokers {
        broker.stop().unwrap();
    }
}

#[test]
fn a_caller_that_gave_up_finds_its_answer_by_its_key() {
    let engine = run(Memory::new());
    let handle = engine.handle();
    advertise(&handle, "c1", 4);
    drop(handle.submit(request("c0", "mine", 1)).unwrap());
    let again = ask(&handle, request("c0", "mine", 1)).unwrap();
    assert!(matches!(again.reply, Reply::Reservation { created: false, .. }));
    assert_eq!(held(&handle, "c1"), 1000);
    let other = ask(&handle, request("c0", "mine", 2));
    assert!(matches!(other, Err(Failure::Refused(Refusal::KeyReused(_)))));
    engine.stop().unwrap();
}

#[test]
fn lost_requests_and_lost_answers_of_the_log_are_not_noticed_by_callers() {
    let faults = Plan::seeded(7, 300, &[Fault::RequestLost, Fault::AnswerLost]);
    let log = Memory::new();
    let engine = run(Faulty::new(log.clone(), faults));
    let handle = engine.handle();
    advertise(&handle, "c1", 100);
    for key in 0..20 {
        assert!(granted(&ask(&handle, request("c0", &format!("k{key}"), 1))));
    }
    engine.stop().unwrap();
    let lent = snapshot::load(&log).unwrap().ledger;
    assert_eq!(lent.account(&cluster("c1")).unwrap().lent.cpu, 20_000);
}

#[test]
fn after_a_fatal_error_nothing_is_acknowledged_and_a_restart_tells_the_truth() {
    for fault in [Fault::FatalBefore, Fault::FatalAfter] {
        let log = Memory::new();
        let engine = run(Faulty::new(log.clone(), Plan::scripted([(2, fault)])));
        let handle = engine.handle();
        advertise(&handle, "c1", 4);
        assert!(granted(&ask(&handle, request("c0", "first", 1))));
        assert_eq!(ask(&handle, request("c0", "second", 1)), Err(Failure::Unknown));
        let after = ask(&handle, request("c0", "third", 1));
        assert!(matches!(after, Err(Failure::Unavailable | Failure::Unknown)), "{after:?}");
        assert!(engine.join().is_err());

        let engine = run(log);
        advertise(&engine.handle(), "c1", 4);
        let kept = if fault == Fault::FatalAfter { 2000 } else { 1000 };
        assert_eq!(held(&engine.handle(), "c1"), kept, "{fault:?}");
        assert!(granted(&ask(&engine.handle(), request("c0", "second", 1))));
        assert_eq!(held(&engine.handle(), "c1"), 2000, "{fault:?}");
        engine.stop().unwrap();
    }
}

#[test]
fn expiry_comes_by_itself_and_capacity_returns_when_the_provider_confirms() {
    let engine = run(Memory::new());
    let handle = engine.handle();
    advertise(&handle, "c1", 1);
    let brief = Ask {
        resources: Resources::new(1000, GIB),
        duration: Some(Span::from_millis(50)),
        ..Ask::default()
    };
    let key = "brief".parse().unwrap();
    let reserve = Command::Reserve { requester: cluster("c0"), key, ask: brief, explain: false };
    let id = ask(&handle, reserve).unwrap().reservation.unwrap().id;
    let phase = |handle: &Handle| {
        let look = handle.look(move |books, _| books.ledger().reservation(id).unwrap().phase());
        look.unwrap().blocking_recv().unwrap()
    };
    until("expiry", || phase(&handle) == Phase::Releasing);
    let late = handle.look(move |books, _| match &books.ledger().reservation(id)?.state {
        State::Releasing(grant, ending) => Some(ending.at.since(grant.expires_at?)),
        _ => None,
    });
    let late = late.unwrap().blocking_recv().unwrap().unwrap();
    assert!(late <= Span::from_secs(1), "expired {} ms too late", late.as_millis());
    assert_eq!(held(&handle, "c1"), 1000);
    let generation = {
        let look =
            handle.look(move |b, _| b.ledger().reservation(id)?.grant().map(|g| g.generation));
        look.unwrap().blocking_recv().unwrap().unwrap()
    };
    ask(&handle, Command::Acknowledge { by: cluster("c1"), id, generation }).unwrap();
    assert_eq!(phase(&handle), Phase::Released);
    assert_eq!(held(&handle, "c1"), 0);
    engine.stop().unwrap();
}

#[test]
fn who_waits_is_granted_when_something_is_given_back() {
    let engine = run(Memory::new());
    let handle = engine.handle();
    let room = Resources::new(1000, GIB);
    // An old provider never confirms, so its capacity returns at once.
    let old = Advertisement::plain(cluster("c1"), room, Resources::default());
    ask(&handle, Command::Advertise(Box::new(old))).unwrap();
    let first = ask(&handle, request("c0", "first", 1)).unwrap().reservation.unwrap().id;
    let waiting = Ask {
        resources: Resources::new(1000, GIB),
        wait: Some(Span::from_secs(60)),
        ..Ask::default()
    };
    let key = "second".parse().unwrap();
    let second = Command::Reserve { requester: cluster("c2"), key, ask: waiting, explain: false };
    let second = ask(&handle, second).unwrap().reservation.unwrap();
    assert_eq!(second.phase(), Phase::Pending);
    let release = Command::Release { by: Actor::Cluster(cluster("c0")), which: Which::Id(first) };
    ask(&handle, release).unwrap();
    let look = handle.look(move |books, _| books.ledger().reservation(second.id).unwrap().phase());
    assert_eq!(look.unwrap().blocking_recv().unwrap(), Phase::Reserved);
    engine.stop().unwrap();
}

#[test]
fn a_long_log_is_folded_into_a_snapshot_beside_the_running_engine() {
    let log = Memory::new();
    let loaded = snapshot::load(&log).unwrap();
    let keeping = engine::Keeping { records: 5, history: Span::ZERO, ..<_>::default() };
    let options = Options { keeping, ..Options::alone(Writer(1)) };
    let engine = engine::start(Arc::new(log.clone()), loaded, policy(), &options).unwrap();
    let handle = engine.handle();
    advertise(&handle, "c1", 100);
    for key in 0..10 {
        assert!(granted(&ask(&handle, request("c0", &format!("k{key}"), 1))));
    }
    until("a snapshot", || log.snapshot().unwrap().is_some());
    engine.stop().unwrap();
    let lent = snapshot::load(&log).unwrap().ledger;
    assert_eq!(lent.account(&cluster("c1")).unwrap().lent.cpu, 10_000);
}

#[test]
fn a_basis_never_comes_from_after_its_record() {
    let mut engine = Engine::new(Books::default(), policy());
    let at = |millis: u64| Time::from_millis(1_800_000_000_000 + millis);
    let say = |sequence, now, engine: &mut Engine<()>| {
        let room = Resources::new(4000, 4 * GIB);
        let mut said = Advertisement::plain(cluster("c1"), room, Resources::default());
        said.number = Some(Number { incarnation: 1, sequence });
        let work = Work::Command(Command::Advertise(Box::new(said)));
        engine.step([Submitted { work, ticket: () }], now).unwrap();
    };
    let ask = |key, now, engine: &mut Engine<()>| {
        let work = Work::Command(request("c0", key, 1));
        engine.step([Submitted { work, ticket: () }], now).unwrap();
    };
    say(1, at(0), &mut engine);
    ask("a", at(10), &mut engine);
    // The record is open since then; what is heard now came later than its time.
    say(2, at(20), &mut engine);
    ask("b", at(30), &mut engine);
    let batch = engine.close().0.unwrap();
    let bases = batch.body.events().iter().filter_map(|event| match event {
        Event::Reserved { basis, .. } => Some(basis.received_at),
        _ => None,
    });
    let bases: Vec<_> = bases.collect();
    assert_eq!(bases.len(), 2);
    assert!(bases.iter().all(|received| *received <= batch.stamp.time), "{bases:?}");
}
