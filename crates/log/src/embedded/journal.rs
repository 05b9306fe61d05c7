//! How long `SQLite`'s journal is at most, and how much of it was copied into the database.
//!
//! Counted apart from the writer: whoever copies is in no hurry and may have to wait for a processor,
//! and an append that waits for the writer must not wait for that as well.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Options;

/// What a commit writes beyond its data: about two pages.
const COMMIT_OVERHEAD_BYTES: usize = 8 * 1024;

/// Of a checkpoint that is about to be ended, what is left to copy while an append waits: so much
/// that it hardly notices.
const LITTLE_BYTES: usize = 128 * 1024;

/// The journal since the last checkpoint. One thread writes to it, and one copies it.
#[derive(Debug)]
pub(super) struct Journal {
    options: Options,
    /// By earlier processes too: a broker that is started often would never make a checkpoint
    /// otherwise, and every start reads the journal.
    bytes: AtomicUsize,
    /// How many of these were copied beside the appends.
    copied: AtomicUsize,
    /// The next commit is to end the checkpoint.
    ends: AtomicBool,
    /// Nothing is written any more, so nothing is copied either: after a sync that failed, another one
    /// would only seem to succeed.
    failed: AtomicBool,
}

impl Journal {
    pub(super) fn new(options: Options, bytes: usize) -> Self {
        let (copied, ends, failed) = <(AtomicUsize, AtomicBool, AtomicBool)>::default();
        Self { options, bytes: AtomicUsize::new(bytes), copied, ends, failed }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// A commit of so many bytes was written.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes.saturating_add(COMMIT_OVERHEAD_BYTES), Ordering::AcqRel);
    }

    /// A write or a sync failed.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// It begins anew.
    pub(super) fn clear(&self) {
        self.bytes.store(0, Ordering::Release);
        self.copied.store(0, Ordering::Release);
    }

    /// Is the commit that is about to be made to end the checkpoint first?
    pub(super) fn take_end(&self) -> bool {
        self.ends.swap(false, Ordering::AcqRel)
    }

    /// Its length, if it is long, and so much of it is not copied yet that it is worth while.
    pub(super) fn wants_copy(&self) -> Option<usize> {
        if self.failed.load(Ordering::Acquire) {
            return None;
        }
        let bytes = self.bytes();
        let left = bytes.saturating_sub(self.copied.load(Ordering::Acquire));
        let enough = LITTLE_BYTES.min(self.options.checkpoint_bytes).max(1);
        (self.is_long() && left >= enough).then_some(bytes)
    }

    /// All of it was copied when it had that length. Where it began anew meanwhile, somewhat less is
    /// copied beside the appends, and the end of the checkpoint has to copy more.
    pub(super) fn copied(&self, bytes: usize) {
        self.copied.store(bytes, Ordering::Release);
    }

    /// Lets the next commit end the checkpoint if the journal is long enough; little of that is left
    /// to do. It is not ended by whoever copies, because appends would wait for it.
    pub(super) fn end_soon(&self) {
        if self.is_long() {
            self.ends.store(true, Ordering::Release);
        }
    }

    fn is_long(&self) -> bool {
        self.bytes() >= self.options.checkpoint_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options =
        Options { checkpoint_bytes: 1_000_000, overdue_bytes: usize::MAX, room_bytes: 0 };

    #[test]
    fn it_is_copied_once_it_is_long_until_little_is_left_and_ended_by_a_commit() {
        let journal = Journal::new(OPTIONS, 500_000);
        journal.end_soon();
        assert_eq!((journal.wants_copy(), journal.take_end()), (None, false), "not long yet");
        journal.add(500_000);
        let first = journal.bytes();
        assert_eq!(journal.wants_copy(), Some(first));
        journal.copied(first);
        assert_eq!(journal.wants_copy(), None, "nothing is left");
        journal.add(LITTLE_BYTES);
        assert_eq!(journal.wants_copy(), Some(journal.bytes()), "as little as can be is left");
        journal.end_soon();
        assert_eq!([journal.take_end(), journal.take_end()], [true, false], "by one commit");
        journal.clear();
        assert_eq!((journal.bytes(), journal.wants_copy()), (0, None));
    }

    #[test]
    fn nothing_is_copied_after_a_failure() {
        let journal = Journal::new(OPTIONS, 2_000_000);
        assert!(journal.wants_copy().is_some());
        journal.fail();
        assert_eq!(journal.wants_copy(), None);
    }
}
