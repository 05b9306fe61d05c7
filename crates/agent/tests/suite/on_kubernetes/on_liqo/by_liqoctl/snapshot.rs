//! What there was before, and whether it is so again.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use sublet_testkit::inventory;

use super::world::{World, until};

/// What there was in both clusters.
#[derive(Debug)]
pub(super) struct Snapshot([BTreeSet<String>; 2]);

impl Snapshot {
    pub(super) fn of(world: &World) -> Self {
        Self([&world.rome, &world.milan].map(|town| inventory(&town.api).unwrap()))
    }

    /// Waits until everything is as it was, by name; says what is not.
    pub(super) async fn is_back(&self, world: &World<'_>) {
        let differences = Mutex::new(Vec::new());
        let looked = tokio::time::timeout(
            Duration::from_secs(40),
            until("as before", || async {
                let now = Self::of(world);
                let found = self.0.iter().zip(&now.0).flat_map(|(was, is)| {
                    is.symmetric_difference(was).cloned().collect::<Vec<_>>()
                });
                let found = found.collect::<Vec<_>>();
                differences.lock().unwrap().clone_from(&found);
                found.is_empty().then_some(())
            }),
        );
        let is_back = looked.await.is_ok();
        assert!(is_back, "not as before: {:#?}", differences.lock().unwrap());
    }
}
