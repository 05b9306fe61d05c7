//! Any history: raw events are folded or refused whole, planned ones are always sound and accepted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sublet_core::advertisement::{Advertisement, GrantReport};
use sublet_core::books::Books;
use sublet_core::event::{Basis, Event, Note, Subject};
use sublet_core::id::{ClusterId, Generation, Key, ReservationId, Revision};
use sublet_core::invariants;
use sublet_core::ledger::Stamp;
use sublet_core::plan::{self, Action, Command, Fill, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Confirmation, Hindrance, Reason};
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::{Span, Time};

fuzz_target!(|bytes: &[u8]| check(&mut Bytes(bytes)));

fn check(bytes: &mut Bytes<'_>) {
    let (mut books, policy) = (Books::default(), Policy::default());
    let mut at = Stamp { revision: Revision(1), time: Time::from_millis(1) };
    while !bytes.0.is_empty() {
        match bytes.below(4) {
            0 => {
                let advertisement = bytes.advertisement();
                if let Ok(advertisement) = advertisement.validated() {
                    books.hear(advertisement.clone(), at.time, &policy.silence);
                    run(&mut books, &Command::Advertise(Box::new(advertisement)), &policy, at);
                }
            }
            1 => raw(&mut books, &bytes.event(), at, bytes.below(4) == 0),
            2 => run(&mut books, &bytes.command(), &policy, at),
            _ => {
                at.revision = at.revision.next();
                let span = Span::from_millis(1 << bytes.below(30));
                at.time = at.time.checked_add(span).unwrap_or(at.time);
            }
        }
        assert_eq!(invariants::check_books(&books), []);
    }
}

/// What some log says, right or wrong.
fn raw(books: &mut Books, event: &Event, at: Stamp, take_back: bool) {
    let before = books.ledger().clone();
    match books.apply(at, event) {
        Ok(reversal) if take_back => books.revert(reversal).expect("it was just applied"),
        Ok(_) => return,
        Err(_) => {}
    }
    assert_eq!(*books.ledger(), before);
}

/// What is planned must pass the judge and the ledger, whatever was there before.
fn run(books: &mut Books, command: &Command, policy: &Policy, at: Stamp) {
    let Ok(plan) = plan::plan(books, command, policy, at) else { return };
    assert!(plan.events.len() <= plan::EVENTS_MAX);
    for event in plan.events {
        assert_eq!(invariants::judge(books.ledger(), at, &event), None, "{event:?}");
        books.apply(at, &event).expect("what was planned is accepted");
    }
}

