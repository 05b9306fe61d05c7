//! The books as the engine drives them, with the model beside them as judge.
//!
//! Every command is planned twice (it must come out the same), its events are judged, applied, taken
//! back and applied again, everything is recounted from zero, and the model is asked. A test that
//! drives a [`World`] therefore checks every rule at every step, whatever else it looks at.

use std::collections::BTreeMap;

use sublet_core::advertisement::{Advertisement, Capabilities, GrantReport, Number};
use sublet_core::books::{Books, Reversal};
use sublet_core::event::{Event, Note};
use sublet_core::id::{ClusterId, Key, ReservationId, Revision};
use sublet_core::instruction::{self, Duty, Side};
use sublet_core::invariants;
use sublet_core::ledger::{Ledger, Stamp};
use sublet_core::plan::{self, Action, Command, Fill, Plan, Refusal, Reply, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Grant, Phase, Reservation};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};

use crate::model::Model;

pub(crate) fn cluster(name: &str) -> ClusterId {
    name.parse().unwrap()
}

pub(crate) fn key(name: &str) -> Key {
    name.parse().unwrap()
}

pub(crate) fn secs(n: u64) -> Span {
    Span::from_secs(n)
}

pub(crate) fn ask(cpu: u64, memory: u64) -> Ask {
    Ask { resources: Resources::new(cpu, memory), ..Ask::default() }
}

/// What is kept apart, as a backup would be.
#[derive(Clone)]
pub(crate) struct Backup {
    ledger: String,
    model: Model,
    log: Vec<(Stamp, Event)>,
}

pub(crate) struct World {
    pub(crate) books: Books,
    pub(crate) policy: Policy,
    pub(crate) now: Time,
    pub(crate) revision: Revision,
    pub(crate) model: Model,
    /// Every event so far.
    pub(crate) log: Vec<(Stamp, Event)>,
    /// How to take back the events of the open record.
    pub(crate) reversals: Vec<Reversal>,
    /// What was there when the open record began.
    mark: (Ledger, Model, usize),
    /// The grants that each provider really keeps.
    pub(crate) kept: BTreeMap<ClusterId, BTreeMap<ReservationId, GrantReport>>,
    numbers: u64,
}

