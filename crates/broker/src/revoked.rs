//! What is no longer believed, at hand for every request and every open stream.
//!
//! The truth is the ledger; this is a copy of one small map of it, taken at the start, after every
//! operator's command that went through this process, and every second for those of others. An
//! operator's command is answered only after the copy was taken, so a revocation that was
//! acknowledged holds, also on connections and streams that were open before.

use std::collections::BTreeSet;
use std::sync::Arc;

use sublet_core::event::Subject;
use tokio::sync::watch;

use crate::engine::{Failure, Handle};
use crate::identity::Identity;

/// The copy, and the way to be told when it changes.
#[derive(Clone)]
pub struct Revoked {
    subjects: watch::Sender<Arc<BTreeSet<Subject>>>,
}

impl Revoked {
    /// Nothing is revoked yet; [`Revoked::refresh`] says what is.
    pub fn new() -> Self {
        Self { subjects: watch::channel(Arc::default()).0 }
    }

    /// Copies from the ledger.
    pub async fn refresh(&self, engine: &Handle) -> Result<(), Failure> {
        let look = engine
            .look(|books, _| books.ledger().revoked().keys().cloned().collect::<BTreeSet<_>>())?;
        let now = look.await.map_err(|_| Failure::Unavailable)?;
        self.subjects.send_if_modified(|subjects| {
            let changed = **subjects != now;
            if changed {
                *subjects = Arc::new(now);
            }
            changed
        });
        Ok(())
    }

    /// Is this certificate, or its cluster, no longer believed?
    pub fn covers(&self, identity: &Identity) -> bool {
        let subjects = self.subjects.borrow();
        !subjects.is_empty() && identity.subjects().any(|subject| subjects.contains(&subject))
    }

    /// Waits until it covers `identity`.
    pub async fn until_covers(&self, identity: &Identity) {
        let mut changes = self.subjects.subscribe();
        // The sender lives as long as we do, so this ends only when it is covered.
        let covered = changes
            .wait_for(|subjects| identity.subjects().any(|subject| subjects.contains(&subject)));
        drop(covered.await);
    }
}

impl Default for Revoked {
    fn default() -> Self {
        Self::new()
    }
}
