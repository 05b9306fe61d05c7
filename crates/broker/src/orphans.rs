//! What was asked for by callers that did not wait for the answer.
//!
//! The engine does what it took in, also when the caller's connection is gone: a drop guard at the
//! call hands the ticket over to here, so that the decision is counted and written down all the same.
//! A grant under a key is found again under it. One without a key would be known to nobody, so it is
//! given back. What is here runs beside the API, ends after it and before the engine.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sublet_core::id::{ClusterId, Key};
use sublet_core::plan::{Command, Which};
use sublet_core::reservation::Actor;
use sublet_process::lines::AUDIT;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use crate::engine::{Failure, Ticket};
use crate::http::{App, Audited};

/// As many as the engine has places, of both kinds: a ticket holds one until it is answered.
const MOST: usize = 16_384;
/// Between two tries to give capacity back to an engine that is too busy to take it.
const PAUSE: Duration = Duration::from_millis(100);
/// A minute of tries.
const TRIES_MAX: u32 = 600;

/// A command whose caller is gone.
pub(crate) struct Orphan {
    pub(crate) ticket: Ticket,
    /// What to write down of it.
    pub(crate) audited: Audited,
    /// What to give back: what was asked for without a key.
    pub(crate) disowned: Option<(ClusterId, Key)>,
}

/// Where they are handed in.
#[derive(Clone)]
pub struct Orphans(mpsc::Sender<Orphan>);

/// Where they are taken care of.
pub(crate) struct Home(mpsc::Receiver<Orphan>);

impl Orphans {
    pub(crate) fn new() -> (Self, Home) {
        let (sender, receiver) = mpsc::channel(MOST);
        (Self(sender), Home(receiver))
    }

    /// Takes care of one; called where nothing can be waited for.
    pub(crate) fn take_in(&self, orphan: Orphan) {
        if let Err(error) = self.0.try_send(orphan) {
            let orphan = error.into_inner();
            orphan.audited.lost();
        }
    }
}

impl Home {
    /// Takes care of them while `work` goes on, and of the last ones after it, for so long.
    pub(crate) async fn open_while<T>(mut self, app: Arc<App>, work: impl Future<Output = T>) -> T {
        let mut tasks = JoinSet::new();
        let mut work = pin!(work);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                Some(orphan) = self.0.recv(), if tasks.len() < MOST => {
                    tasks.spawn(settle(orphan, Arc::clone(&app)));
                }
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report(ended),
            }
        };
        while let Ok(orphan) = self.0.try_recv() {
            tasks.spawn(settle(orphan, Arc::clone(&app)));
        }
        let rest = async {
            while let Some(ended) = tasks.join_next().await {
                report(ended);
            }
        };
        if tokio::time::timeout(app.limits.drain, rest).await.is_err() {
            tracing::error!(left = tasks.len(), "what nobody waited for was not settled in time");
            tasks.shutdown().await;
        }
        done
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the care for a command that nobody waited for failed");
    }
}

/// Both at once: whichever the engine comes to first, nothing is granted in the end.
async fn settle(orphan: Orphan, app: Arc<App>) {
    let Orphan { ticket, audited, disowned } = orphan;
    let give_back = async {
        if let Some((requester, key)) = &disowned {
            give_back(&app, requester, key, &audited).await;
        }
    };
    let ((), answer) = tokio::join!(give_back, ticket);
    audited.settled(&app, answer);
}

/// What is granted already is released; what is not yet, is not granted any more, because its key
/// is bound to nothing.
async fn give_back(app: &App, requester: &ClusterId, key: &Key, audited: &Audited) {
    let mut result = Err(Failure::Overloaded);
    for _ in 0..TRIES_MAX {
        let which = Which::Key(requester.clone(), key.clone());
        let by = Actor::Cluster(requester.clone());
        result = match app.engine.submit(Command::Release { by, which }) {
            Ok(ticket) => ticket.await,
            Err(failure) => Err(failure),
        };
        if !matches!(result, Err(Failure::Overloaded)) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    let request = audited.request.as_str();
    match result {
        Ok(_) => tracing::info!(
            target: AUDIT,
            request, caller = %requester,
            "given back: its caller did not wait for it and sent no key"
        ),
        Err(failure) => tracing::error!(
            target: AUDIT,
            request, caller = %requester, why = %failure,
            "could not be given back: its caller did not wait for it and sent no key"
        ),
    }
}
