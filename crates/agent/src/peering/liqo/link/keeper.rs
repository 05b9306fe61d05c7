//! Keeps all links of this cluster: some pairs at once, each by one round at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use kube::Client;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};
use sublet_wire::v1::Message;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::board::Board;
use super::changes::{Change, Changes};
use super::letters::Letters;
use super::memory::{Both, Memory};
use super::pace::Pace;
use super::pins::Pins;
use super::round::{After, Office, Outcome, Round};
use super::step::Wish;
use super::{Hook, LinkState, Links, Post};
use crate::metrics::Metrics;
use crate::relay::{Error, Opened, Signer, Verifier};

/// How many messages may wait to be opened; more are dropped, and sent again by whoever cares.
const MAIL_MAX: usize = 256;
/// How many pairs are worked on at once.
const AT_ONCE: usize = 8;
/// How many pairs are remembered of which somebody wrote without there being anything.
const STRANGERS_MAX: usize = 256;
/// The first pause before a look at what should be there soon, and the longest.
const POLL_FIRST: Duration = Duration::from_millis(20);
const POLL_MAX: Duration = Duration::from_secs(1);
/// How long after a start it may take until it is known which links are needed.
const SETTLING: Span = Span::from_secs(60);
/// The same once the broker has told everything there is.
const SETTLING_LISTED: Span = Span::from_secs(5);

/// What the links are kept with.
pub struct Settings {
    /// The cluster.
    pub client: Client,
    /// Its name.
    pub cluster: ClusterId,
    /// Where the agent keeps its objects, and so the pins.
    pub namespace: String,
    /// The folder with the agent's certificate, key and authorities.
    pub credentials: PathBuf,
    /// The way to other agents.
    pub post: Arc<dyn Post>,
    /// How long a link is kept that nobody needs.
    pub idle: Span,
    /// What time it is.
    pub clock: fn() -> Time,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
    /// Called after each step, for whoever wants to stop there in a test.
    pub hook: Option<Hook>,
}

/// Keeps the links. Work is done while [`run`](Self::run) is.
pub struct Keeper {
    office: Arc<Office>,
    board: Board,
    /// When the broker had told everything there is, for the first time.
    listed: OnceLock<Instant>,
    heard: Notify,
    mail: mpsc::Sender<Message>,
    letterbox: Mutex<Option<mpsc::Receiver<Message>>>,
    namespace: String,
    metrics: Arc<Metrics>,
}

impl Keeper {
    /// One that has not begun.
    pub fn new(settings: Settings) -> Self {
        let Settings { client, cluster, namespace, credentials, post, idle, clock, metrics, hook } =
            settings;
        let letters = Letters {
            me: cluster.clone(),
            signer: Signer::new(credentials.clone()),
            verifier: Verifier::new(cluster.clone(), credentials, Arc::clone(&metrics)),
            post,
        };
        let pins = Pins::new(&client, &namespace);
        let office =
            Office { client, me: cluster, pins, letters, idle, settling: SETTLING, clock, hook };
        let (mail, letterbox) = mpsc::channel(MAIL_MAX);
        Self {
            office: Arc::new(office),
            board: Board::default(),
            listed: OnceLock::new(),
            heard: Notify::new(),
            mail,
            letterbox: Mutex::new(Some(letterbox)),
            namespace,
            metrics,
        }
    }

    /// Works until the agent stops. It can be cut anywhere; there is one run of a keeper.
    pub async fn run(&self, mut stopping: watch::Receiver<bool>) {
        let letterbox = self.letterbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut letterbox) = letterbox else { return };
        let changes = Changes::new(&self.office.client, &self.namespace);
        let mut desk = Desk::new(self);
        tokio::pin!(changes);
        loop {
            desk.begin();
            let due = desk.next_due();
            tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => return,
                Some(message) = letterbox.recv() => desk.open(&message),
                change = changes.next() => desk.change(&change),
                () = self.board.poke.notified() => desk.look_at_new(),
                () = self.heard.notified() => desk.look_at_all(),
                Some((outcome, wishes)) = desk.rounds.next() => desk.end(outcome, &wishes),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }
}

