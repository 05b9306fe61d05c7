//! What a cluster must do, as a stream that can be cut and resumed anywhere without a gap.
//!
//! A stream begins with everything there is to do, or, with a cursor that is young enough, with
//! what changed since; then it brings what each commit changes. It first watches and then looks, so
//! that nothing falls between; what is seen twice is told twice, which is harmless because an
//! instruction says how things are, not what to add. A reader that falls behind is given the whole
//! list again.

use std::fmt;
use std::str::FromStr;

use sublet_core::id::{ClusterId, Revision};
use sublet_core::instruction::{self, Instruction};
use sublet_core::ledger::Ledger;
use sublet_core::time::{Span, Time};
use tokio::sync::mpsc::Receiver;

use crate::engine::{Failure, Handle, News};

/// A position in the stream of one cluster: everything up to this revision was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    revision: Revision,
    /// When that was: an ended reservation is forgotten after a while, so age decides whether a
    /// stream can be resumed.
    time: Time,
}

/// Not a cursor of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor of this broker: leave it away to begin with the whole list")]
pub struct NotACursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.revision, self.time.as_millis())
    }
}

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (revision, time) = text.split_once('.').ok_or(NotACursor)?;
        // Written in one way only: a sign or a leading zero is not ours.
        let number = |text: &str| {
            let number = text.parse::<u64>().map_err(|_| NotACursor)?;
            if number.to_string() == text { Ok(number) } else { Err(NotACursor) }
        };
        Ok(Self { revision: Revision(number(revision)?), time: Time::from_millis(number(time)?) })
    }
}

impl Cursor {
    /// Is everything that changed since still remembered?
    fn can_resume(self, ledger: &Ledger, now: Time, retention: Span) -> bool {
        let restored = ledger.restored().is_some_and(|restored| self.revision < restored);
        // Half of it, so that nothing depends on which of two close moments came first.
        let young = now.since(self.time).as_millis() < retention.as_millis() / 2;
        !restored && young && self.revision <= ledger.stamp().revision
    }
}

/// What a stream brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Resume after this.
    pub cursor: Cursor,
    /// This is everything there is to do: what is not in it is over.
    pub whole: bool,
    /// What to do.
    pub instructions: Vec<Instruction>,
}

/// One reader's stream.
pub struct Stream {
    handle: Handle,
    cluster: ClusterId,
    /// How long ended reservations are remembered.
    retention: Span,
    news: Receiver<News>,
    /// Up to here its reader was told everything by a look: older news would contradict it.
    seen: Revision,
    /// It is watched anew, and its reader was not given the whole list yet.
    behind: bool,
}

impl Stream {
    /// Opens a stream, and says with what it begins.
    pub async fn open(
        handle: Handle,
        cluster: ClusterId,
        after: Option<Cursor>,
        retention: Span,
    ) -> Result<(Self, Part), Failure> {
        let news = handle.watch(cluster.clone())?;
        let seen = Revision::default();
        let mut stream = Self { handle, cluster, retention, news, seen, behind: false };
        let first = stream.look(after).await?;
        stream.seen = first.cursor.revision;
        Ok((stream, first))
    }

    /// What comes next; waits for it. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Result<Part, Failure> {
        if !self.behind {
            while let Some(News { revision, time, instructions }) = self.news.recv().await {
                if revision > self.seen {
                    let cursor = Cursor { revision, time };
                    return Ok(Part { cursor, whole: false, instructions });
                }
            }
            // Too slow, or the engine has ended; then it cannot be watched again either.
            self.news = self.handle.watch(self.cluster.clone())?;
            self.behind = true;
        }
        let whole = self.look(None).await?;
        (self.behind, self.seen) = (false, whole.cursor.revision);
        Ok(whole)
    }

    async fn look(&self, after: Option<Cursor>) -> Result<Part, Failure> {
        let (cluster, retention) = (self.cluster.clone(), self.retention);
        let seen = self.handle.look(move |books, now| {
            let ledger = books.ledger();
            let from = after.filter(|cursor| cursor.can_resume(ledger, now, retention));
            let instructions = match from {
                None => instruction::current(ledger, &cluster).collect(),
                Some(cursor) => {
                    instruction::since(ledger, &cluster, Some(cursor.revision)).collect()
                }
            };
            // The batch in the making may change more under its revision, so only the one before
            // it was told completely.
            let revision = Revision(ledger.stamp().revision.0.saturating_sub(1));
            Part { cursor: Cursor { revision, time: now }, whole: from.is_none(), instructions }
        })?;
        seen.await.map_err(|_| Failure::Unavailable)
    }
}
