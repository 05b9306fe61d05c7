//! What the demo is played on: an engine, a log in a folder, and a reader.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use sublet_broker::engine::{self, Answer, Failure, Options, Running, Settled};
use sublet_core::advertisement::{Advertisement, Number};
use sublet_core::id::ClusterId;
use sublet_core::instruction::{self, Instruction};
use sublet_core::invariants;
use sublet_core::ledger::{Bond, Ledger};
use sublet_core::plan::{Command, Reply, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Phase, Reservation};
use sublet_core::resources::Resources;
use sublet_core::time::Span;
use sublet_log::embedded::Embedded;
use sublet_log::{Log, Writer, snapshot};

const MIB: u64 = 1 << 20;

/// What a requester wants.
#[derive(Clone)]
pub(super) struct Wish {
    pub(super) requester: String,
    pub(super) key: String,
    /// Millicores.
    pub(super) cpu: u64,
    /// MiB.
    pub(super) memory: u64,
    pub(super) gpu: u64,
    pub(super) wait: Option<Span>,
    pub(super) duration: Option<Span>,
}

impl Wish {
    /// Millicores and MiB under a key.
    pub(super) fn new(requester: &str, key: &str, cpu: u64, memory: u64) -> Self {
        let (requester, key) = (requester.into(), key.into());
        Self { requester, key, cpu, memory, gpu: 0, wait: None, duration: None }
    }

    fn ask(&self) -> Ask {
        let mut resources = Resources::new(self.cpu, self.memory * MIB);
        resources.gpu = self.gpu;
        Ask {
            resources,
            wait: self.wait,
            duration: self.duration,
            activates: true,
            ..Ask::default()
        }
    }

    fn command(&self) -> Result<Command> {
        let (requester, key) = (self.requester.parse()?, self.key.parse()?);
        Ok(Command::Reserve { requester, key, ask: self.ask(), explain: true })
    }
}

/// What came of a wish.
pub(super) struct Outcome(Answer);

impl Outcome {
    /// The reservation that was made, or found again.
    pub(super) fn granted(self) -> Result<Reservation> {
        let settled = self.0.context("it should have been granted")?;
        settled.reservation.map(Arc::unwrap_or_clone).context("there should be a reservation")
    }

    /// Nothing else will do.
    pub(super) fn refused(self) -> Result<()> {
        match self.0 {
            Err(Failure::Refused(_)) => Ok(()),
            other => bail!("it should have been refused: {other:?}"),
        }
    }
}

/// An engine, a log in a folder, and a reader.
pub(super) struct Stage {
    engine: Running,
    log: Arc<Embedded>,
    pause: bool,
    numbered: u64,
}

/// Talking to the reader.
impl Stage {
    pub(super) fn title(&mut self, text: &str) -> Result<()> {
        let (bold, plain) =
            if io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        self.print(&format!("\n{bold}── {text}{plain}\n"))
    }

    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        self.print(&format!("   {text}\n"))
    }

    fn print(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot print")?;
        if self.pause {
            super::breathe();
        }
        Ok(())
    }

    pub(super) fn show(&mut self, reservation: &Reservation) -> Result<()> {
        let (id, phase, requester) = (reservation.id, reservation.phase(), &reservation.requester);
        match reservation.grant() {
            None => self.say(&format!("→ {id} {phase}")),
            Some(grant) => {
                let (amounts, provider) = (&grant.amounts, &grant.provider);
                self.say(&format!("→ {id} {phase}: {amounts} of {provider} for {requester}"))
            }
        }
    }
}

/// Acting.
impl Stage {
    pub(super) fn open(folder: &Path, pause: bool) -> Result<Self> {
        let log = Arc::new(Embedded::open(folder)?);
        let loaded = snapshot::load(log.as_ref())?;
        let policy = Policy { recovery_grace: Span::ZERO, ..Policy::default() };
        // Unique enough for one folder that nobody else writes to.
        let writer = Writer(u128::from(std::process::id()));
        let home: Arc<dyn Log> = log.clone();
        let engine = engine::start(home, loaded, Arc::new(policy), &Options::alone(writer))?;
        Ok(Self { engine, log, pause, numbered: 0 })
    }

    pub(super) fn close(self) -> Result<()> {
        self.engine.stop().context("the engine did not end well")
    }

    fn ask(&self, command: Command) -> Answer {
        self.engine.handle().submit(command)?.wait()
    }

    /// Allocatable in millicores and GiB, used in millicores and MiB.
    pub(super) fn advertise(
        &mut self,
        name: &str,
        has: (u64, u64),
        used: (u64, u64),
    ) -> Result<()> {
        self.numbered += 1;
        let has = Resources::new(has.0, has.1 * 1024 * MIB);
        let used = Resources::new(used.0, used.1 * MIB);
        self.say(&format!("{name} has {has}; its own pods take {used}"))?;
        let mut advertisement = Advertisement::plain(name.parse()?, has, used);
        advertisement.number = Some(Number { incarnation: 1, sequence: self.numbered });
        advertisement.capabilities.acknowledge = true;
        self.ask(Command::Advertise(Box::new(advertisement)))?;
        Ok(())
    }

