//! Who is shut out, at hand for every request and every open stream.
//!
//! The engine shows what was committed before it answers the operator whose command it was, so a
//! revocation that was acknowledged holds, also on connections and streams that were open before.

use tokio::sync::watch;

use crate::engine::Revoked;
use crate::identity::Identity;

/// Who is shut out.
#[derive(Clone)]
pub struct Shut(watch::Receiver<Revoked>);

impl Shut {
    /// As the engine shows it.
    pub fn new(revoked: watch::Receiver<Revoked>) -> Self {
        Self(revoked)
    }

    /// Is this certificate, or its cluster, no longer believed?
    pub fn covers(&self, identity: &Identity) -> bool {
        is_in(&self.0.borrow(), identity)
    }

    /// Waits until it covers `identity`, or until the engine ends.
    pub async fn until_covers(&self, identity: &Identity) {
        let mut changes = self.0.clone();
        // Without an engine there is nothing to be told any more either.
        drop(changes.wait_for(|revoked| is_in(revoked, identity)).await);
    }

    /// Waits until there is nobody left to say who is shut out.
    pub async fn until_engine_ends(&self) {
        let mut changes = self.0.clone();
        while changes.changed().await.is_ok() {}
    }
}

fn is_in(revoked: &Revoked, identity: &Identity) -> bool {
    !revoked.is_empty() && identity.subjects().any(|subject| revoked.contains_key(&subject))
}
