//! What there was before, and whether it is so again.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use sublet_testkit::{Api, inventory};

use crate::on_kubernetes::until::until;

/// How long Liqo may take to let go of everything.
const BACK_WITHIN: Duration = Duration::from_secs(40);

/// Two clusters.
pub(super) trait Pair {
    /// The ways to both.
    fn apis(&self) -> [&Api; 2];
}

/// What there was in both clusters.
#[derive(Debug)]
pub(super) struct Snapshot([BTreeSet<String>; 2]);

impl Snapshot {
    pub(super) fn of(pair: &impl Pair) -> Self {
        Self(pair.apis().map(|api| {
            let mut all = inventory(api).unwrap();
            // What is pinned stays, on purpose.
            all.retain(|object| !object.ends_with(" sublet/sublet-liqo-keys"));
            all
        }))
    }

    /// Waits until everything is as it was; says what is not.
    pub(super) async fn is_back(&self, pair: &impl Pair) {
        let differences = Mutex::new(Vec::new());
        let looked = tokio::time::timeout(
            BACK_WITHIN,
            until("as before", || async {
                let now = Self::of(pair);
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
