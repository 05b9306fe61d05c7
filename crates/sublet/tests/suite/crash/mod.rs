//! The real broker, killed with SIGKILL under load, again and again.
//!
//! Outside it, borrowers keep a [journal](crate::journal) of what they were answered, and clusters
//! what they were told. After every crash the log is [counted anew](crate::recount) and compared:
//! nothing that was acknowledged is lost, nothing is granted twice, the same key gets the same
//! answer, what was released stays released, and both sides of every reservation hear of it.

mod shared;
mod load;
mod member;
mod moment;
mod doctored;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_testkit::wait::PATIENCE;
use sublet_wire::client::{Client, Options, Page, ReservationQuery};
use sublet_wire::v1::Reservation;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::broker::wait_for;
use crate::fleet::{Fleet, UNIT};
use crate::journal::{Journal, Line, audit, unsettled};
use crate::recount::{Amounts, Grant, Name, Recount, Stand};
use load::Borrower;
use shared::{Count, Shared};

/// How often the broker is killed if nobody says otherwise.
const CYCLES: u64 = 50;
/// Those who lend, and how many units: a little less than the borrowers want.
const PROVIDERS: [(&str, u64); 2] = [("edge", 75), ("hall", 45)];
const REQUESTERS: [&str; 4] = ["shop", "bank", "farm", "mill"];
/// Borrowers of each requester, each with a connection of its own.
const BORROWERS: u64 = 4;
/// The broker is killed at some moment within so many acknowledgements.
const ACKNOWLEDGED_MAX: u64 = 120;
/// Every so often it is killed a second time, before it is back.
const TWICE_EVERY: u64 = 5;
/// Every so often it is killed around the time of a snapshot, or in the moment after it.
const SNAPSHOT_EVERY: u64 = 3;
/// What is over is forgotten soon, and what is due ends soon after a start, so that all of it happens
/// in the time of a test and no cycle takes longer than the one before.
const POLICY: &str = "recovery_grace = \"100ms\"\nkey_retention = \"15s\"\n";
/// Snapshots that a short test reaches, and a history that is longer than any cycle.
const FLAGS: &str = "--snapshot-records 100 --log-history 20s";
/// How many keys are asked again after each crash.
const ASKED_AGAIN: usize = 10;

/// `cargo xtask crash --cycles N` says it so.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration but its environment")]
fn cycles() -> u64 {
    let given = std::env::var("SUBLET_CRASH_CYCLES").ok();
    given.map_or(CYCLES, |text| text.parse().expect("SUBLET_CRASH_CYCLES is a number"))
}

fn capacity() -> Vec<(&'static str, Amounts)> {
    let amounts = |units: u64| [units * UNIT[0], units * UNIT[1]];
    PROVIDERS.iter().map(|(name, units)| (*name, amounts(*units))).collect()
}

/// A random number below `most`.
fn below(most: u64) -> u64 {
    getrandom::u64().unwrap() % most
}

/// One try each, and no long pauses: the test itself says when to try again.
fn client(options: Options) -> Client {
    let pause_first = Duration::from_millis(20);
    let pause_max = Duration::from_millis(100);
    Client::new(Options { attempts: 1, pause_first, pause_max, ..options }).unwrap()
}

/// The broker, and everybody around it.
struct Siege {
    fleet: Fleet,
    runtime: Runtime,
    shared: Arc<Shared>,
    borrowers: JoinSet<()>,
    listeners: JoinSet<()>,
    recount: Recount,
    /// When the broker was back.
    since: Instant,
    /// How long the broker took each time to come back.
    back: Vec<Duration>,
    /// What is over, put aside so that no cycle takes longer than the one before; judged at the end.
    over: Vec<(Name, Line, Grant)>,
    /// The snapshots that were there when the broker died, and the first record that was left.
    snapshots: BTreeSet<Revision>,
    oldest: Revision,
    /// How often it died in the moment after a snapshot.
    at_a_snapshot: usize,
    /// How many grants were in the log when the broker died, and their clients did not know.
    in_doubt: usize,
}

impl Siege {
    fn new() -> Self {
        let mut siege = Self {
            fleet: Fleet::with(POLICY, FLAGS),
            runtime: Runtime::new().unwrap(),
            shared: Arc::default(),
            borrowers: JoinSet::new(),
            listeners: JoinSet::new(),
            recount: Recount::new(&capacity()),
            since: Instant::now(),
            back: Vec::new(),
            over: Vec::new(),
            snapshots: BTreeSet::new(),
            at_a_snapshot: 0,
            oldest: Revision(1),
            in_doubt: 0,
        };
        let runtime = siege.runtime.handle().clone();
        let lenders = capacity().into_iter().map(|(name, all)| (name, Some(all)));
        for (name, lends) in lenders.chain(REQUESTERS.map(|name| (name, None))) {
            let client = client(siege.fleet.options(name));
            let ear = member::listen(Arc::clone(&siege.shared), name.to_owned(), client, lends);
            siege.listeners.spawn_on(ear, &runtime);
        }
        let borrowers = REQUESTERS.iter().flat_map(|name| (0..BORROWERS).map(move |_| *name));
        for (number, name) in (0..).zip(borrowers) {
            let client = client(siege.fleet.options(name));
            let borrower = Borrower::new(Arc::clone(&siege.shared), client, name, number);
            siege.borrowers.spawn_on(borrower.run(), &runtime);
        }
        siege
    }

