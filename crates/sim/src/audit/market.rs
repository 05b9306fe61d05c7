//! What clusters published, and which broker heard it when.

use std::collections::{BTreeMap, VecDeque};

use sublet_broker::engine::Engine;
use sublet_core::advertisement::{Advertisement, Cost, Number};
use sublet_core::books::Books;
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::reservation::Confirmation;
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_log::Writer;

use super::phase::counts;
use super::{Amounts, Auditor, amounts, exceeds, larger, less, plus};
use crate::message::Ticket;

/// What a cluster said of itself once.
#[derive(Clone, Debug)]
pub(super) struct Advert {
    pub(super) cluster: ClusterId,
    pub(super) number: Option<Number>,
    pub(super) allocatable: Amounts,
    pub(super) allocated: Amounts,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) cost: Option<Cost>,
    /// Of all pods, those outside of reported grants.
    pub(super) own: Amounts,
    /// What each reported grant keeps and uses.
    pub(super) grants: Vec<(ReservationId, Amounts, Amounts)>,
    /// Does it report grants at all?
    pub(super) reports: bool,
}

impl Advert {
    /// What is left of it where it was only noted: nothing of grants, nor of pods inside them.
    pub(super) fn noted(&self) -> Self {
        let (own, rest) = (self.own, self.clone());
        Self { allocated: own, grants: vec![], reports: false, ..rest }
    }
}

/// What one process heard of one cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Ear {
    /// The newest advertisement, and when it came.
    pub(super) newest: Option<(Time, usize)>,
    /// What it heard lately, oldest first.
    pub(super) lately: VecDeque<(Time, usize)>,
    /// Heard by this process, not only remembered from an earlier one.
    pub(super) heard: bool,
}

/// More than any batch waits for its turn.
const LATELY_MAX: usize = 64;

impl Auditor {
    /// A cluster publishes; `own` is what its own pods really take.
    pub(crate) fn publishes(&mut self, advertisement: &Advertisement, own: Resources) -> usize {
        let reported = advertisement.grants.iter().flatten();
        let grants: Vec<_> = reported
            .map(|grant| (grant.id, amounts(&grant.amounts), amounts(&grant.used)))
            .collect();
        let used = grants.iter().fold(Amounts::default(), |sum, (_, _, used)| plus(sum, *used));
        let rest = less(amounts(&advertisement.allocated), used);
        let honest = larger(rest, amounts(&own)) == rest;
        self.expect(honest, "I1", || format!("the model of {} is wrong", advertisement.cluster));
        self.adverts.push(Advert {
            cluster: advertisement.cluster.clone(),
            number: advertisement.number,
            allocatable: amounts(&advertisement.allocatable),
            allocated: amounts(&advertisement.allocated),
            labels: advertisement.labels.clone(),
            cost: advertisement.cost.clone(),
            own: rest,
            grants,
            reports: advertisement.grants.is_some(),
        });
        self.adverts.len() - 1
    }

    /// A process starts with what an earlier one had noted.
    pub(super) fn remembers(&mut self, writer: Writer, books: &Books) {
        for (cluster, entry) in books.market().entries() {
            let number = entry.advertisement.number;
            let same = |advert: &Advert| advert.cluster == *cluster && advert.number == number;
            // What old agents publish is not numbered: anything from them is news.
            if number.is_some()
                && let Some(at) = self.adverts.iter().rposition(same)
            {
                let newest = Some((entry.received_at, at));
                let ear = Ear { newest, ..Ear::default() };
                self.ears.insert((writer, cluster.clone()), ear);
            }
        }
    }

    /// A process is about to plan these.
    pub(crate) fn takes_in(
        &mut self,
        writer: Writer,
        engine: &Engine<Ticket>,
        calls: &[Ticket],
        time: Time,
    ) {
        if let [call] = calls {
            self.predict(writer, engine, call, time);
        }
        self.owes(writer, engine, calls);
        for call in calls {
            let Some((at, advert)) = call.advert.and_then(|at| Some((at, self.adverts.get(at)?)))
            else {
                continue;
            };
            let number = advert.number;
            let ear = self.ears.entry((writer, advert.cluster.clone())).or_default();
            let known = ear.newest.and_then(|(_, at)| self.adverts.get(at)?.number);
            // The same again is a sign of life where it was only remembered.
            let again = number == known && !ear.heard;
            if number.is_none() || known.is_none() || number > known || again {
                ear.newest = Some((time, at));
                ear.heard = true;
                ear.lately.push_back((time, at));
                if ear.lately.len() > LATELY_MAX {
                    ear.lately.pop_front();
                }
            }
        }
    }

    /// Everything that is taken on a provider, as an advertisement of it shows it: pods outside of
    /// grants, and for each grant the larger of what is held and what is used. What it still keeps
    /// although it is over counts, unless its end was confirmed since. Also: is there such a thing?
    pub(super) fn taken(&self, provider: &ClusterId, advert: &Advert) -> (Amounts, bool) {
        let (mut taken, mut ghosts) = (advert.own, false);
        for (id, kept, used) in &advert.grants {
            let life = self.lives.get(id).filter(|life| life.provider.as_ref() == Some(provider));
            taken = plus(
                taken,
                match life {
                    Some(life) if counts(life.phase) => larger(life.held, *used),
                    Some(life) if life.confirmation == Some(Confirmation::Confirmed) => *used,
                    _ => {
                        ghosts = true;
                        larger(*kept, *used)
                    }
                },
            );
        }
        for (id, life) in self.live.iter().filter_map(|id| Some((id, self.lives.get(id)?))) {
            let here = counts(life.phase) && life.provider.as_ref() == Some(provider);
            if here && !advert.grants.iter().any(|(reported, ..)| reported == id) {
                taken = plus(taken, life.held);
            }
        }
        (taken, ghosts)
    }

    /// I12: is something held on a provider of which it says that it has less than is taken there?
    /// Where it does not report grants, its pods may all be inside them.
    pub(super) fn owes_more_than_it_has(&self, provider: &ClusterId, advert: &Advert) -> bool {
        let held = self.held(provider);
        let taken = if advert.reports {
            self.taken(provider, advert).0
        } else {
            larger(held, advert.allocated)
        };
        exceeds(held, taken, advert.allocatable)
    }

    /// About what a provider has left, for requests at the edge.
    pub(crate) fn room(&self, provider: &ClusterId) -> Option<Resources> {
        let advert = self.adverts.iter().rev().find(|advert| advert.cluster == *provider)?;
        let (taken, _) = self.taken(provider, advert);
        let [cpu, memory, ..] = less(advert.allocatable, taken);
        Some(Resources::new(u64::try_from(cpu).ok()?, u64::try_from(memory).ok()?))
    }
}