impl World {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            books: Books::default(),
            policy,
            now: Time::from_millis(1_000_000_000),
            revision: Revision(1),
            model: Model::default(),
            log: Vec::new(),
            reversals: Vec::new(),
            mark: <_>::default(),
            kept: BTreeMap::new(),
            numbers: 0,
        }
    }

    pub(crate) fn at(&self) -> Stamp {
        Stamp { revision: self.revision, time: self.now }
    }

    /// Time passes; what comes next stands in a new record.
    pub(crate) fn tick(&mut self, span: Span) {
        self.now = self.now.checked_add(span).unwrap();
        self.next_record();
    }

    pub(crate) fn next_record(&mut self) {
        self.revision = self.revision.next();
        self.reversals.clear();
        self.mark = (self.books.ledger().clone(), self.model.clone(), self.log.len());
    }

    /// Another broker wrote this revision: all that was planned in the open record is taken back,
    /// whatever was heard meanwhile.
    pub(crate) fn overtaken(&mut self) {
        for reversal in std::mem::take(&mut self.reversals).into_iter().rev() {
            self.books.revert(reversal).unwrap();
        }
        assert_eq!(*self.books.ledger(), self.mark.0, "something of the open record is left");
        let heard = std::mem::take(&mut self.model.heard);
        self.model = self.mark.1.clone();
        self.model.heard = heard;
        self.log.truncate(self.mark.2);
        self.check(&Command::Sweep { expire: true });
    }

    /// Does a command as the engine does, and checks everything.
    pub(crate) fn run(&mut self, command: &Command) -> Result<Plan, Refusal> {
        let at = self.at();
        let before = self.books.ledger().clone();
        let result = plan::plan(&self.books, command, &self.policy, at);
        let again = plan::plan(&self.books, command, &self.policy, at);
        assert_eq!(result, again, "I26: the same books and command give another plan");
        self.model.observe(at, command, &result, &self.policy);
        let events = result.iter().flat_map(|plan| plan.events.iter());
        let events: Vec<_> = events.cloned().collect();
        self.rehearse(at, &events, &before, command);
        for event in events {
            self.take(at, event);
        }
        self.check(command);
        result
    }

    /// Applies and takes back: nothing may be left of it.
    fn rehearse(&mut self, at: Stamp, events: &[Event], before: &Ledger, command: &Command) {
        let mut reversals = Vec::new();
        for event in events {
            if let Some(violation) = invariants::judge(self.books.ledger(), at, event) {
                panic!("{command:?} planned {event:?} against the rules: {violation:?}");
            }
            match self.books.apply(at, event) {
                Ok(reversal) => reversals.push(reversal),
                Err(error) => panic!("{command:?} planned {event:?}, refused: {error}"),
            }
        }
        for reversal in reversals.into_iter().rev() {
            self.books.revert(reversal).unwrap();
        }
        assert_eq!(self.books.ledger(), before, "taking back {command:?} left something");
        assert_eq!(invariants::check_books(&self.books), [], "after taking back {command:?}");
    }

    fn take(&mut self, at: Stamp, event: Event) {
        let reversal = self.books.apply(at, &event).unwrap();
        self.reversals.push(reversal);
        self.log.push((at, event));
    }

    fn check(&mut self, cause: &Command) {
        assert_eq!(invariants::check_books(&self.books), [], "after {cause:?}");
        self.model.compare(&self.books);
        let objections = std::mem::take(&mut self.model.objections);
        assert!(objections.is_empty(), "{cause:?}\n{}", objections.join("\n"));
    }

    /// Hears an advertisement and does what follows from it.
    pub(crate) fn hear(&mut self, advertisement: Advertisement) -> Plan {
        let advertisement = advertisement.validated().unwrap();
        let before = self.books.ledger().clone();
        let silence = &self.policy.silence;
        let taken = self.books.market().is_news(&advertisement, self.now, silence);
        self.books.hear(advertisement.clone(), self.now, silence);
        assert_eq!(*self.books.ledger(), before, "I10: an advertisement changed the ledger");
        self.model.hear(&advertisement, self.now, taken);
        self.run(&Command::Advertise(Box::new(advertisement))).unwrap()
    }

    /// Everything the log says, read anew: the same ledger, also through a snapshot.
    pub(crate) fn check_replay(&self) {
        let mut ledger = Ledger::default();
        for (stamp, event) in &self.log {
            ledger.apply(*stamp, event).unwrap();
        }
        assert_eq!(ledger, *self.books.ledger(), "I20: a replay gives another ledger");
        let image = serde_json::to_string(&ledger).unwrap();
        let read: Ledger = serde_json::from_str(&image).unwrap();
        assert_eq!(read, ledger, "a snapshot gives another ledger");
    }

    pub(crate) fn backup(&self) -> Backup {
        let ledger = serde_json::to_string(self.books.ledger()).unwrap();
        Backup { ledger, model: self.model.clone(), log: self.log.clone() }
    }

    /// The log is put back to an earlier state; nothing is known of the market any more.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        let ledger: Ledger = serde_json::from_str(&backup.ledger).unwrap();
        self.revision = ledger.stamp().revision;
        self.books = Books::new(ledger).listening(self.now);
        self.model = backup.model.clone();
        self.model.heard.clear();
        self.log.clone_from(&backup.log);
        self.next_record();
        let note = Note { by: Actor::Operator("ops".into()), why: "restored".into() };
        self.operator_event(Event::Restored { note });
    }

    /// The process starts anew on its log, with what it noted of the market.
    pub(crate) fn restart(&mut self) {
        let entries: Vec<_> = self.books.market().entries().map(|(_, e)| e.clone()).collect();
        self.books = Books::new(self.books.ledger().clone()).listening(self.now);
        self.model.heard_from = self.now;
        for entry in entries {
            self.books.remember(entry, self.now);
        }
        for heard in self.model.heard.values_mut() {
            heard.live = false;
        }
        self.next_record();
        self.check(&Command::Sweep { expire: true });
    }

    fn operator_event(&mut self, event: Event) {
        let at = self.at();
        let plan = Plan { events: vec![event.clone()], reply: Reply::Done };
        self.model.observe(at, &Command::Sweep { expire: true }, &Ok(plan), &self.policy);
        self.take(at, event);
        self.check(&Command::Sweep { expire: true });
    }
}

/// What tests say in one line.
impl World {
    /// A cluster with an agent of ours, which reports the grants that it keeps.
    pub(crate) fn advertise(&mut self, name: &str, cpu: u64, memory: u64) -> Plan {
        self.advertise_more(name, Resources::new(cpu, memory), Resources::default())
    }