/// Decides everything, from few values so that they meet.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn below(&mut self, end: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first % end
    }

    fn amount(&mut self) -> u64 {
        match self.below(16) {
            15 => u64::MAX,
            14 => u64::MAX / 2,
            small => u64::from(small),
        }
    }

    fn amounts(&mut self) -> Resources {
        let base = Resources::new(self.amount(), self.amount());
        let gpu = u64::from(self.below(3));
        base.with(Kind::Gpu, gpu).expect("four kinds always fit")
    }

    fn cluster(&mut self) -> ClusterId {
        ["c1", "c2", "c3"][usize::from(self.below(3))].parse().expect("a name")
    }

    fn key(&mut self) -> Key {
        ["a", "b", "c"][usize::from(self.below(3))].parse().expect("a key")
    }

    fn id(&mut self) -> ReservationId {
        let (requester, key) = (self.cluster(), self.key());
        ReservationId::derive(&requester, &key, Revision(u64::from(1 + self.below(2))))
    }

    fn generation(&mut self) -> Generation {
        Generation([0, 1, 2, 3, 4, u32::MAX][usize::from(self.below(6))])
    }

    fn time(&mut self) -> Option<Time> {
        let exponent = self.below(32);
        (exponent > 0).then(|| Time::from_millis(1 << exponent))
    }

    fn span(&mut self) -> Option<Span> {
        self.time().map(|time| Span::from_millis(time.as_millis()))
    }

    fn hindrance(&mut self) -> Option<Box<Hindrance>> {
        let word = ["", "NoLiqo"][usize::from(self.below(2))];
        Hindrance::new(word, "").map(Box::new)
    }

    fn actor(&mut self) -> Actor {
        if self.below(8) == 0 { Actor::Broker } else { Actor::Cluster(self.cluster()) }
    }

    fn ask(&mut self) -> Ask {
        let (resources, duration, wait) = (self.amounts(), self.span(), self.span());
        let (priority, activates) = (i32::from(self.below(3)), self.below(2) == 0);
        Ask { resources, duration, wait, priority, activates, ..Ask::default() }
    }

    fn advertisement(&mut self) -> Advertisement {
        let (cluster, used) = (self.cluster(), Resources::new(self.amount(), self.amount()));
        let plain = Advertisement::plain(cluster, self.amounts(), self.amounts());
        let report = |bytes: &mut Self| GrantReport {
            id: bytes.id(),
            generation: bytes.generation(),
            requester: bytes.cluster(),
            amounts: bytes.amounts(),
            used: used.clone(),
            remaining: bytes.span(),
        };
        let grants = (0..self.below(3)).map(|_| report(self)).collect();
        let mut says = Advertisement { grants: Some(grants), ..plain };
        says.capabilities.acknowledge = self.below(2) == 0;
        says
    }

    fn event(&mut self) -> Event {
        let (id, basis) = (self.id(), Basis::default());
        let (reason, by) = (Reason::Expired, Actor::Broker);
        match self.below(12) {
            0 => Event::Requested {
                id,
                requester: self.cluster(),
                key: self.key(),
                ask: self.ask(),
                priority: i32::from(self.below(3)),
                until: self.time().unwrap_or_default(),
            },
            1 => Event::Granted {
                id,
                provider: self.cluster(),
                amounts: self.amounts(),
                expires_at: self.time(),
                activate_by: self.time(),
                confirms: self.below(2) == 0,
                basis,
            },
            2 => Event::Adopted {
                id,
                requester: self.cluster(),
                provider: self.cluster(),
                amounts: self.amounts(),
                generation: self.generation(),
                expires_at: self.time(),
            },
            3 => Event::Activated { id },
            4 => Event::Renewed { id, expires_at: self.time() },
            5 => Event::Resized { id, amounts: self.amounts(), basis },
            6 => Event::Acknowledged { id, generation: self.generation() },
            7 => Event::Ending { id, reason, by, hindrance: self.hindrance() },
            8 => Event::Ended {
                id,
                reason,
                by,
                confirmation: Confirmation::Unconfirmed,
                hindrance: self.hindrance(),
            },
            9 => Event::Forgotten { reservations: vec![id, self.id()], tombstones: vec![] },
            10 => Event::Reserved {
                id,
                requester: self.cluster(),
                key: self.key(),
                ask: self.ask(),
                priority: i32::from(self.below(3)),
                provider: self.cluster(),
                expires_at: self.time(),
                activate_by: self.time(),
                confirms: self.below(2) == 0,
                basis,
            },
            _ => {
                let note = Note { by, why: String::new() };
                match self.below(2) {
                    0 => Event::Restored { note },
                    _ => Event::KeyReleased { requester: self.cluster(), key: self.key() },
                }
            }
        }
    }

    fn command(&mut self) -> Command {
        let id = self.id();
        match self.below(10) {
            0 | 1 => Command::Reserve {
                requester: self.cluster(),
                key: self.key(),
                ask: self.ask(),
                explain: true,
            },
            2 => Command::Release { by: self.actor(), which: Which::Id(id) },
            3 => Command::Renew { by: self.actor(), id, duration: self.span() },
            4 => Command::Resize { by: self.actor(), id, resources: self.amounts() },
            5 => Command::Activate { by: self.cluster(), id },
            6 => Command::Acknowledge { by: self.cluster(), id, generation: self.generation() },
            7 => Command::Fill(Fill::default()),
            8 => Command::Sweep { expire: true },
            _ => Command::Operate {
                operator: String::new(),
                why: String::new(),
                action: self.action(),
            },
        }
    }

    fn action(&mut self) -> Action {
        let cluster = self.cluster();
        match self.below(7) {
            0 => Action::Cordon { cluster, drain: true },
            1 => Action::Uncordon(cluster),
            2 => Action::Cap(cluster, Limits(self.amounts().iter().collect())),
            3 => Action::Revoke(Subject::Cluster(cluster)),
            4 => Action::Reinstate(Subject::Cluster(cluster)),
            5 => Action::DeclareLost(cluster),
            _ => Action::Vouch(cluster),
        }
    }
}
