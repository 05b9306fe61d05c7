//! What must be true when all faults are over.

use sublet_broker::engine::Engine;
use sublet_core::ledger::Ledger;
use sublet_core::reservation::Phase;
use sublet_core::time::Span;
use sublet_log::Record;
use sublet_log::snapshot::Loaded;

use super::Auditor;
use super::phase::is_over;
use crate::message::Ticket;
use crate::world::Agent;

/// How long anything may take in a healthy system.
const SOON: Span = Span::from_secs(60);

impl Auditor {
    /// I22: a broker knows every cluster, and its books are right.
    pub(crate) fn rests(&mut self, engine: &Engine<Ticket>, agents: &[Agent]) {
        for agent in agents {
            let entry = engine.books().market().entry(&agent.name);
            let heard = entry.is_some_and(|entry| entry.heard);
            self.expect(heard, "I22", || format!("{} was not heard again", agent.name));
        }
        if engine.is_done() {
            self.compare(engine.books(), "I2");
        }
    }

    /// I22: what clusters keep and what the log says agree, but for what has just changed.
    pub(crate) fn agrees(&mut self, agents: &[Agent]) {
        let now = self.time;
        let settled = |life: &super::shadow::Life| now.since(life.changed) > SOON;
        let mut wrong = None;
        for (id, life) in self.live.iter().filter_map(|id| Some((id, self.lives.get(id)?))) {
            let agent = agents.iter().find(|agent| Some(&agent.name) == life.provider.as_ref());
            if !settled(life) {
                continue;
            }
            let stuck = life.phase == Phase::Releasing;
            let slice = agent.and_then(|agent| agent.slices.get(id));
            let kept = slice.is_some_and(|slice| slice.generation.0 == life.generation);
            let runs = matches!(life.phase, Phase::Reserved | Phase::Active);
            let new = agent.is_some_and(|agent| !agent.old);
            if stuck || runs && new && !kept {
                wrong = Some(format!("{id} did not settle: {life:?}, kept as {slice:?}"));
            }
        }
        for (agent, id) in agents.iter().flat_map(|a| a.slices.keys().map(move |id| (a, id))) {
            let life = self.lives.get(id);
            if life.is_none_or(|life| is_over(life.phase) && settled(life)) {
                wrong = Some(format!("{} still keeps {id}: {life:?}", agent.name));
            }
        }
        if let Some(wrong) = wrong {
            self.fail("I22", wrong);
        }
    }

    /// I20: what is loaded from the newest snapshot is what the log says from its beginning: as the
    /// auditor has read it, and as the core folds it.
    pub(crate) fn replays(&mut self, records: &[Record], loaded: &Ledger) {
        let (revision, known) = (loaded.stamp().revision, self.revision);
        self.expect(revision == known, "I20", || format!("loaded up to {revision}, not {known}"));
        if let Some(wrong) = self.difference(loaded) {
            self.fail("I20", wrong);
        }
        let mut whole = Loaded::default();
        for record in records {
            if let Err(error) = whole.apply(record) {
                return self.fail("I20", format!("the log does not fold: {error}"));
            }
        }
        let same = whole.ledger == *loaded;
        self.expect(same, "I20", || "the snapshot and the whole log differ".into());
    }
}
