//! Does the ledger say the same as the model?

use std::collections::BTreeSet;

use super::{KeyUse, Model, Stage, Story, amount, kinds};
use sublet_core::books::Books;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{self, Side};
use sublet_core::ledger::Bond;
use sublet_core::reservation::Phase;
use sublet_core::resources::Resources;

impl Model {
    pub(crate) fn compare(&mut self, books: &Books) {
        self.compare_reservations(books);
        for cluster in self.heard.keys().cloned().collect::<Vec<_>>() {
            self.compare_provider(books, &cluster);
        }
        for ((cluster, key), bound) in self.keys.clone() {
            let kept = books.ledger().bond(&cluster, &key);
            let same = match bound {
                KeyUse::Reservation(id) => kept == Some(Bond::Reservation(id)),
                KeyUse::Tombstone(at) => kept == Some(Bond::Tombstone(at)),
            };
            self.expect(same, "I5", || format!("key {key} of {cluster}: {bound:?}, {kept:?}"));
        }
    }

    fn compare_reservations(&mut self, books: &Books) {
        let ledger = books.ledger();
        let known: Vec<_> = ledger.reservations(None).map(|r| r.id).collect();
        let mine: Vec<_> = self.stories.keys().copied().collect();
        self.expect(known == mine, "I20", || format!("ledger has {known:?}, model {mine:?}"));
        for (id, story) in self.stories.clone() {
            let Some(kept) = ledger.reservation(id) else { continue };
            let same = match kept.phase() {
                Phase::Pending => story.stage == Stage::Waiting,
                Phase::Reserved => story.stage == Stage::Held,
                Phase::Active => story.stage == Stage::InUse,
                Phase::Releasing => story.stage == Stage::TakingDown,
                Phase::Released | Phase::Failed => story.stage == Stage::Over,
            };
            self.expect(same, "I6", || format!("{id} is {} there, {story:?}", kept.phase()));
            let held = kept.holding().map(|grant| grant.held.clone()).unwrap_or_default();
            let mine = if story.stage.holds() { story.held.clone() } else { Resources::default() };
            self.expect(held == mine, "I2", || format!("{id} holds {held:?}, not {mine:?}"));
        }
    }

    fn compare_provider(&mut self, books: &Books, cluster: &ClusterId) {
        let held = books.held(cluster);
        let room = books.room(cluster);
        let stories = self.stories.values().map(|story| &story.held);
        let named = kinds(stories.chain([&held, &room, &self.heard[cluster].says.allocatable]));
        for kind in named {
            let mine = self.held_on(cluster, &kind);
            let theirs = amount(&held, &kind);
            self.expect(mine == theirs, "I2", || format!("{cluster} {kind}: {theirs}, not {mine}"));
            let account = (cluster.clone(), kind.clone());
            let taken = self.taken.get(&account).copied().unwrap_or(0);
            let balance = taken - self.returned.get(&account).copied().unwrap_or(0);
            self.expect(balance == mine, "I21", || format!("{account:?}: {balance}, not {mine}"));
            let mine = self.room(cluster, &kind);
            let theirs = amount(&room, &kind);
            self.expect(mine == theirs, "I1", || {
                format!("room of {cluster} for {kind}: {theirs}, not {mine}")
            });
        }
        let (mine, theirs) = (self.is_overcommitted(cluster), books.is_overcommitted(cluster));
        self.expect(mine == theirs, "I12", || format!("{cluster} flagged {theirs}, not {mine}"));
        let told = instruction::current(books.ledger(), cluster);
        let told = told.filter(|duty| duty.side == Side::Provider);
        let told: BTreeSet<_> = told.map(|duty| (duty.reservation, duty.generation.0)).collect();
        let on = |s: &Story| s.stage.holds() && s.provider.as_ref() == Some(cluster);
        let due = self.stories.iter().filter(|(_, story)| on(story));
        let due: BTreeSet<_> = due.map(|(id, story)| (*id, story.generation)).collect();
        self.expect(told == due, "I9", || format!("{cluster} is told {told:?}, not {due:?}"));
    }
}
