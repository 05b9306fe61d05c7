//! What cannot be listed, and why: then the cluster cannot be measured, and people are to know.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A list that breaks off is begun again at once; only what lasts longer is worth a word.
const PATIENCE: Duration = Duration::from_secs(5);

/// An API server that is started again is back by then; whoever sees nothing for longer has figures that
/// are too old to lend by.
const TOO_LONG: Duration = Duration::from_secs(20);

/// What cannot be listed.
#[derive(Clone, Debug, Default)]
pub struct Blind(Arc<Mutex<BTreeMap<&'static str, Trouble>>>);

#[derive(Debug)]
struct Trouble {
    since: Instant,
    why: String,
}

impl Blind {
    /// It could not be listed. Says whether it could before.
    pub(super) fn note(&self, what: &'static str, why: String, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = all.get(what).map(|known| known.since);
        all.insert(what, Trouble { since: since.unwrap_or(now), why });
        since.is_none()
    }

    /// It was listed.
    pub(super) fn clear(&self, what: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(what);
    }

    /// Was something not listed for so long that what is known of the cluster is too old to lend by?
    pub fn is_too_long(&self, now: Instant) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().any(|one| now.duration_since(one.since) >= TOO_LONG)
    }

    /// What cannot be listed for longer than a moment, and why; none if everything can.
    pub fn why(&self, now: Instant) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lasting = all.iter().filter(|(_, one)| now.duration_since(one.since) >= PATIENCE);
        let words: Vec<_> = lasting.map(|(what, one)| format!("{what}: {}", one.why)).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_listed_is_said_when_it_lasts_and_until_it_is_listed() {
        let (blind, start) = (Blind::default(), Instant::now());
        assert!(blind.note("pods", "forbidden".to_owned(), start));
        assert_eq!(blind.why(start), None, "that may be over at once");
        assert!(!blind.note("pods", "still forbidden".to_owned(), start + PATIENCE));
        blind.note("nodes", "forbidden".to_owned(), start + PATIENCE);
        assert_eq!(blind.why(start + PATIENCE).as_deref(), Some("pods: still forbidden"));
        let both = "nodes: forbidden; pods: still forbidden";
        assert_eq!(blind.why(start + PATIENCE * 2).as_deref(), Some(both));
        assert!(!blind.is_too_long(start + PATIENCE * 2) && blind.is_too_long(start + TOO_LONG));
        blind.clear("pods");
        blind.clear("nodes");
        assert_eq!(blind.why(start + PATIENCE * 9), None);
        assert!(!blind.is_too_long(start + TOO_LONG));
    }
}