    pub(crate) fn advertise_more(
        &mut self,
        name: &str,
        allocatable: Resources,
        allocated: Resources,
    ) -> Plan {
        let grants = self.kept.entry(cluster(name)).or_default().values().cloned().collect();
        let plain = Advertisement::plain(cluster(name), allocatable, allocated);
        let number = Some(self.number());
        self.hear(Advertisement {
            number,
            grants: Some(grants),
            capabilities: Capabilities { acknowledge: true, activate: true, ..<_>::default() },
            ..plain
        })
    }

    /// A cluster with an agent of the Go system.
    pub(crate) fn advertise_old(&mut self, name: &str, cpu: u64, memory: u64) -> Plan {
        let allocatable = Resources::new(cpu, memory);
        self.hear(Advertisement::plain(cluster(name), allocatable, Resources::default()))
    }

    pub(crate) fn number(&mut self) -> Number {
        self.numbers += 1;
        Number { incarnation: 1, sequence: self.numbers }
    }

    pub(crate) fn reserve(
        &mut self,
        requester: &str,
        name: &str,
        ask: Ask,
    ) -> Result<ReservationId, Refusal> {
        let (requester, key) = (cluster(requester), key(name));
        let plan = self.run(&Command::Reserve { requester, key, ask, explain: false })?;
        match plan.reply {
            Reply::Reservation { id, .. } => Ok(id),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn release(&mut self, by: &str, id: ReservationId) -> Plan {
        let by = Actor::Cluster(cluster(by));
        self.run(&Command::Release { by, which: Which::Id(id) }).unwrap()
    }

    /// The provider carries out the newest instruction and says so.
    pub(crate) fn acknowledge(&mut self, id: ReservationId) -> Plan {
        let provider = self.grant(id).provider.clone();
        let generation = self.grant(id).generation;
        self.carry_out(&provider, id);
        self.run(&Command::Acknowledge { by: provider, id, generation }).unwrap()
    }

    /// The provider does what it is told, without saying so.
    pub(crate) fn carry_out(&mut self, provider: &ClusterId, id: ReservationId) {
        let mut duties = instruction::current(self.books.ledger(), provider);
        let duty = duties.find(|d| d.reservation == id && d.side == Side::Provider);
        drop(duties);
        let kept = self.kept.entry(provider.clone()).or_default();
        match duty.filter(|duty| duty.duty == Duty::Keep) {
            None => {
                kept.remove(&id);
            }
            Some(duty) => {
                let now = self.now;
                let remaining = duty.expires_at.map(|end| end.since(now));
                let report = GrantReport {
                    id,
                    generation: duty.generation,
                    requester: duty.peer,
                    amounts: duty.amounts,
                    used: Resources::default(),
                    remaining,
                };
                kept.insert(id, report);
            }
        }
    }

    pub(crate) fn operate(&mut self, action: Action) -> Plan {
        let (operator, why) = ("ops".into(), "test".into());
        self.run(&Command::Operate { operator, why, action }).unwrap()
    }

    pub(crate) fn sweep(&mut self) -> Plan {
        self.run(&Command::Sweep { expire: true }).unwrap()
    }

    pub(crate) fn fill(&mut self) -> Plan {
        self.run(&Command::Fill(Fill::default())).unwrap()
    }

    /// Tries everybody who waits, piece by piece, until nobody is left to try.
    pub(crate) fn fill_all(&mut self) {
        let mut fill = Fill { looks: 8, ..Fill::default() };
        while let Reply::Filled { place, .. } | Reply::NotYetFilled { place, .. } =
            self.run(&Command::Fill(fill.clone())).unwrap().reply
        {
            fill.after = Some(place);
        }
        self.model.judge_rest(self.at());
        self.check(&Command::Fill(fill));
    }

    pub(crate) fn reservation(&self, id: ReservationId) -> &Reservation {
        self.books.ledger().reservation(id).unwrap()
    }

    pub(crate) fn phase(&self, id: ReservationId) -> Phase {
        self.reservation(id).phase()
    }

    pub(crate) fn grant(&self, id: ReservationId) -> &Grant {
        self.reservation(id).grant().unwrap()
    }

    pub(crate) fn room(&self, name: &str) -> Resources {
        self.books.room(&cluster(name))
    }
}
