//! Plays random operations on a world.

use std::collections::BTreeSet;

use sublet_core::advertisement::{Advertisement, Capabilities, GrantReport, Number};
use sublet_core::event::{Event, Subject};
use sublet_core::id::{ClusterId, Generation, ReservationId};
use sublet_core::plan::{Action, Command, Fill, Plan, Refusal, Reply, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Hindrance, Reservation};
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Span;

use super::ops::{Agent, Amounts, By, CLUSTERS, OLD, Op, Says};
use crate::world::{Backup, World, cluster, key, secs};

fn resources(amounts: Amounts) -> Resources {
    let fpga: Kind = "example.com/fpga".parse().unwrap();
    let base = Resources::new(amounts[0], amounts[1]);
    base.with(Kind::Gpu, amounts[2]).and_then(|base| base.with(fpga, amounts[3])).unwrap()
}

/// Plays operations on a world.
pub(crate) struct Player {
    pub(crate) world: World,
    last: Option<Command>,
    backup: Option<Backup>,
    pub(crate) asked: u32,
    pub(crate) refused: u32,
    /// What was seen to happen, so that a test can tell whether it looked at anything.
    pub(crate) seen: BTreeSet<String>,
}

impl Player {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            world: World::new(policy),
            last: None,
            backup: None,
            asked: 0,
            refused: 0,
            seen: <_>::default(),
        }
    }

    pub(crate) fn play(&mut self, op: &Op) {
        match op {
            Op::Tick(millis) => self.world.tick(Span::from_millis(*millis)),
            Op::NewRecord => self.world.next_record(),
            Op::Advertise(says) => {
                let advertisement = self.advertisement(*says);
                let plan = self.world.hear(advertisement);
                self.note(&Ok(plan));
            }
            Op::OlderAdvertisement { who, has } => {
                let says = Says { who: *who, has: *has, own: [0; 4], used: 0, agent: Agent::Ours };
                let mut late = self.advertisement(says);
                late.number = Some(Number { incarnation: 0, sequence: 0 });
                self.world.hear(late);
            }
            Op::Repeat => {
                if let Some(command) = self.last.clone() {
                    self.repeat(&command);
                }
            }
            Op::Backup => self.backup = Some(self.world.backup()),
            Op::Restore => {
                if let Some(backup) = self.backup.take() {
                    self.world.restore(&backup);
                    self.last = None;
                }
            }
            Op::Restart => self.world.restart(),
            Op::FillAll => self.world.fill_all(),
            Op::Overtaken => {
                self.world.overtaken();
                self.last = None;
            }
            _ => {
                if let Some(command) = self.command(op) {
                    self.command_runs(command);
                }
            }
        }
    }

    fn command_runs(&mut self, command: Command) {
        let result = self.world.run(&command);
        self.note(&result);
        if matches!(command, Command::Reserve { .. }) {
            self.asked += 1;
            self.refused += u32::from(result.is_err());
        }
        if let (Command::Sweep { .. }, Ok(plan)) = (&command, &result)
            && plan.reply == (Reply::Swept { more: false })
        {
            let ledger = self.world.books.ledger();
            // After a restore, only its provider knows whether it was granted, and how long it lasts.
            let unknown = |due: &&Reservation| match due.holding() {
                Some(grant) => ledger.awaits_report(&grant.provider),
                None => self.world.model.is_doubtful(due.id),
            };
            let overdue = ledger.due(self.world.now).filter(|due| !unknown(due));
            assert_eq!(overdue.count(), 0, "I7: a complete sweep leaves nothing that is due");
        }
        self.last = Some(command);
    }

    fn note(&mut self, result: &Result<Plan, Refusal>) {
        let first = |debug: String| debug.split([' ', '(', '{']).next().unwrap().to_owned();
        let mut see = |what: String| self.seen.insert(what);
        match result {
            Err(refusal) => {
                see(first(format!("{refusal:?}")));
            }
            Ok(plan) => {
                see(first(format!("{:?}", plan.reply)));
                let now = self.world.now;
                for event in plan.events.iter().flat_map(|event| event.steps(now)) {
                    see(first(format!("{event:?}")));
                    if let Event::Ended { reason, confirmation, .. } = &event {
                        see(format!("{reason:?}"));
                        see(format!("{confirmation:?}"));
                    }
                }
            }
        }
        for cluster in CLUSTERS.map(cluster) {
            if self.world.books.is_overcommitted(&cluster) {
                see("Overcommitted".to_owned());
            }
            if !self.world.books.overlap(&cluster).ghosts.is_zero() {
                see("Ghost".to_owned());
            }
        }
    }

    /// The same again holds nothing more and makes nothing new.
    fn repeat(&mut self, command: &Command) {
        let before = self.world.books.ledger().clone();
        let result = self.world.run(command);
        let after = self.world.books.ledger();
        let known = |l: &sublet_core::ledger::Ledger| l.reservations(None).count();
        // What was refused before may be possible now; what was done must not be done again.
        if let Command::Reserve { requester, key, .. } = command
            && before.bond(requester, key).is_some()
        {
            assert_eq!(before, *after, "{command:?} did something again: {result:?}");
        }
        let adds = matches!(command, Command::Reserve { .. });
        assert!(adds || known(&before) >= known(after), "{command:?}: {result:?}");
    }

    /// What the agent of a cluster says: what it keeps and uses is its own affair.
    fn advertisement(&mut self, says: Says) -> Advertisement {
        let Says { who, has, own, used, agent } = says;
        let name = CLUSTERS[who];
        let number = self.world.number();
        let kept = self.world.kept.entry(cluster(name)).or_default();
        let mut allocated = resources(own);
        let mut reports = Vec::new();
        for report in kept.values() {
            let share = |n: u64| n * used / 3;
            let amounts = &report.amounts;
            let used =
                resources([share(amounts.cpu), share(amounts.memory), share(amounts.gpu), 0]);
            allocated = allocated.checked_add(&used).unwrap();
            reports.push(GrantReport { used, ..report.clone() });
        }
        let plain = Advertisement::plain(cluster(name), resources(has), allocated);
        if name == OLD || matches!(agent, Agent::Old) {
            return plain;
        }
        Advertisement {
            number: Some(number),
            grants: Some(reports),
            capabilities: Capabilities { acknowledge: true, activate: true, ..<_>::default() },
            lending: !matches!(agent, Agent::NotLending),
            ..plain
        }
    }

    fn command(&mut self, op: &Op) -> Option<Command> {
        Some(match op {
            Op::Reserve { who, key: name, amounts, wait, priority, shape } => Command::Reserve {
                explain: true,
                requester: cluster(CLUSTERS[*who]),
                key: key(&format!("k{name}")),
                ask: ask(*amounts, *wait, *priority, *shape),
            },
            Op::ReleaseKey { who, key: name } => {
                let which = Which::Key(cluster(CLUSTERS[*who]), key(&format!("k{name}")));
                Command::Release { by: Actor::Cluster(cluster(CLUSTERS[*who])), which }
            }
            Op::Operate { who, what, amounts } => Command::Operate {
                operator: "ops".into(),
                why: "test".into(),
                action: action(cluster(CLUSTERS[*who]), *what, *amounts),
            },
            Op::Fill { floor, after } => {
                let first = self.world.books.ledger().waiting(None).next().map(|(place, _)| place);
                let after = first.filter(|_| *after);
                Command::Fill(Fill { after, floor: *floor, ..Fill::default() })
            }
            Op::Sweep => Command::Sweep { expire: true },
            Op::Release { nth, by } => {
                let (id, by) = self.pick(*nth, *by)?;
                Command::Release { by, which: Which::Id(id) }
            }
            Op::Renew { nth, duration } => {
                let (id, by) = self.pick(*nth, By::Requester)?;
                let duration = Some(Span::from_millis(*duration)).filter(|span| !span.is_zero());
                Command::Renew { by, id, duration }
            }
            Op::Resize { nth, amounts } => {
                let (id, by) = self.pick(*nth, By::Requester)?;
                Command::Resize { by, id, resources: resources(*amounts) }
            }
            Op::Activate { nth, by } => {
                let (id, by) = self.pick(*nth, *by)?;
                Command::Activate { by: name_of(by)?, id }
            }
            Op::Fail { nth, by } => {
                let (id, by) = self.pick(*nth, *by)?;
                Command::Fail { by: name_of(by)?, id, why: Hindrance::new("NoLiqo", "no Liqo") }
            }
            Op::Acknowledge { nth, by, off } => return self.acknowledge(*nth, *by, *off),
            _ => return None,
        })
    }

    fn acknowledge(&mut self, nth: usize, by: By, off: i64) -> Option<Command> {
        let (id, actor) = self.pick(nth, by)?;
        let reservation = self.world.reservation(id);
        let newest = reservation.grant().map_or(0, |grant| i64::from(grant.generation.0));
        let provider = reservation.grant().map(|grant| grant.provider.clone());
        if let Some(provider) = provider.filter(|_| off == 0 && matches!(by, By::Provider)) {
            self.world.carry_out(&provider, id);
        }
        let generation = Generation(u32::try_from(newest + off).unwrap_or(0));
        Some(Command::Acknowledge { by: name_of(actor)?, id, generation })
    }

    /// The nth reservation, live ones first, and who acts on it.
    fn pick(&self, nth: usize, by: By) -> Option<(ReservationId, Actor)> {
        let all = || self.world.books.ledger().reservations(None);
        let live: Vec<_> = all().filter(|r| !r.phase().is_terminal()).collect();
        let list = if live.is_empty() || nth.is_multiple_of(16) { all().collect() } else { live };
        let chosen = *list.get(nth % list.len().max(1))?;
        let provider = chosen.grant().map(|grant| grant.provider.clone());
        let by = match by {
            By::Requester => Actor::Cluster(chosen.requester.clone()),
            By::Provider => Actor::Cluster(provider.unwrap_or(chosen.requester.clone())),
            By::Operator => Actor::Operator("ops".into()),
            By::Stranger => Actor::Cluster(cluster("stranger")),
        };
        Some((chosen.id, by))
    }
}

fn name_of(actor: Actor) -> Option<ClusterId> {
    match actor {
        Actor::Cluster(cluster) => Some(cluster),
        _ => None,
    }
}

fn action(who: ClusterId, what: u8, amounts: Amounts) -> Action {
    match what {
        0 => Action::Cordon { cluster: who, drain: false },
        1 => Action::Cordon { cluster: who, drain: true },
        2 | 3 => Action::Uncordon(who),
        4 => Action::Cap(who, Limits([(Kind::Cpu, amounts[0]), (Kind::Gpu, amounts[2])].into())),
        5 => Action::Cap(who, Limits::default()),
        6 => Action::Revoke(Subject::Cluster(who)),
        7 => Action::Reinstate(Subject::Cluster(who)),
        8 => Action::DeclareLost(who),
        _ => Action::Vouch(who),
    }
}

fn ask(amounts: Amounts, wait: u64, priority: i32, shape: u8) -> Ask {
    Ask {
        resources: resources(amounts),
        priority,
        wait: Some(Span::from_millis(wait)).filter(|wait| !wait.is_zero()),
        duration: (shape & 1 == 1).then(|| secs(60)),
        activates: shape & 2 == 2,
        ..Ask::default()
    }
}
