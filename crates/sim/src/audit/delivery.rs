//! I9: when faults are over, each side hears of its newest instruction within bounded time.

use std::collections::BTreeSet;

use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::instruction::Instruction;

use super::Auditor;
use super::phase::is_over;
use super::shadow::Life;
use crate::world::Agent;

/// How soon both sides have been told of a change.
const TOLD_MS: u64 = 10_000;
/// So long after the last fault, what it broke may still be mending.
const MENDING_MS: u64 = 60_000;

impl Auditor {
    /// From now on nothing breaks any more.
    pub(crate) fn heals(&mut self) {
        self.calm_from_ms = Some(self.now_ms + MENDING_MS);
    }

    /// An agent that can watch hears what it must do.
    pub(crate) fn delivers(&mut self, cluster: &ClusterId, instructions: &[Instruction]) {
        for instruction in instructions {
            let (id, number) = (instruction.reservation, instruction.generation.0);
            let told = self.delivered.entry((cluster.clone(), id)).or_default();
            let first = *told < number;
            *told = (*told).max(number);
            let newest = self.lives.get(&id).filter(|life| life.generation == number);
            let late = newest.filter(|life| first && self.is_late(life));
            if let Some(life) = late {
                let late = self.now_ms - life.issued_ms;
                let found = format!("{cluster} is told of {id}, {number}, {late} ms late");
                self.fail("I9", found);
            }
        }
    }

    /// An agent hears all that it must do: what is over and not among it, it is told of by that.
    pub(crate) fn delivers_all(&mut self, cluster: &ClusterId, instructions: &[Instruction]) {
        self.delivers(cluster, instructions);
        let listed: BTreeSet<_> = instructions.iter().map(|one| one.reservation).collect();
        for (id, life) in &self.lives {
            let theirs = life.requester == *cluster || life.provider.as_ref() == Some(cluster);
            if theirs && is_over(life.phase) && !listed.contains(id) {
                let told = self.delivered.entry((cluster.clone(), *id)).or_default();
                *told = (*told).max(life.generation);
            }
        }
    }

    /// Nobody is left who was not told.
    pub(crate) fn delivered_all(&mut self, agents: &[Agent]) {
        let able =
            |cluster: &ClusterId| agents.iter().any(|agent| agent.name == *cluster && !agent.old);
        let untold = |cluster: &ClusterId, id: &ReservationId, life: &Life| {
            let told = self.delivered.get(&(cluster.clone(), *id));
            able(cluster) && told.is_none_or(|told| *told < life.generation)
        };
        let lives = self.live.iter().filter_map(|id| Some((id, self.lives.get(id)?)));
        let wrong = lives.filter(|(_, life)| self.is_late(life)).find_map(|(id, life)| {
            let provider = life.provider.as_ref()?;
            let who = [provider, &life.requester].into_iter().find(|who| untold(who, id, life))?;
            Some(format!("{who} was never told of {id}: {life:?}"))
        });
        if let Some(wrong) = wrong {
            self.fail("I9", wrong);
        }
    }

    fn is_late(&self, life: &Life) -> bool {
        let calm = |from: u64| self.now_ms > life.issued_ms.max(from) + TOLD_MS;
        self.calm_from_ms.is_some_and(calm)
    }
}
