//! What agents tell each other: kept for a little while, in memory alone, and handed to whoever reads
//! the receiver's stream.
//!
//! The broker understands nothing of it and remembers nothing of it: a message is never in the log, a
//! restart loses all of them, and whoever wants an answer sends again. There is one message of a
//! sender, a receiver and a slot; a newer one replaces it. Every reader takes them one by one when it
//! is ready for the next, in the order in which they came: one that is slow holds nothing.
//!
//! When there is no room at all, the oldest of whoever has most goes for one of somebody who has less:
//! a few clusters that fill everything keep nobody else from being heard.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sublet_core::id::ClusterId;
use sublet_wire::v1::{Message, Posted};
use tokio::sync::watch;

use crate::Error;
use crate::http::App;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::metrics::Metrics;

/// How often it is looked whether something has had its time. What has is not shown in any case.
const FORGET_EVERY: Duration = Duration::from_secs(5);
/// What a message costs beside what it says.
const OVERHEAD: usize = 512;
/// A place is free when something is taken or forgotten.
const RETRY_AFTER: u32 = 5;

/// There is no place for one more message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{which}, which is the most: try again in {retry_after} s")]
pub struct Full {
    which: String,
    /// After so many seconds another try makes sense.
    pub retry_after: u32,
}

fn full(which: String) -> Full {
    Full { which, retry_after: RETRY_AFTER }
}

/// How many there are, and how long they are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weight {
    messages: usize,
    bytes: usize,
}

impl Weight {
    fn of(posted: &Posted) -> Self {
        Self { messages: 1, bytes: posted.content.len() + posted.slot.len() + OVERHEAD }
    }

