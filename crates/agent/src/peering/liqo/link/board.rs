//! Where those who need links meet the one who keeps them: who needs which, and how it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::LinkState;
use super::memory::Both;
use super::step::Wish;
use crate::peering::Why;

/// How long somebody waits for the first look at a link.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(5);

/// The board.
#[derive(Default)]
pub(super) struct Board {
    sheet: Mutex<Sheet>,
    /// Something is to be looked at.
    pub(super) poke: Notify,
    /// Something was written for those who wait here.
    told: Notify,
    /// Something changed, for whoever looks after the slices.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct Sheet {
    entries: BTreeMap<(Side, ClusterId), Entry>,
    to_look_at: BTreeSet<ClusterId>,
}

#[derive(Clone, Default)]
struct Entry {
    wish: Wish,
    state: Option<LinkState>,
}

impl Board {
    /// Says whether a link is needed. If that is news, what was known of it counts no more.
    pub(super) fn wish(&self, side: Side, peer: &ClusterId, wish: Wish) {
        let mut sheet = self.sheet();
        let entry = sheet.entries.entry((side, peer.clone())).or_default();
        if entry.wish != wish {
            *entry = Entry { wish, state: None };
            sheet.to_look_at.insert(peer.clone());
            drop(sheet);
            self.poke.notify_one();
        }
    }

    /// How it stands, when it was looked at.
    pub(super) async fn state(&self, side: Side, peer: &ClusterId) -> LinkState {
        let key = (side, peer.clone());
        let looked_at = async {
            loop {
                let told = self.told.notified();
                tokio::pin!(told);
                // From here on nothing is missed.
                told.as_mut().enable();
                let known = self.sheet().entries.get(&key).and_then(|entry| entry.state.clone());
                match known {
                    Some(state) => return state,
                    None => told.await,
                }
            }
        };
        let late = || LinkState::Pending("the link has not been looked at yet".into());
        timeout(FIRST_LOOK_MAX, looked_at).await.unwrap_or_else(|_| late())
    }

    /// What is needed of a peer.
    pub(super) fn wishes(&self, peer: &ClusterId) -> Both<Wish> {
        let sheet = self.sheet();
        let wish = |side| {
            sheet.entries.get(&(side, peer.clone())).map(|entry| entry.wish).unwrap_or_default()
        };
        Both { provider: wish(Side::Provider), requester: wish(Side::Requester) }
    }

    /// What there is to look at, once.
    pub(super) fn take(&self) -> BTreeSet<ClusterId> {
        std::mem::take(&mut self.sheet().to_look_at)
    }

    /// Of what could not be looked at, writes why, unless something is known of it.
    pub(super) fn excuse(&self, peer: &ClusterId, why: &Why) {
        let mut sheet = self.sheet();
        for ((_, of), entry) in &mut sheet.entries {
            if of == peer && entry.state.is_none() {
                entry.state = Some(LinkState::Pending(why.clone()));
            }
        }
        drop(sheet);
        self.told.notify_waiters();
    }

    /// Writes how it stands; returns what is news. What was looked at while something else was needed
    /// is not written.
    pub(super) fn write(
        &self,
        peer: &ClusterId,
        looked_at: &Both<Wish>,
        states: Both<Option<LinkState>>,
    ) -> Vec<(Side, LinkState)> {
        let mut news = Vec::new();
        let mut sheet = self.sheet();
        for (side, state) in
            [(Side::Provider, states.provider), (Side::Requester, states.requester)]
        {
            let (Some(state), Some(entry)) = (state, sheet.entries.get_mut(&(side, peer.clone())))
            else {
                continue;
            };
            if entry.wish == *looked_at.of(side) && entry.state.as_ref() != Some(&state) {
                if entry.wish == Wish::Wanted {
                    news.push((side, state.clone()));
                }
                entry.state = Some(state);
            }
        }
        drop(sheet);
        self.told.notify_waiters();
        if !news.is_empty() {
            self.changed.notify_one();
        }
        news
    }

    /// Forgets what nobody needs.
    pub(super) fn forget(&self, peer: &ClusterId) {
        let unneeded = |wish: Wish| wish != Wish::Wanted;
        self.sheet().entries.retain(|(_, of), entry| of != peer || !unneeded(entry.wish));
    }

    /// How many links that are needed are ready, pending and failed.
    pub(super) fn count(&self, side: Side) -> [usize; 3] {
        let sheet = self.sheet();
        let wanted =
            sheet.entries.iter().filter(|(key, entry)| key.0 == side && entry.wish == Wish::Wanted);
        wanted.fold([0; 3], |[ready, pending, failed], (_, entry)| match entry.state {
            Some(LinkState::Ready) => [ready + 1, pending, failed],
            Some(LinkState::Failed(_)) => [ready, pending, failed + 1],
            _ => [ready, pending + 1, failed],
        })
    }

    fn sheet(&self) -> MutexGuard<'_, Sheet> {
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
