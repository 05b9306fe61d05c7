//! What the engine decided although no call asked for it: waiting requests that were granted,
//! expiries, providers given up or found again. Whoever keeps account of decisions is told of each
//! once it is durable, and is never waited for.

use sublet_core::event::Event;
use sublet_core::id::Revision;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most commits that wait to be accounted for.
const COMMITS_MAX: usize = 1024;

/// One such decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The commit that made it durable.
    pub revision: Revision,
    /// What.
    pub event: Event,
}

/// What was decided, as far as somebody has to know: what is merely tidied away is not.
pub(super) fn to_account_for(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| !matches!(event, Event::Forgotten { .. }))
}

/// What is told to whoever keeps account.
#[derive(Debug)]
pub struct Told {
    /// Decisions, in order.
    pub decisions: Vec<Decided>,
    /// So many before these could not be told, because too many were waiting.
    pub left_out: usize,
}

/// The way to whoever keeps account of decisions; nobody, unless somebody asks.
#[derive(Clone, Debug, Default)]
pub struct Account {
    told: Option<Sender<Told>>,
    left_out: usize,
}

impl Account {
    /// For one who listens; what comes ends with the engine.
    pub fn new() -> (Self, Receiver<Told>) {
        let (told, heard) = channel(COMMITS_MAX);
        (Self { told: Some(told), left_out: 0 }, heard)
    }

    pub(super) fn tell(&mut self, decisions: Vec<Decided>) {
        let Some(told) = self.told.as_ref().filter(|_| !decisions.is_empty()) else { return };
        let (count, left_out) = (decisions.len(), self.left_out);
        self.left_out = match told.try_send(Told { decisions, left_out }) {
            Ok(()) => 0,
            Err(_) => left_out.saturating_add(count),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet_core::id::ClusterId;

    #[test]
    fn who_does_not_keep_up_is_not_waited_for_and_is_told_how_many_it_missed() {
        let (mut account, mut heard) = Account::new();
        let cluster: ClusterId = "c1".parse().unwrap();
        let one = || {
            vec![Decided {
                revision: Revision(1),
                event: Event::Returned { cluster: cluster.clone() },
            }]
        };
        for _ in 0..COMMITS_MAX + 3 {
            account.tell(one());
        }
        for _ in 0..COMMITS_MAX {
            assert_eq!(heard.try_recv().unwrap().left_out, 0);
        }
        assert!(heard.try_recv().is_err());
        account.tell(one());
        account.tell(one());
        assert_eq!(heard.try_recv().unwrap().left_out, 3);
        assert_eq!(heard.try_recv().unwrap().left_out, 0);
    }
}
