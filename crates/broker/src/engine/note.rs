//! What is kept of the market across a restart: soft notes beside the log.
//!
//! Which clusters there are, and what they said last, is not in the log: it changes all the time
//! and nothing was promised on it. It is noted every few seconds all the same, so that a broker that
//! comes back knows whom to expect, and can tell a request "only a cluster that is overdue could
//! lend this" from "nobody can". Clusters are spread over a fixed number of notes by a hash of their
//! name, and only notes with news are written. A note that cannot be read is as good as none.

use std::collections::BTreeMap;

use sublet_core::id::ClusterId;
use sublet_core::market::Entry;
use sublet_log::{Checksum, Log, NOTE_BYTES_MAX};

/// The market is spread over 256 notes: each of 100 000 clusters' share stays below the limit.
const LAST: u8 = 255;

/// Everything that was noted.
pub(super) fn load(log: &dyn Log) -> Vec<Entry> {
    (0..=LAST).flat_map(|number| read(log, &name(number))).collect()
}

/// Notes what is known of these clusters now, beside what was noted of others.
pub(super) fn keep(log: &dyn Log, entries: Vec<Entry>) {
    let mut notes: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for entry in entries.into_iter().map(Entry::to_be_noted) {
        notes.entry(name(number(&entry.advertisement.cluster))).or_default().push(entry);
    }
    for (name, news) in notes {
        let known = read(log, &name).into_iter().chain(news);
        let mut merged: BTreeMap<ClusterId, Entry> = BTreeMap::new();
        for entry in known {
            let cluster = entry.advertisement.cluster.clone();
            let older = |kept: &Entry| kept.received_at <= entry.received_at;
            if merged.get(&cluster).is_none_or(older) {
                merged.insert(cluster, entry);
            }
        }
        // Too much to keep, or a disk that fails: the note stays as it was, and nothing depends on it.
        if let Ok(bytes) = serde_json::to_vec(&merged.values().collect::<Vec<_>>())
            && bytes.len() <= NOTE_BYTES_MAX
        {
            drop(log.put_note(&name, &bytes));
        }
    }
}

fn read(log: &dyn Log, name: &str) -> Vec<Entry> {
    let bytes = log.note(name).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn number(cluster: &ClusterId) -> u8 {
    let [first, ..] = Checksum::of(cluster.as_str().as_bytes()).to_bytes();
    first
}

fn name(number: u8) -> String {
    format!("market-{number:02x}")
}
