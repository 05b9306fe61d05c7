//! What each event means, in the model's own words. It takes everything in, right or wrong.

use super::{Event, KeyUse, Model, ReservationId, Resources, Stage, Stamp, Story, Subject, kinds};
use sublet_core::reservation::{Actor, Ask, Confirmation};

impl Model {
    pub(super) fn fold(&mut self, at: Stamp, event: &Event) {
        match event {
            Event::Requested { id, requester, key, ask, priority, until } => {
                self.keys.insert((requester.clone(), key.clone()), KeyUse::Reservation(*id));
                let mut story = Story::new(requester.clone(), ask.clone());
                (story.key, story.priority) = (Some(key.clone()), *priority);
                (story.asked, story.patience) = (self.asked, *until);
                self.asked += 1;
                self.stories.insert(*id, story);
            }
            Event::Adopted { id, requester, provider, amounts, generation, expires_at } => {
                let ask = Ask { resources: amounts.clone(), ..Ask::default() };
                let known = self.stories.entry(*id);
                let story = known.or_insert_with(|| Story::new(requester.clone(), ask));
                let held =
                    if story.stage.holds() { story.held.max(amounts) } else { amounts.clone() };
                story.provider = Some(provider.clone());
                (story.stage, story.told) = (Stage::InUse, amounts.clone());
                (story.generation, story.confirmed) = (generation.0, 0);
                (story.expires, story.provider_confirms) = (*expires_at, true);
                self.hold(*id, held);
            }
            Event::KeyReleased { requester, key } => {
                self.keys.insert((requester.clone(), key.clone()), KeyUse::Tombstone(at.time));
            }
            Event::Forgotten { reservations, tombstones } => {
                for story in reservations.iter().filter_map(|id| self.stories.remove(id)) {
                    self.keys.retain(|(who, key), _| {
                        *who != story.requester || Some(key) != story.key.as_ref()
                    });
                }
                self.keys.retain(|name, _| !tombstones.contains(name));
            }
            _ => match event.reservation() {
                Some(id) if self.stories.contains_key(&id) => self.fold_life(at, id, event),
                _ => self.fold_operation(at, event),
            },
        }
    }

    fn fold_life(&mut self, at: Stamp, id: ReservationId, event: &Event) {
        let Some(story) = self.stories.get_mut(&id) else { return };
        match event {
            Event::Granted { provider, amounts, expires_at, activate_by, confirms, .. } => {
                (story.provider, story.stage) = (Some(provider.clone()), Stage::Held);
                (story.told, story.generation) = (amounts.clone(), 1);
                (story.expires, story.activate_by) = (*expires_at, *activate_by);
                story.provider_confirms = *confirms;
                self.hold(id, amounts.clone());
            }
            Event::Activated { .. } => story.stage = Stage::InUse,
            Event::Renewed { expires_at, .. } => {
                (story.expires, story.generation) = (*expires_at, story.generation + 1);
            }
            Event::Resized { amounts, .. } => {
                (story.told, story.generation) = (amounts.clone(), story.generation + 1);
                // Growth is held first; a shrink waits for the provider's word.
                let held = story.held.max(amounts);
                self.hold(id, held);
            }
            Event::Acknowledged { generation, .. } => {
                story.confirmed = generation.0;
                if generation.0 == story.generation && story.stage != Stage::TakingDown {
                    let told = story.told.clone();
                    self.hold(id, told);
                }
            }
            Event::Ending { .. } => {
                (story.stage, story.generation) = (Stage::TakingDown, story.generation + 1);
            }
            Event::Ended { confirmation, .. } => {
                (story.stage, story.over_at) = (Stage::Over, at.time);
                story.confirmed_gone = *confirmation == Confirmation::Confirmed;
                self.hold(id, Resources::default());
            }
            _ => {}
        }
    }

    fn fold_operation(&mut self, at: Stamp, event: &Event) {
        let set = |all: &mut std::collections::BTreeSet<_>, one: &_, is: bool| {
            if is {
                all.insert(Clone::clone(one))
            } else {
                all.remove(one)
            };
        };
        match event {
            Event::Cordoned { cluster, .. } => set(&mut self.cordoned, cluster, true),
            Event::Uncordoned { cluster, .. } => set(&mut self.cordoned, cluster, false),
            Event::Lost { cluster, .. } => set(&mut self.lost, cluster, true),
            Event::Returned { cluster } => set(&mut self.lost, cluster, false),
            Event::Revoked { subject: Subject::Cluster(c), .. } => set(&mut self.revoked, c, true),
            Event::Reinstated { subject: Subject::Cluster(c), .. } => {
                set(&mut self.revoked, c, false);
            }
            Event::Capped { cluster, limits, .. } => {
                self.caps.insert(cluster.clone(), limits.clone());
            }
            Event::Restored { .. } => {
                (self.restored, self.heard_from) = (true, at.time);
                self.stories.values_mut().for_each(|story| story.doubtful = true);
                self.reported.clear();
                self.vouched.clear();
            }
            Event::Reconciled { cluster, note } => {
                let by_itself = note.by == Actor::Cluster(cluster.clone());
                if by_itself || !self.reported.contains(cluster) {
                    set(&mut self.vouched, cluster, self.restored && !by_itself);
                }
                set(&mut self.reported, cluster, true);
            }
            _ => {}
        }
    }

    /// Writes down twice what is taken or comes back.
    fn hold(&mut self, id: ReservationId, new: Resources) {
        let Some(story) = self.stories.get_mut(&id) else { return };
        let Some(provider) = story.provider.clone() else { return };
        let old = std::mem::replace(&mut story.held, new.clone());
        for kind in kinds([&old, &new]) {
            let change = super::amount(&new, &kind) - super::amount(&old, &kind);
            let book = if change > 0 { &mut self.taken } else { &mut self.returned };
            *book.entry((provider.clone(), kind)).or_default() += change.abs();
        }
    }
}

impl Story {
    fn new(requester: sublet_core::id::ClusterId, ask: Ask) -> Self {
        Self {
            requester,
            provider: None,
            key: None,
            ask,
            priority: 0,
            asked: 0,
            stage: Stage::Waiting,
            patience: sublet_core::time::Time::default(),
            doubtful: false,
            told: Resources::default(),
            held: Resources::default(),
            generation: 0,
            confirmed: 0,
            expires: None,
            activate_by: None,
            provider_confirms: false,
            over_at: sublet_core::time::Time::default(),
            confirmed_gone: false,
        }
    }
}
