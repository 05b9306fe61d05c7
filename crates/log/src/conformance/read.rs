//! What `read` and `follow` promise.

use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use sublet_core::id::Revision;

use super::{Case, Site, ensure, fill, same};
use crate::{Cause, Log, Record};

/// Longer than any machine needs; it passes only when something is broken.
const LONG: Duration = Duration::from_secs(5);
/// Short, for the one case that waits in vain.
const SHORT: Duration = Duration::from_millis(20);

pub(super) const CASES: &[Case] = &[
    Case { name: "a read begins where it was told and ends at its limit", check: bounds },
    Case { name: "beyond the head there is nothing to read", check: beyond },
    Case { name: "who follows gets at once what is there", check: follow_ready },
    Case { name: "who follows waits no longer than its patience", check: follow_in_vain },
    Case { name: "who follows is woken by an append", check: follow_woken },
];

fn revisions(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.revision().0).collect()
}

fn bounds(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 9)?;
    same("from 0", revisions(&log.read(Revision(0), 2)?), vec![1, 2])?;
    same("from 1", revisions(&log.read(Revision(1), 2)?), vec![1, 2])?;
    same("from 4", revisions(&log.read(Revision(4), 3)?), vec![4, 5, 6])?;
    same("at the end", revisions(&log.read(Revision(8), 100)?), vec![8, 9])?;
    same("limit 0", revisions(&log.read(Revision(1), 0)?), vec![])
}

fn beyond(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 2)?;
    for from in [3, 4, 1_000_000, u64::MAX] {
        same("records", revisions(&log.read(Revision(from), 5)?), vec![])?;
    }
    Ok(())
}

fn follow_ready(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 3)?;
    let found = log.follow(Revision(2), 10, LONG)?;
    same("records", revisions(&found), vec![2, 3])
}

fn follow_in_vain(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 3)?;
    let found = log.follow(Revision(4), 10, SHORT)?;
    same("records", revisions(&found), vec![])
}

/// In each round the append begins when the follower is about to wait, so that a home which does
/// not wait, or misses the news in between, is found out in one of them.
fn follow_woken(site: &dyn Site) -> Result<(), Cause> {
    const ROUNDS: u64 = 20;
    let log = site.open()?;
    let other = if site.is_shared() { Some(site.open()?) } else { None };
    let followed: &dyn Log = other.as_deref().unwrap_or(&*log);
    let (ready, is_ready) = sync_channel(0);
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let mut seen = Vec::new();
            for round in 1..=ROUNDS {
                ready.send(())?;
                let news = followed.follow(Revision(round), 10, LONG)?;
                ensure(!news.is_empty(), format!("not woken by revision {round}"))?;
                seen.extend(news);
            }
            Ok::<_, Cause>(seen)
        });
        // Taken along, so that the follower does not wait for one who failed.
        let is_ready = is_ready;
        let mut records = Vec::new();
        while is_ready.recv().is_ok() {
            records.extend(fill(&*log, 1)?);
        }
        let seen = waiting.join().map_err(|_| "the follower panicked")??;
        same("records", seen, records)
    })
}
