//! What somebody who watches was told, beside what the log says.

use std::collections::BTreeMap;

use sublet_broker::stream::Part;
use sublet_core::id::{ClusterId, ReservationId, Revision};
use sublet_log::Writer;

use super::Auditor;
use super::phase::is_over;
use super::shadow::Life;
use crate::message::Ticket;

/// What an agent knows from its streams.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// An agent that was restarted knows nothing.
    life: u64,
    /// Of each reservation, the change that it was told of last.
    told: BTreeMap<ReservationId, Revision>,
}

impl Auditor {
    /// The first part of a stream leaves a broker.
    pub(crate) fn opens(&mut self, writer: Writer, call: &Ticket, part: &Part, durable: Revision) {
        self.pays(writer, call);
        // It was looked at the batch after; before the first there is none.
        let looked = part.cursor.revision().next();
        self.judge_order(call, looked);
        if looked.0 > 1 {
            self.judge_shown(looked, durable);
        }
    }

    /// News leave a broker.
    pub(crate) fn tells(&mut self, part: &Part, durable: Revision) {
        self.judge_shown(part.cursor.revision(), durable);
    }

    /// I3: what anybody is shown survives a power loss; and from now on it is known.
    pub(super) fn judge_shown(&mut self, shown: Revision, durable: Revision) {
        self.expect(shown <= durable, "I3", || {
            format!("{shown} is shown, and only {durable} is durable")
        });
        self.told = self.told.max(shown);
    }

    /// I9: an agent takes in a part of a stream.
    pub(crate) fn streams(&mut self, cluster: &ClusterId, life: u64, part: &Part) {
        self.judge_instructions(cluster, &part.instructions);
        let mut view = self.views.remove(cluster).filter(|v| v.life == life).unwrap_or_default();
        view.life = life;
        let before = if part.whole { std::mem::take(&mut view.told) } else { BTreeMap::new() };
        for instruction in &part.instructions {
            let (id, now) = (instruction.reservation, instruction.revision);
            let told = view.told.insert(id, now);
            let last = told.max(before.get(&id).copied());
            self.expect(last <= Some(now), "I9", || {
                format!("{cluster} is told of {id} as of {now}, after it was told {last:?}")
            });
        }
        // What comes before the whole list does not say that nothing is missing.
        let missed = self.missed(cluster, &view, part.cursor.revision()).filter(|_| !part.early);
        self.expect(missed.is_none(), "I9", || {
            format!("{cluster} at {:?} was not told of {missed:?}", part.cursor)
        });
        self.views.insert(cluster.clone(), view);
    }

    /// A reservation of `cluster` whose last change up to here its view does not have.
    fn missed(&self, cluster: &ClusterId, view: &View, here: Revision) -> Option<ReservationId> {
        let unknown = |(id, life): (&ReservationId, &Life)| {
            let part = |provider: &Option<ClusterId>| {
                let lends = provider.as_ref() == Some(cluster);
                lends || provider.is_some() && life.requester == *cluster
            };
            let mine = || life.versions.iter().filter(|(_, version)| part(&version.provider));
            let (newest, _) = mine().rfind(|(at, _)| *at <= here)?;
            // A list leaves out what had ended when it was made, which was in the batch after.
            let over = || mine().any(|(at, v)| *at <= here.next() && is_over(v.phase));
            let known = view.told.get(id).map_or_else(over, |told| told >= newest);
            (!known).then_some(*id)
        };
        self.lives.iter().find_map(unknown)
    }
}