    fn plus(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    fn minus(self, other: Self) -> Self {
        let messages = self.messages.saturating_sub(other.messages);
        Self { messages, bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// One message that is kept.
struct Kept {
    sender: Arc<Identity>,
    from: ClusterId,
    posted: Posted,
    until: Duration,
}

/// What is kept for one cluster.
struct Inbox {
    /// In the order in which they came.
    kept: BTreeMap<u64, Kept>,
    slots: BTreeMap<(ClusterId, String), u64>,
    /// The number of the newest.
    newest: watch::Sender<u64>,
}

impl Inbox {
    fn of_sender(&self, from: &ClusterId) -> usize {
        let first = (from.clone(), String::new());
        self.slots.range(first..).take_while(|((sender, _), _)| sender == from).count()
    }
}

/// What is kept of one cluster.
#[derive(Default)]
struct Outbox {
    weight: Weight,
    /// For whom, in the order in which they came.
    sent: BTreeMap<u64, ClusterId>,
}

/// A message that is to go: for whom it is, and its number.
type Old = (ClusterId, u64);

#[derive(Default)]
struct Boxes {
    inboxes: HashMap<ClusterId, Inbox>,
    senders: HashMap<ClusterId, Outbox>,
    all: Weight,
    last: u64,
    /// When each is to be forgotten, and whose it is.
    ends: BTreeMap<(Duration, u64), ClusterId>,
}

/// All messages that are kept.
pub struct Mail {
    boxes: Mutex<Boxes>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

impl Mail {
    /// None.
    pub fn new(limits: Limits, metrics: Arc<Metrics>) -> Self {
        Self { boxes: Mutex::default(), limits, metrics }
    }

    /// Keeps a message of whoever has this certificate, in place of the one before in its slot.
    pub fn put(&self, sender: Arc<Identity>, from: ClusterId, post: Posted, now: Duration) -> Put {
        let mut boxes = self.boxes();
        boxes.forget(now);
        let room = boxes.room_for(&self.limits, &from, &post);
        let taken = room.map(|old| {
            for (to, number) in old {
                boxes.remove(&to, number);
                boxes.close(&to);
            }
            boxes.replace(Kept { sender, from, until: now + life(&post), posted: post });
        });
        self.count(&boxes);
        taken
    }

    /// A reader of what is for this cluster, from the oldest that is kept on.
    pub fn reader(self: &Arc<Self>, cluster: ClusterId) -> Reader {
        let newest = self.boxes().inbox(&cluster).newest.subscribe();
        Reader { mail: Arc::clone(self), cluster, seen: 0, newest }
    }

    fn next(&self, cluster: &ClusterId, after: u64, now: Duration) -> Option<(u64, Delivery)> {
        let boxes = self.boxes();
        let mut rest = boxes.inboxes.get(cluster)?.kept.range(after.saturating_add(1)..);
        let (number, kept) = rest.find(|(_, kept)| kept.until > now)?;
        let message = kept.posted.shown(&kept.from);
        Some((*number, Delivery { sender: Arc::clone(&kept.sender), message }))
    }

    /// Forgets what has had its time.
    fn forget(&self, now: Duration) {
        let mut boxes = self.boxes();
        boxes.forget(now);
        self.count(&boxes);
    }

    fn count(&self, boxes: &Boxes) {
        let show = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.messages.set(show(boxes.all.messages));
        self.metrics.message_bytes.set(show(boxes.all.bytes));
    }

    fn boxes(&self) -> MutexGuard<'_, Boxes> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there was a place.
pub type Put = Result<(), Full>;

fn life(post: &Posted) -> Duration {
    Duration::from_millis(post.ttl.as_millis())
}

impl Boxes {
    fn inbox(&mut self, cluster: &ClusterId) -> &mut Inbox {
        self.inboxes.entry(cluster.clone()).or_insert_with(|| Inbox {
            kept: BTreeMap::new(),
            slots: BTreeMap::new(),
            newest: watch::Sender::new(0),
        })
    }

    /// Is there room, if what is in its slot goes, and what else has to?
    fn room_for(&self, limits: &Limits, from: &ClusterId, post: &Posted) -> Result<Vec<Old>, Full> {
        let inbox = self.inboxes.get(&post.to);
        let slot = (from.clone(), post.slot.clone());
        let old = inbox.and_then(|inbox| inbox.kept.get(inbox.slots.get(&slot)?));
        let old = old.map_or_else(Weight::default, |old| Weight::of(&old.posted));
        let of_pair = inbox.map_or(0, |inbox| inbox.of_sender(from));
        if of_pair + 1 - old.messages > limits.messages_per_pair {
            let to = &post.to;
            return Err(full(format!("{of_pair} messages of this cluster are kept for {to}")));
        }
        let with = |weight: Weight| weight.minus(old).plus(Weight::of(post));
        let own = with(self.senders.get(from).map(|sent| sent.weight).unwrap_or_default());
        if own.messages > limits.messages_per_cluster {
            let count = limits.messages_per_cluster;
            return Err(full(format!("{count} messages of this cluster are kept")));
        }
        if own.bytes > limits.message_bytes_per_cluster {
            let bytes = limits.message_bytes_per_cluster;
            return Err(full(format!("messages of this cluster are kept with {bytes} bytes")));
        }
        let excess = with(self.all).bytes.saturating_sub(limits.message_bytes);
        self.heaviest(excess, from, own.bytes)
            .ok_or_else(|| full("the broker keeps as much for all clusters as it may".to_owned()))
    }

    /// The oldest messages with so many bytes of those who have more than this, the one with most first.
    /// None if that is not enough: then nobody has more than whoever asks.
    fn heaviest(&self, mut excess: usize, than: &ClusterId, bytes: usize) -> Option<Vec<Old>> {
        let mut old = Vec::new();
        if excess == 0 {
            return Some(old);
        }
        let others = self.senders.iter().filter(|(sender, _)| *sender != than);
        let mut heavier: Vec<_> =
            others.map(|(_, sent)| sent).filter(|sent| sent.weight.bytes > bytes).collect();
        heavier.sort_by_key(|sent| std::cmp::Reverse(sent.weight.bytes));
        for outbox in heavier {
            let mut left = outbox.weight.bytes;
            for (number, to) in &outbox.sent {
                if excess == 0 || left <= bytes {
                    break;
                }
                let kept = self.inboxes.get(to).and_then(|inbox| inbox.kept.get(number))?;
                let weight = Weight::of(&kept.posted).bytes;
                (excess, left) = (excess.saturating_sub(weight), left.saturating_sub(weight));
                old.push((to.clone(), *number));
            }
        }
        (excess == 0).then_some(old)
    }

    fn replace(&mut self, kept: Kept) {
        self.last += 1;
        let (number, to) = (self.last, kept.posted.to.clone());
        let slot = (kept.from.clone(), kept.posted.slot.clone());
        if let Some(old) = self.inbox(&to).slots.get(&slot).copied() {
            self.remove(&to, old);
        }
        let weight = Weight::of(&kept.posted);
        self.all = self.all.plus(weight);
        let own = self.senders.entry(kept.from.clone()).or_default();
        own.weight = own.weight.plus(weight);
        own.sent.insert(number, to.clone());
        self.ends.insert((kept.until, number), to.clone());
        let inbox = self.inbox(&to);
        inbox.slots.insert(slot, number);
        inbox.kept.insert(number, kept);
        inbox.newest.send_replace(number);
    }

    fn remove(&mut self, to: &ClusterId, number: u64) {
        let Some(inbox) = self.inboxes.get_mut(to) else { return };
        let Some(Kept { from, posted, until, .. }) = inbox.kept.remove(&number) else { return };
        let weight = Weight::of(&posted);
        self.ends.remove(&(until, number));
        self.all = self.all.minus(weight);
        if let Some(own) = self.senders.get_mut(&from) {
            own.weight = own.weight.minus(weight);
            own.sent.remove(&number);
            if own.sent.is_empty() {
                self.senders.remove(&from);
            }
        }
        inbox.slots.remove(&(from, posted.slot));
    }

    fn forget(&mut self, now: Duration) {
        while let Some(((until, number), to)) = self.ends.first_key_value()
            && *until <= now
        {
            let (number, to) = (*number, to.clone());
            self.remove(&to, number);
            self.close(&to);
        }
    }

    /// An inbox with nothing in it that nobody reads is none.
    fn close(&mut self, cluster: &ClusterId) {
        let is_idle = |inbox: &Inbox| inbox.kept.is_empty() && inbox.newest.is_closed();
        if self.inboxes.get(cluster).is_some_and(is_idle) {
            self.inboxes.remove(cluster);
        }
    }
}

/// A message on its way out.
#[derive(Debug)]
pub struct Delivery {
    /// Whose it is: what somebody sent who is not believed any more is not passed on.
    pub sender: Arc<Identity>,
    /// What it says.
    pub message: Message,
}

/// Somebody who reads what is for a cluster. It may read as slowly as it likes: it holds a number.
pub struct Reader {
    mail: Arc<Mail>,
    cluster: ClusterId,
    seen: u64,
    newest: watch::Receiver<u64>,
}

impl Reader {
    /// The next message, of those that are kept at this time; waits for one. Nothing is lost when the
    /// wait is given up.
    pub async fn next(&mut self, now: impl Fn() -> Duration) -> Delivery {
        loop {
            // Before the look, so that what comes meanwhile is seen.
            self.newest.mark_unchanged();
            if let Some((number, delivery)) = self.mail.next(&self.cluster, self.seen, now()) {
                self.seen = number;
                return delivery;
            }
            if self.newest.changed().await.is_err() {
                // The inbox outlives its readers, so this does not happen.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Its own interest does not count any more.
        self.newest = watch::Sender::new(0).subscribe();
        self.mail.boxes().close(&self.cluster);
    }
}

/// Forgets what has had its time, until the broker stops.
pub(crate) async fn run(app: Arc<App>, mut stopping: watch::Receiver<bool>) -> Result<(), Error> {
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
            () = tokio::time::sleep(FORGET_EVERY) => {}
        }
        app.mail.forget(app.machine.read().monotonic);
    }
}

#[cfg(test)]
mod tests;