    pub(super) fn request(&mut self, wish: &Wish) -> Result<Outcome> {
        let Wish { requester, key, .. } = wish;
        self.say(&format!("{requester} asks for {} under key {key}", wish.ask().resources))?;
        let answer = self.ask(wish.command()?);
        match &answer {
            Err(failure) => self.say(&format!("→ refused: {failure}"))?,
            Ok(Settled { reservation: Some(reservation), reply, .. }) => {
                self.show(reservation)?;
                if let Reply::Reservation { explanation: Some(why), .. } = reply {
                    self.say(&format!("  {why}"))?;
                }
            }
            Ok(_) => {}
        }
        Ok(Outcome(answer))
    }

    pub(super) fn acknowledge(&mut self, reservation: &Reservation) -> Result<()> {
        let now = self.look(reservation)?;
        let grant = now.grant().context("nothing was granted")?;
        let (by, generation) = (grant.provider.clone(), grant.generation);
        self.say(&format!("{by} confirms instruction {generation} of {}", now.id))?;
        self.ask(Command::Acknowledge { by, id: now.id, generation })?;
        Ok(())
    }

    pub(super) fn activate(&mut self, reservation: &Reservation) -> Result<Reservation> {
        let (by, id) = (reservation.requester.clone(), reservation.id);
        self.say(&format!("{by} confirms that it can use {id}"))?;
        self.ask(Command::Activate { by, id })?;
        self.look(reservation)
    }

    pub(super) fn release(&mut self, reservation: &Reservation) -> Result<()> {
        let by = Actor::Cluster(reservation.requester.clone());
        self.say(&format!("{} releases {}", reservation.requester, reservation.id))?;
        self.ask(Command::Release { by, which: Which::Id(reservation.id) })?;
        Ok(())
    }

    /// So many callers at once, one core each; how many were granted?
    pub(super) fn stampede(&mut self, requester: &str, callers: u64) -> Result<u64> {
        let commands: Vec<_> = (0..callers)
            .map(|caller| Wish::new(requester, &format!("caller-{caller}"), 1_000, 64).command())
            .collect::<Result<_>>()?;
        let handle = self.engine.handle();
        let tickets: Vec<_> = std::thread::scope(|scope| {
            let submit = |command| scope.spawn(|| handle.submit(command));
            let callers: Vec<_> = commands.into_iter().map(submit).collect();
            callers.into_iter().filter_map(|caller| caller.join().ok()).collect()
        });
        let granted = tickets.into_iter().filter_map(Result::ok);
        Ok(granted.flat_map(engine::Ticket::wait).count() as u64)
    }
}

/// Looking at committed state.
impl Stage {
    fn see<R: Send + 'static>(&self, look: impl Fn(&Ledger) -> R + Send + 'static) -> Result<R> {
        let seen = self.engine.handle().look(move |books, _| look(books.ledger()))?;
        seen.blocking_recv().context("the engine has ended")
    }

    pub(super) fn look(&self, reservation: &Reservation) -> Result<Reservation> {
        let id = reservation.id;
        self.see(move |ledger| ledger.reservation(id).cloned())?.context("it is forgotten")
    }

    pub(super) fn find(&self, requester: &str, key: &str) -> Result<Reservation> {
        let (requester, key) = (requester.parse()?, key.parse()?);
        let found = self.see(move |ledger| match ledger.bond(&requester, &key)? {
            Bond::Reservation(id) => ledger.reservation(id).cloned(),
            Bond::Tombstone(_) => None,
        })?;
        found.context("there is no reservation under this key")
    }

    pub(super) fn await_phase(&mut self, reservation: &Reservation, phase: Phase) -> Result<()> {
        for _ in 0..100 {
            if self.look(reservation)?.phase() == phase {
                return self.show(&self.look(reservation)?);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        bail!("{} did not become {phase}", reservation.id)
    }

    pub(super) fn show_instructions(&mut self, name: &str) -> Result<()> {
        let cluster: ClusterId = name.parse()?;
        let duties: Vec<Instruction> =
            self.see(move |ledger| instruction::current(ledger, &cluster).collect())?;
        ensure!(!duties.is_empty(), "{name} should have been told something");
        for duty in duties {
            let Instruction { reservation, side, duty, amounts, peer, generation, .. } = duty;
            self.say(&format!(
                "{name} as {side:?}: {duty:?} {amounts} with {peer} ({reservation}, instruction {generation})"
            ))?;
        }
        Ok(())
    }

    /// Whole cores that can still be lent, cluster by cluster.
    pub(super) fn free_cores(&self, names: &[&str]) -> Result<u64> {
        let clusters: Vec<ClusterId> =
            names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
        let seen = self.engine.handle().look(move |books, _| {
            clusters.iter().map(|cluster| books.room(cluster).cpu / 1000).sum()
        })?;
        seen.blocking_recv().context("the engine has ended")
    }

    /// What is held by whom, for comparing.
    pub(super) fn summary(&self) -> Result<String> {
        self.see(|ledger| {
            let held = ledger.accounts().filter(|(_, account)| !account.lending.is_empty());
            let held: Vec<_> = held.map(|(name, a)| format!("{name} lends {}", a.lent)).collect();
            format!("{} reservations; {}", ledger.reservations(None).count(), held.join("; "))
        })
    }

    /// Reads the whole log back and checks everything.
    pub(super) fn audit(&mut self) -> Result<()> {
        let loaded = snapshot::load(self.log.as_ref())?;
        let found = invariants::check(&loaded.ledger);
        ensure!(found.is_empty(), "the ledger contradicts itself: {found:?}");
        self.say(&format!("Read back to revision {}: every sum agrees.", loaded.head.revision))
    }
}
