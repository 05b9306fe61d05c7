//! The way in to a running engine: cheap to clone, never waits.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use sublet_core::books::Books;
use sublet_core::event::{Note, Subject};
use sublet_core::id::ClusterId;
use sublet_core::plan::Command;
use sublet_core::policy::Policy;
use sublet_core::time::Time;
use tokio::sync::{mpsc, oneshot, watch};

use super::watch::{News, Watcher};
use super::write::Done;
use super::{Answer, Committer, Failure, Look, Submitted, Work};

/// How a caller is told; holds a place in the engine until then.
#[derive(Debug)]
pub(super) struct Teller {
    sender: oneshot::Sender<Answer>,
    place: Place,
}

impl Teller {
    /// One more caller, if there is a place among at most `most`.
    pub(super) fn new(
        taken: &Arc<AtomicUsize>,
        most: usize,
    ) -> Result<(Self, oneshot::Receiver<Answer>), Failure> {
        let place = Place::take(taken, most)?;
        let (sender, answer) = oneshot::channel();
        Ok((Self { sender, place }, answer))
    }

    pub(super) fn tell(self, answer: Answer) {
        // A caller that gave up loses nothing: its key finds the answer.
        drop(self.sender.send(answer));
        drop(self.place);
    }
}

/// One of the places for work that was taken in and is not answered yet: queued, planned, or on its
/// way to the disk. They are counted because a slow disk makes work pile up behind the queue.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Result<Self, Failure> {
        let place = Self(Arc::clone(taken));
        if taken.fetch_add(1, Ordering::SeqCst) < most {
            Ok(place)
        } else {
            Err(Failure::Overloaded)
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) enum Message {
    Work(Submitted<Teller>),
    Policy(Arc<Policy>),
    Watch(Watcher),
    Done(Committer, Done),
    Stop,
    WriterGone,
}

/// Who is not believed any more, and why; shared as it was committed last.
pub type Revoked = Arc<BTreeMap<Subject, Note>>;

/// The way in: cheap to clone, safe to drop.
#[derive(Clone)]
pub struct Handle {
    inbox: SyncSender<Message>,
    revoked: watch::Receiver<Revoked>,
    /// Apart, so that requests and lists, however many wait for a slow disk, leave the places of
    /// heartbeats and releases free.
    urgent: Arc<AtomicUsize>,
    ordinary: Arc<AtomicUsize>,
    most: usize,
}

/// An answer that will come.
pub struct Ticket(oneshot::Receiver<Answer>);

impl Ticket {
    /// Waits for the answer on a thread of one's own.
    pub fn wait(self) -> Answer {
        // A teller that was dropped is an engine that ended: what became of it is not known.
        self.0.blocking_recv().unwrap_or(Err(Failure::Unknown))
    }

    /// Waits for the answer in a task.
    pub async fn answer(self) -> Answer {
        self.await
    }
}

/// Can be polled by reference, so that whoever stops waiting still has it.
impl Future for Ticket {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        Pin::new(&mut self.0).poll(context).map(|told| told.unwrap_or(Err(Failure::Unknown)))
    }
}

impl Handle {
    /// For at most `most` callers of either kind at a time.
    pub(super) fn new(
        inbox: SyncSender<Message>,
        revoked: watch::Receiver<Revoked>,
        most: usize,
    ) -> Self {
        Self { inbox, revoked, urgent: Arc::default(), ordinary: Arc::default(), most }
    }

    /// Asks the engine to finish what it took in and to end.
    pub(super) fn stop(&self) {
        // An engine that has ended by itself needs no telling.
        drop(self.inbox.send(Message::Stop));
    }

    /// Hands a command in.
    pub fn submit(&self, command: Command) -> Result<Ticket, Failure> {
        self.work(Work::Command(command)).map(Ticket)
    }

    /// Shows committed state to `look`, which says what to keep of it.
    pub fn look<R: Send + 'static>(
        &self,
        look: impl Fn(&Books, Time) -> R + Send + 'static,
    ) -> Result<oneshot::Receiver<R>, Failure> {
        let (look, answer) = told_once(look);
        // Only the look itself tells anything.
        drop(self.work(Work::Look(look))?);
        Ok(answer)
    }

    /// The same for what looks at much: it waits with the requests.
    pub fn survey<R: Send + 'static>(
        &self,
        look: impl Fn(&Books, Time) -> R + Send + 'static,
    ) -> Result<oneshot::Receiver<R>, Failure> {
        let (look, answer) = told_once(look);
        drop(self.work(Work::Survey(look))?);
        Ok(answer)
    }

    /// What commits change for `cluster` from now on. It ends when its reader falls behind, or
    /// with the engine: whoever wants to go on watches anew, and then looks at how things stand.
    pub fn watch(&self, cluster: ClusterId) -> Result<mpsc::Receiver<News>, Failure> {
        let (watcher, news) = Watcher::new(cluster);
        self.send(Message::Watch(watcher))?;
        Ok(news)
    }

    /// Who is not believed any more; can be awaited.
    pub fn revoked(&self) -> watch::Receiver<Revoked> {
        self.revoked.clone()
    }

    /// Replaces the policy.
    pub fn set_policy(&self, policy: Arc<Policy>) -> Result<(), Failure> {
        self.send(Message::Policy(policy))
    }

    fn work(&self, work: Work) -> Result<oneshot::Receiver<Answer>, Failure> {
        let taken = if work.is_ordinary() { &self.ordinary } else { &self.urgent };
        let (ticket, answer) = Teller::new(taken, self.most)?;
        self.send(Message::Work(Submitted { work, ticket }))?;
        Ok(answer)
    }

    fn send(&self, message: Message) -> Result<(), Failure> {
        self.inbox.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => Failure::Overloaded,
            TrySendError::Disconnected(_) => Failure::Unavailable,
        })
    }
}

/// A look that tells what it saw.
fn told_once<R: Send + 'static>(
    look: impl Fn(&Books, Time) -> R + Send + 'static,
) -> (Look, oneshot::Receiver<R>) {
    let (teller, answer) = oneshot::channel();
    // It may be called again when another broker was faster; whoever was told is told once.
    let teller = Arc::new(Mutex::new(Some(teller)));
    let look: Look = Box::new(move |books, now| {
        let (seen, teller) = (look(books, now), Arc::clone(&teller));
        Box::new(move || {
            let teller = teller.lock().map(|mut teller| teller.take());
            if let Ok(Some(teller)) = teller {
                // A caller that gave up is no concern of ours.
                drop(teller.send(seen));
            }
        })
    });
    (look, answer)
}
