//! The end of a run: faults stop, and everything must come to rest within bounded time.

use sublet_core::plan::Action;

use super::client::Stage;
use super::fault::operation;
use super::{Task, World};

/// Enough for every timeout, retry, grace and interval of a healthy system.
const HEAL_MS: u64 = 260_000;
/// How long a requester may try without an answer of any kind.
const PATIENCE_MS: u64 = 120_000;

impl World {
    pub(super) fn heal(&mut self) {
        self.healing = true;
        self.audit.heals();
        self.cuts.clear();
        for broker in &mut self.brokers {
            broker.cut_until = 0;
        }
        for at in 0..self.agents.len() {
            if !self.agents[at].up {
                let life = self.agents[at].life;
                self.after(100, Task::BootAgent { agent: at, life });
            }
            let name = self.agents[at].name.clone();
            let command = Box::new(operation(Action::Uncordon(name)));
            self.after(20_000, Task::Operate { command, tries: 3 });
        }
        for broker in 0..self.brokers.len() {
            let command = Box::new(operation(Action::ConfirmClock));
            let tries = u32::try_from(broker).unwrap_or(0);
            self.after(30_000, Task::Operate { command, tries });
        }
        let end = self.now + HEAL_MS;
        self.run_until(end, u64::MAX);
        if self.audit.violation().is_none() {
            self.check_rest();
        }
    }

    /// Nothing is stuck, and everybody agrees.
    fn check_rest(&mut self) {
        for at in 0..self.brokers.len() {
            let Some(process) = &self.brokers[at].process else {
                return self.fail("I22", format!("broker {at} did not come back"));
            };
            self.audit.rests(&process.engine, &self.agents);
        }
        self.audit.agrees(&self.agents);
        self.audit.delivered_all(&self.agents);
        let silent = self.requests.iter().position(|request| {
            let tries = request.since_ms.filter(|_| request.stage != Stage::Over);
            tries.is_some_and(|since| self.now > since + PATIENCE_MS)
        });
        if let Some(request) = silent {
            self.fail("I23", format!("request {request} is not answered"));
        }
        let loaded = sublet_log::snapshot::load(&self.home.handle(crate::home::Fate::Fine));
        match loaded {
            Err(error) => self.fail("I20", format!("the log cannot be loaded: {error}")),
            Ok(loaded) => self.audit.replays(&self.home.since(0), &loaded.ledger),
        }
    }
}