impl Links for Keeper {
    fn ensure<'a>(&'a self, side: Side, peer: &'a ClusterId) -> BoxFuture<'a, LinkState> {
        self.board.wish(side, peer, Wish::Wanted);
        self.board.state(side, peer).boxed()
    }

    fn unused<'a>(&'a self, side: Side, peer: &'a ClusterId) -> BoxFuture<'a, ()> {
        self.board.wish(side, peer, Wish::Unused);
        std::future::ready(()).boxed()
    }

    fn listed(&self) {
        if self.listed.set(Instant::now()).is_ok() {
            self.heard.notify_one();
        }
    }

    fn hear(&self, message: Message) {
        if let Err(full) = self.mail.try_send(message) {
            self.office.letters.refuse(&full.into_inner().from, &Error::Overflow);
        }
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.board.changed.notified().boxed()
    }
}

/// One pair.
#[derive(Default)]
struct Pair {
    /// None while it is worked on.
    memory: Option<Memory>,
    mail: Both<Option<Opened>>,
    pace: Pace,
    is_due: bool,
    due: Option<Instant>,
}

impl Pair {
    fn has_mail(&self) -> bool {
        self.mail.provider.is_some() || self.mail.requester.is_some()
    }

    fn is_due(&self, now: Instant) -> bool {
        let by_mail = self.has_mail() && self.pace.allows(now);
        self.is_due || by_mail || self.due.is_some_and(|due| due <= now)
    }

    /// When it is to be looked at, if it is.
    fn next_due(&self, now: Instant) -> Option<Instant> {
        let mail = self.has_mail().then(|| self.pace.earliest().unwrap_or(now));
        let own = if self.is_due { Some(now) } else { self.due };
        own.into_iter().chain(mail).min()
    }
}

/// A round that is going on, and what was needed when it began.
type Going<'a> = BoxFuture<'a, (Outcome, Both<Wish>)>;

/// What is worked on.
struct Desk<'a> {
    keeper: &'a Keeper,
    started: Instant,
    pairs: BTreeMap<ClusterId, Pair>,
    rounds: FuturesUnordered<Going<'a>>,
}

impl<'a> Desk<'a> {
    fn new(keeper: &'a Keeper) -> Self {
        let rounds = FuturesUnordered::new();
        Self { keeper, started: Instant::now(), pairs: BTreeMap::new(), rounds }
    }

    fn pair(&mut self, peer: &ClusterId) -> &mut Pair {
        self.pairs
            .entry(peer.clone())
            .or_insert_with(|| Pair { memory: Some(Memory::default()), ..Pair::default() })
    }

    /// Begins rounds of those pairs that are due.
    fn begin(&mut self) {
        let now = Instant::now();
        let (keeper, up) = (self.keeper, self.up());
        for (peer, pair) in &mut self.pairs {
            if self.rounds.len() >= AT_ONCE || !pair.is_due(now) {
                continue;
            }
            let Some(mut memory) = pair.memory.take() else { continue };
            (pair.is_due, pair.due) = (false, None);
            if pair.has_mail() {
                pair.pace.spend(now);
            }
            for side in [Side::Provider, Side::Requester] {
                let Some(opened) = pair.mail.of_mut(side).take() else { continue };
                let heard = memory.hear(side, opened, (keeper.office.clock)());
                if let Err(error) = heard {
                    keeper.office.letters.refuse(peer.as_str(), &error);
                }
            }
            let wishes = keeper.board.wishes(peer);
            let round = Round {
                office: Arc::clone(&keeper.office),
                peer: peer.clone(),
                wishes: keeper.board.wishes(peer),
                up,
                memory,
            };
            self.rounds.push(async move { (round.run().await, wishes) }.boxed());
        }
    }

