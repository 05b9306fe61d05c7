//! What a cluster must do, as a stream that can be cut and resumed anywhere without a gap.
//!
//! A stream begins with everything there is to do, or, with a cursor since which nothing was
//! forgotten, with what changed since; then it brings what each commit changes. It first watches and then looks, so
//! that nothing falls between; what is seen twice is told twice, which is harmless because an
//! instruction says how things are, not what to add. A reader that falls behind is given the whole
//! list again.
//!
//! After a restore, the broker may have forgotten what a provider holds. Until that one has reported,
//! it is told what is known, but never that this is everything: it would take the rest down.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sublet_core::books::Books;
use sublet_core::bugs::{Bug, planted};
use sublet_core::id::{ClusterId, Revision};
use sublet_core::instruction::{self, Instruction};
use sublet_core::ledger::Ledger;
use sublet_core::time::Time;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Interval, interval};

use crate::engine::{Failure, Handle, News};

/// How often it is looked whether somebody has reported by now.
const REPORTED_EVERY: Duration = Duration::from_secs(1);

/// A position in the stream of one cluster: everything up to this revision was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    revision: Revision,
    /// When that was: another log gives the same numbers to other records, but began at another time.
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
    /// Everything up to here was told.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Is everything that changed since still remembered? How old it is does not tell: the policy may
    /// have said otherwise for how long to remember.
    fn can_resume(self, ledger: &Ledger) -> bool {
        // By time too: the forgotten history had the same revisions, and perhaps more of them.
        let restored =
            ledger.restored().is_some_and(|at| self.revision < at.revision || self.time < at.time);
        let horizon = ledger.horizon();
        let remembered = self.revision >= horizon.revision && self.time >= horizon.time;
        !restored && remembered && self.revision <= ledger.stamp().revision
    }
}

/// What a stream brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Resume after this.
    pub cursor: Cursor,
    /// This is everything there is to do: what is not in it is over.
    pub whole: bool,
    /// Everything follows when the cluster has reported what it holds: the cursor is not one to
    /// resume from.
    pub early: bool,
    /// What to do.
    pub instructions: Vec<Instruction>,
}

impl Part {
    /// How things stand for `cluster`: what changed since `after`, or everything where that is not
    /// known any more; but never as everything before the cluster has reported after a restore.
    pub fn look(ledger: &Ledger, cluster: &ClusterId, after: Option<Cursor>, now: Time) -> Self {
        let from = after.filter(|cursor| cursor.can_resume(ledger));
        let instructions = match from {
            None => instruction::current(ledger, cluster).collect(),
            Some(cursor) => instruction::since(ledger, cluster, Some(cursor.revision)).collect(),
        };
        // The batch in the making may change more under its revision, so only the one before it was
        // told completely.
        let open = u64::from(!planted(Bug::CursorTooFar));
        let revision = Revision(ledger.stamp().revision.0.saturating_sub(open));
        let cursor = Cursor { revision, time: now };
        let early = from.is_none() && is_too_early(ledger, cluster);
        Self { cursor, whole: from.is_none() && !early, early, instructions }
    }
}

/// Must nobody tell this cluster that something is all, because more may be forgotten?
pub fn is_too_early(ledger: &Ledger, cluster: &ClusterId) -> bool {
    !ledger.has_reported(cluster) && !planted(Bug::AllTooEarly)
}

/// What a reader was told, without the threads around it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    /// Up to here it was told everything by a look: older news would contradict it.
    seen: Revision,
}

impl Reader {
    /// It is told what a look found.
    pub fn looked(&mut self, part: &Part) {
        self.seen = part.cursor.revision;
    }

    /// What it is told of news: nothing, if a look has told it more.
    pub fn hear(&self, News { revision, time, instructions }: News) -> Option<Part> {
        let cursor = Cursor { revision, time };
        let newer = revision > self.seen || planted(Bug::OldNews);
        let part = Part { cursor, whole: false, early: false, instructions };
        (newer && !planted(Bug::NewsUntold)).then_some(part)
    }
}

/// One reader's stream.
pub struct Stream {
    handle: Handle,
    cluster: ClusterId,
    news: Receiver<News>,
    reader: Reader,
    /// It is watched anew, and its reader was not given the whole list yet.
    behind: bool,
    /// Its reader has not reported since a restore, and was not given the whole list: when to look
    /// again, however much there is to tell meanwhile.
    early: Option<Interval>,
}

impl Stream {
    /// Opens a stream, and says with what it begins.
    pub async fn open(
        handle: Handle,
        cluster: ClusterId,
        after: Option<Cursor>,
    ) -> Result<(Self, Part), Failure> {
        let news = handle.watch(cluster.clone())?;
        let reader = Reader::default();
        let (behind, early) = (false, None);
        let mut stream = Self { handle, cluster, news, reader, behind, early };
        let first = stream.look(after).await?;
        stream.looked(&first);
        Ok((stream, first))
    }

    /// What comes next; waits for it. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Result<Part, Failure> {
        while !self.behind {
            tokio::select! {
                news = self.news.recv() => if let Some(news) = news {
                    if let Some(part) = self.reader.hear(news) {
                        return Ok(Part { early: self.early.is_some(), ..part });
                    }
                } else {
                    // Too slow, or the engine has ended; then it cannot be watched again either.
                    self.news = self.handle.watch(self.cluster.clone())?;
                    self.behind = true;
                },
                () = tick(&mut self.early) => {
                    let part = self.look(None).await?;
                    if part.whole {
                        self.looked(&part);
                        return Ok(part);
                    }
                }
            }
        }
        let part = self.look(None).await?;
        self.behind = false;
        self.looked(&part);
        Ok(part)
    }

    fn looked(&mut self, part: &Part) {
        self.early = part.early.then(|| interval(REPORTED_EVERY));
        self.reader.looked(part);
    }

    async fn look(&self, after: Option<Cursor>) -> Result<Part, Failure> {
        let cluster = self.cluster.clone();
        let look = move |books: &Books, now| Part::look(books.ledger(), &cluster, after, now);
        let seen = self.handle.look(look)?;
        seen.await.map_err(|_| Failure::Unavailable)
    }
}

/// The next time to look; never, where there is nothing to look for.
async fn tick(early: &mut Option<Interval>) {
    match early {
        Some(early) => drop(early.tick().await),
        None => std::future::pending().await,
    }
}
