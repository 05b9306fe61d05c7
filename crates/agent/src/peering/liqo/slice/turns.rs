//! One at a time per reservation: whoever reads what is ordered and writes what follows from it must
//! not be overtaken by whoever takes the same slice back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sublet_core::id::ClusterId;
use tokio::sync::OwnedMutexGuard;

type Key = (ClusterId, String);
type Turn = Arc<tokio::sync::Mutex<()>>;

/// Who is at which reservation.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    known: Arc<Mutex<BTreeMap<Key, Turn>>>,
}

impl Turns {
    /// Waits until nobody else is at it; the next one waits until this is dropped.
    pub(super) async fn take(&self, peer: &ClusterId, reservation: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody is at, or waits for, are forgotten: as many as work are kept.
            known.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(known.entry((peer.clone(), reservation.to_owned())).or_default())
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn one_waits_for_the_other_and_nobody_for_another_reservation() {
        let (turns, peer) = (Turns::default(), "rome".parse().unwrap());
        let first = turns.take(&peer, "a").now_or_never().unwrap();
        assert!(turns.take(&peer, "a").now_or_never().is_none());
        let other = turns.take(&peer, "b").now_or_never().unwrap();
        drop(first);
        let again = turns.take(&peer, "a").now_or_never().unwrap();
        drop((other, again));
        drop(turns.take(&peer, "c").now_or_never().unwrap());
        assert_eq!(turns.known.lock().unwrap().len(), 1);
    }
}