    fn acknowledged(&self) -> u64 {
        self.shared.counted(Count::Granted) + self.shared.counted(Count::Released)
    }

    fn wait_for_load(&self, more: u64) {
        let enough = self.acknowledged() + more;
        wait_for("the load", || (self.acknowledged() >= enough).then_some(()));
    }

    /// One crash under load, and everything that must hold after it.
    fn cycle(&mut self, number: u64) {
        self.wait_for_load(1 + below(ACKNOWLEDGED_MAX));
        match number % (2 * SNAPSHOT_EVERY) {
            0 => self.wait_for_a_snapshot(),
            SNAPSHOT_EVERY => self.wait_for_the_look(),
            _ => {}
        }
        let before = self.shared.journal().clone();
        self.fleet.kill();
        self.in_doubt += self.in_doubt_now();
        if number.is_multiple_of(TWICE_EVERY) {
            self.fleet.start();
            std::thread::sleep(Duration::from_millis(below(60)));
            self.fleet.kill();
        }
        self.fleet.start();
        self.back.push(self.fleet.wait_ready());
        self.since = Instant::now();
        self.check_log();
        self.check_answers(&before);
        self.check_streams(&before);
        self.put_aside(&before);
    }

    /// Nobody has anything to do any more with what has ended and was acknowledged to have.
    fn put_aside(&mut self, before: &Journal) {
        let mut journal = self.shared.journal();
        let ended = |grant: &Grant| grant.stand == Stand::Ended;
        let over = |name: &Name, grant: &mut Grant| ended(grant) && journal.line(name).done;
        let over: Vec<_> = self.recount.grants.extract_if(.., over).collect();
        for (name, grant) in over {
            let line = journal.0.remove(&name).expect("it was asked for");
            self.over.push((name, line, grant));
        }
        // What was over before the log was read, and was never granted, was judged just now.
        let (grants, waits) = (&self.recount.grants, &mut self.recount.waits);
        let is_over = |name: &Name| before.0.get(name).is_some_and(|line| line.done);
        waits.retain(|name, wait| wait.over.is_none() || !is_over(name));
        journal.0.retain(|name, _| {
            !is_over(name) || grants.contains_key(name) || waits.contains_key(name)
        });
    }

    /// The whole history again.
    fn take_back(&mut self) {
        let mut journal = self.shared.journal();
        for (name, line, grant) in self.over.drain(..) {
            let again = self.recount.grants.insert(name.clone(), grant);
            assert!(again.is_none(), "{name:?} was granted twice: {again:?}");
            journal.0.insert(name, line);
        }
    }

    /// Counted in a copy of the dead broker's folder: the original is for the next one to recover.
    fn in_doubt_now(&mut self) -> usize {
        let copy = self.copy();
        let journal = self.shared.journal().clone();
        let mut recount = self.recount.clone();
        let (snapshot, oldest) = recount.read_on(copy.path());
        self.snapshots.insert(snapshot);
        self.oldest = oldest;
        unsettled(&journal, &recount).len()
    }

    fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.fleet.data()).unwrap() {
            let file = file.unwrap();
            // The notes of the market are in a folder of their own, and no part of the log.
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
            }
        }
        copy
    }

    /// What was acknowledged until now is in the log, and nothing that nobody asked for.
    fn check_log(&mut self) {
        let acknowledged = self.shared.journal().clone();
        self.recount.read_on(&self.fleet.data());
        let sent = self.shared.journal().clone();
        assert_eq!(audit(&acknowledged, &sent, &self.recount), Vec::<String>::new());
    }

    /// Some of the keys that were answered before the crash have the same answer after it.
    fn check_answers(&self, before: &Journal) {
        let answered: Vec<_> =
            before.0.iter().filter(|(_, line)| !line.granted.is_empty()).collect();
        if answered.is_empty() {
            return;
        }
        let mut clients = BTreeMap::new();
        for _ in 0..ASKED_AGAIN {
            let pick = usize::try_from(below(answered.len() as u64)).unwrap();
            let (name, line) = answered[pick];
            let own = clients.entry(&name.0).or_insert_with(|| client(self.fleet.options(&name.0)));
            let asked = load::request_of(line);
            let again = self.runtime.block_on(load::ask(&self.shared, own, name, &asked));
            assert_eq!(again, Some(line.granted[0].0), "{name:?} has another answer now");
        }
    }

    /// Both sides of what was acknowledged before the crash know of it.
    fn check_streams(&self, before: &Journal) {
        let objections = || {
            let told = self.shared.told();
            let sent = self.shared.journal();
            told.audit(before, &sent)
        };
        let begin = Instant::now();
        while let Some(first) = objections().first() {
            assert!(begin.elapsed() < PATIENCE, "{first}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Everybody finishes what he has begun; then journal, log, broker and streams say the same.
    fn settle(&mut self) {
        self.shared.stop();
        while let Some(ended) = self.runtime.block_on(self.borrowers.join_next()) {
            ended.unwrap();
        }
        self.take_back();
        self.check_log();
        let journal = self.shared.journal().clone();
        assert_eq!(unsettled(&journal, &self.recount), Vec::<String>::new());
        self.check_streams(&journal);
        assert!(self.listeners.try_join_next().is_none(), "a listener ended");
        let mut shown = self.runtime.block_on(self.listed());
        for (name, grant) in &self.recount.grants {
            let Some(seen) = shown.remove(name) else {
                // What is over is forgotten after a while.
                assert_eq!(grant.stand, Stand::Ended, "{name:?} is not shown");
                continue;
            };
            assert_eq!(seen.id, grant.id.to_string());
            let runs = matches!(seen.status.phase.as_str(), "Reserved" | "Active");
            let may_just_have_ended = journal.0[name].ends;
            assert!(
                runs == (grant.stand == Stand::Held) || may_just_have_ended,
                "{seen:?} against {grant:?}"
            );
        }
        shown.retain(|_, seen| !seen.target_cluster_id.is_empty());
        assert!(shown.is_empty(), "nobody knows {shown:?}");
        assert!(self.fleet.anna.ok("fsck data").contains("state "));
    }

    /// Every reservation, as the broker shows it to the operator.
    async fn listed(&self) -> BTreeMap<Name, Reservation> {
        let operator = client(self.fleet.operator());
        let mut all = BTreeMap::new();
        let mut query = ReservationQuery::default();
        loop {
            let list = operator.reservations(&query).await.unwrap();
            for one in list.reservations {
                let name = (one.requester_id.clone(), one.key.clone().unwrap());
                assert!(all.insert(name, one).is_none(), "one key, two reservations");
            }
            match list.next {
                Some(next) => query.page = Page { after: Some(next), ..Page::default() },
                None => return all,
            }
        }
    }
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap()
}

#[test]
fn nothing_acknowledged_is_lost_however_often_the_broker_is_killed() {
    let begin = Instant::now();
    let mut siege = Siege::new();
    let cycles = cycles();
    let mut took = Vec::new();
    for number in 1..=cycles {
        let before = begin.elapsed();
        siege.cycle(number);
        took.push(begin.elapsed().saturating_sub(before));
    }
    siege.settle();
    let mut back = siege.back.clone();
    back.sort();
    let counted = |what| siege.shared.counted(what);
    println!(
        "{cycles} crashes in {:.1?}, a cycle {:.2?} in the first quarter and {:.2?} in the last: {} granted, {} still held, {} refused, {} released, {} unanswered and asked again, \
         {} of them granted unheard; {} waited, {} activated, {} resized, {} keys buried, {} forgotten; {} records, \
         {} snapshots, the first {} records gone; {} streams opened, {} with a fresh list; back after {:?} (median), {:?} (most)",
        begin.elapsed(),
        mean(&took[..took.len().div_ceil(4)]),
        mean(&took[took.len() * 3 / 4..]),
        siege.recount.grants.len(),
        siege.recount.grants.values().filter(|grant| grant.stand == Stand::Held).count(),
        counted(Count::Refused),
        counted(Count::Released),
        counted(Count::Unanswered),
        siege.in_doubt,
        counted(Count::Waited),
        counted(Count::Activated),
        counted(Count::Resized),
        counted(Count::Buried),
        siege.recount.forgotten,
        siege.recount.records(),
        siege.snapshots.len(),
        siege.oldest.0 - 1,
        counted(Count::Connected),
        counted(Count::Listed),
        back[back.len() / 2],
        back[back.len() - 1],
    );
    assert!(counted(Count::Unanswered) > 0, "no crash hit anybody");
    for what in [Count::Waited, Count::Activated, Count::Resized, Count::Buried] {
        assert!(counted(what) > 0, "{what:?} never happened");
    }
    // The first is none at all.
    assert!(cycles < CYCLES || siege.snapshots.len() > 2, "{:?}", siege.snapshots);
    assert!(cycles < CYCLES || siege.at_a_snapshot > 0, "no crash came right after a snapshot");
}

#[test]
fn a_log_that_was_set_back_is_noticed() {
    let mut siege = Siege::new();
    siege.wait_for_load(20);
    siege.fleet.kill();
    let older = siege.copy();
    siege.fleet.start();
    siege.fleet.wait_ready();
    siege.wait_for_load(20);
    siege.fleet.kill();
    let journal = siege.shared.journal().clone();
    let objections = |folder: &std::path::Path| {
        let mut recount = Recount::new(&capacity());
        recount.read_on(folder);
        audit(&journal, &siege.shared.journal(), &recount)
    };
    assert_eq!(objections(&siege.fleet.data()), Vec::<String>::new());
    let found = objections(older.path());
    assert!(found.iter().any(|why| why.contains("was acknowledged and is lost")), "{found:?}");
}
