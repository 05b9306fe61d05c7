//! Whoever wants to know at once what changed for a cluster.
//!
//! Owned by the planning thread, which hands over what a commit changed; nothing here waits. Each
//! watcher has a short queue. One that does not keep up is let go, and sees its queue end: it asks
//! anew, and begins with a list. So nobody is ever shown a gap, and a slow reader costs a bounded
//! amount of memory.

use std::collections::HashMap;
use std::sync::Arc;

use sublet_core::id::{ClusterId, Revision};
use sublet_core::instruction::Instruction;
use sublet_core::reservation::Reservation;
use sublet_core::time::Time;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most news that wait for one watcher.
const NEWS_MAX: usize = 64;
/// The most watchers of one cluster: its agent, the one it replaces, and a few people.
const WATCHERS_MAX: usize = 16;

/// What one commit changed for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The commit.
    pub revision: Revision,
    /// Its time.
    pub time: Time,
    /// What the cluster must do now.
    pub instructions: Vec<Instruction>,
}

/// What is to be added.
pub struct Watcher {
    cluster: ClusterId,
    sender: Sender<News>,
}

impl Watcher {
    /// One who watches a cluster, and where the news come.
    pub fn new(cluster: ClusterId) -> (Self, Receiver<News>) {
        let (sender, news) = channel(NEWS_MAX);
        (Self { cluster, sender }, news)
    }
}

/// How many clusters there are at least before those whose watchers have all gone are looked for.
const CLUSTERS_FEW: usize = 64;

/// All watchers.
#[derive(Default)]
pub struct Watchers {
    by_cluster: HashMap<ClusterId, Vec<Sender<News>>>,
    /// So many clusters had watchers when it was last looked which of them are left.
    left: usize,
}

impl Watchers {
    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.by_cluster.is_empty()
    }

    /// Adds one; where there are too many of a cluster, the oldest has to go.
    pub fn add(&mut self, Watcher { cluster, sender }: Watcher) {
        self.forget_those_that_went();
        let all = self.by_cluster.entry(cluster).or_default();
        all.retain(|sender| !sender.is_closed());
        if all.len() >= WATCHERS_MAX {
            all.remove(0);
        }
        all.push(sender);
    }

    /// A cluster that has no news is not noticed to have gone; so all are looked at now and then, when
    /// there are twice as many as were left the last time.
    fn forget_those_that_went(&mut self) {
        if self.by_cluster.len() < CLUSTERS_FEW.max(self.left.saturating_mul(2)) {
            return;
        }
        self.by_cluster.retain(|_, all| {
            all.retain(|sender| !sender.is_closed());
            !all.is_empty()
        });
        self.left = self.by_cluster.len();
    }

    /// Tells everybody whom these reservations concern.
    pub fn tell(&mut self, revision: Revision, time: Time, changed: &[Arc<Reservation>]) {
        let mut news: HashMap<&ClusterId, Vec<Instruction>> = HashMap::new();
        for reservation in changed {
            for cluster in
                reservation.sides().filter(|cluster| self.by_cluster.contains_key(*cluster))
            {
                news.entry(cluster).or_default().extend(Instruction::of(reservation, cluster));
            }
        }
        for (cluster, instructions) in news {
            let news = News { revision, time, instructions };
            let Some(all) = self.by_cluster.get_mut(cluster) else { continue };
            all.retain(|sender| sender.try_send(news.clone()).is_ok());
            if all.is_empty() {
                self.by_cluster.remove(cluster);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_whose_watchers_have_gone_are_forgotten_also_without_news() {
        let mut watchers = Watchers::default();
        let mut stays = Vec::new();
        for number in 0..1000 {
            let (watcher, news) = Watcher::new(format!("c{number}").parse().unwrap());
            watchers.add(watcher);
            stays.extend((number % 10 == 0).then_some(news));
        }
        assert_eq!(stays.len(), 100);
        assert!((100..=200).contains(&watchers.by_cluster.len()), "{}", watchers.by_cluster.len());
        assert!(stays.iter_mut().all(|news| !news.is_closed()));
    }
}
