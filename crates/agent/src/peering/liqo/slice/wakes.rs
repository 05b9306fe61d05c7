//! Which reservations are to be looked at again, and when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sublet_core::instruction::Side;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::peering::Change;

/// More than so many at once are everything.
const WAKES_MAX: usize = 4096;
/// The first pause before something that is going is looked at again; each is twice the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSES_MAX: u32 = 3;

type Name = (Side, String);

#[derive(Debug, Default)]
struct Due {
    at: BTreeMap<Name, Instant>,
    /// How often what is going has been looked at.
    looks: BTreeMap<Name, u32>,
    everything: bool,
}

/// What is to be looked at again.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    due: Mutex<Due>,
    news: Notify,
}

impl Wakes {
    /// Now.
    pub(super) fn now(&self, side: Side, name: &str) {
        self.at((side, name.to_owned()), Instant::now());
    }

    /// Everything, now.
    pub(super) fn everything(&self) {
        self.lock().everything = true;
        self.news.notify_one();
    }

    /// It is going, and not everything on the way there can be watched: soon, and later each time.
    pub(crate) fn soon(&self, side: Side, name: &str) {
        let key = (side, name.to_owned());
        let looks = {
            let mut due = self.lock();
            let looks = due.looks.entry(key.clone()).or_default();
            *looks = looks.saturating_add(1);
            looks.saturating_sub(1).min(PAUSES_MAX)
        };
        self.at(key, Instant::now() + PAUSE_FIRST * (1 << looks));
    }

    /// It is gone, or stays.
    pub(crate) fn settled(&self, side: Side, name: &str) {
        self.lock().looks.remove(&(side, name.to_owned()));
    }

    fn at(&self, key: Name, when: Instant) {
        let mut due = self.lock();
        if due.at.len() >= WAKES_MAX {
            due.everything = true;
        } else {
            let known = due.at.entry(key).or_insert(when);
            *known = when.min(*known);
        }
        drop(due);
        self.news.notify_one();
    }

    /// What is to be looked at next. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&self) -> Change {
        loop {
            let next = match self.take(Instant::now()) {
                Ok(change) => return change,
                Err(next) => next,
            };
            match next {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.news.notified() => {}
                },
                None => self.news.notified().await,
            }
        }
    }

    /// What is due; or when something will be.
    fn take(&self, now: Instant) -> Result<Change, Option<Instant>> {
        let mut due = self.lock();
        if std::mem::take(&mut due.everything) {
            due.at.clear();
            return Ok(Change::Everything);
        }
        let first = due.at.iter().min_by_key(|(_, at)| **at);
        let Some((name, at)) = first.map(|(name, at)| (name.clone(), *at)) else {
            return Err(None);
        };
        if at > now {
            return Err(Some(at));
        }
        due.at.remove(&name);
        let (side, reservation) = name;
        Ok(Change::One(side, reservation))
    }

    fn lock(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: Side = Side::Provider;

    #[test]
    fn each_is_told_once_and_what_is_going_later_each_time() {
        let (wakes, now) = (Wakes::default(), Instant::now());
        assert_eq!(wakes.take(now), Err(None));
        wakes.now(SIDE, "a");
        wakes.now(SIDE, "a");
        let later = Instant::now();
        assert_eq!(wakes.take(later), Ok(Change::One(SIDE, "a".to_owned())));
        assert_eq!(wakes.take(later), Err(None));
        for pause in [250, 500, 1000, 2000, 2000, 2000].map(Duration::from_millis) {
            let before = Instant::now();
            wakes.soon(SIDE, "b");
            let after = Instant::now();
            let Err(Some(at)) = wakes.take(before) else { panic!("it is not due yet") };
            assert!((before + pause..=after + pause).contains(&at), "{pause:?}");
            assert!(wakes.take(at).is_ok());
        }
        wakes.everything();
        wakes.now(SIDE, "a");
        assert_eq!(wakes.take(Instant::now()), Ok(Change::Everything));
        assert_eq!(wakes.take(Instant::now()), Err(None));
    }
}