    fn next_due(&self) -> Option<Instant> {
        // What is worked on is looked at again when that ends.
        let idle = self.pairs.values().filter(|pair| pair.memory.is_some());
        let now = Instant::now();
        idle.filter_map(|pair| pair.next_due(now)).min().filter(|_| self.rounds.len() < AT_ONCE)
    }

    fn end(&mut self, outcome: Outcome, wishes: &Both<Wish>) {
        let Outcome { peer, memory, states, excuse, after } = outcome;
        if let Some(why) = excuse {
            self.keeper.board.excuse(&peer, &why);
        }
        for (side, state) in self.keeper.board.write(&peer, wishes, states) {
            self.tell(side, &peer, &state);
        }
        let pause = match after {
            After::Poll => {
                Some(POLL_FIRST.saturating_mul(1 << (memory.polls / 2).min(6)).min(POLL_MAX))
            }
            After::Rest(span) => span.map(|span| Duration::from_millis(span.as_millis())),
            After::Forget => None,
        };
        let pair = self.pair(&peer);
        pair.memory = Some(memory);
        pair.due = pause.map(|pause| Instant::now() + pause);
        if after == After::Forget && !pair.is_due && !pair.has_mail() {
            self.pairs.remove(&peer);
            self.keeper.board.forget(&peer);
        }
        for side in [Side::Provider, Side::Requester] {
            self.keeper.metrics.links(side, self.keeper.board.count(side));
        }
    }

    fn tell(&self, side: Side, peer: &ClusterId, state: &LinkState) {
        match state {
            LinkState::Ready => tracing::info!(%peer, ?side, "linked"),
            LinkState::Pending(why) => tracing::debug!(%peer, ?side, %why, "the link is not ready"),
            LinkState::Failed(trouble) => {
                self.keeper.metrics.link_failed(trouble.reason.word());
                tracing::warn!(%peer, ?side, %trouble, "there is no link");
            }
        }
    }

    /// Takes in a message: the newest of each direction is the one that counts.
    fn open(&mut self, message: &Message) {
        let now = (self.keeper.office.clock)();
        let Some(opened) = self.keeper.office.letters.open(message, now) else { return };
        let header = &opened.letter.header;
        let (from, expires_at) = (header.from.clone(), header.expires_at);
        let is_requester = header.requester == self.keeper.office.me;
        let side = if is_requester { Side::Requester } else { Side::Provider };
        if !self.pairs.contains_key(&from) && self.pairs.len() >= STRANGERS_MAX {
            self.keeper.office.letters.refuse(from.as_str(), &Error::Overflow);
            return;
        }
        let office = Arc::clone(&self.keeper.office);
        let pair = self.pair(&from);
        let waiting = pair.mail.of(side).as_ref().map(|known| known.letter.header.expires_at);
        let read = pair.memory.as_ref().map(|memory| memory.talks.of(side));
        let is_news = waiting.is_none_or(|known| expires_at > known)
            && read.is_none_or(|talk| talk.is_news(expires_at));
        if is_news {
            *pair.mail.of_mut(side) = Some(opened);
        } else {
            office.letters.refuse(from.as_str(), &Error::Stale);
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Ours(peer) => self.pair(peer).is_due = true,
            Change::About(peer) => {
                if let Some(pair) = self.pairs.get_mut(peer) {
                    pair.is_due = true;
                }
            }
            Change::Keys => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) {
        self.pairs.values_mut().for_each(|pair| pair.is_due = true);
    }

    /// For how long this agent has been at work, or longer: what it has learned counts as time.
    fn up(&self) -> Span {
        let since = |begin: &Instant| {
            Span::from_millis(u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX))
        };
        let known = self.keeper.listed.get().map_or(Span::ZERO, |listed| {
            let ahead = SETTLING.as_millis().saturating_sub(SETTLING_LISTED.as_millis());
            Span::from_millis(since(listed).as_millis().saturating_add(ahead))
        });
        since(&self.started).max(known)
    }

    fn look_at_new(&mut self) {
        for peer in self.keeper.board.take() {
            self.pair(&peer).is_due = true;
        }
    }
}
