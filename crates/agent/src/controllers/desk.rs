//! The loop that sees to all objects.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use sublet_core::instruction::Side;
use sublet_crds::{ProviderInstruction, ReservationInstruction, ResourceRequest};
use tokio::time::{Instant, sleep_until};

use super::AT_ONCE;
use super::context::{Contact, Context};
use super::instruction::{self, Record, Seen};
use super::queue::{Key, Queue};
use super::request;
use super::shelf::Shelf;
use super::wanted::Wanted;
use crate::transport::{News, Order, Reach};
use crate::watch::Grants;

type Watched<K> = BoxStream<'static, Result<Event<K>, watcher::Error>>;

/// Sees to all requests and instructions, until it is dropped; that can be anywhere. Where somebody
/// else watches what is lent, he tells of it.
pub async fn run(context: Context, lent: Option<Grants>) -> Infallible {
    let mut feed = context.broker.feed();
    let everywhere = Api::all(context.client.clone());
    let mut requests = watched::<ResourceRequest>(everywhere);
    let mut lent = match lent {
        Some(mut told) => stream::poll_fn(move |task| told.poll_recv(task)).map(Ok).boxed(),
        None => watched::<ProviderInstruction>(context.instructions().0),
    };
    let mut borrowed = watched::<ReservationInstruction>(context.instructions().0);
    let mut running = FuturesUnordered::new();
    let mut desk = Desk::new(context.clone());
    loop {
        while running.len() < AT_ONCE
            && let Some(key) = desk.queue.pop(Instant::now())
        {
            running.push(desk.work(key));
        }
        tokio::select! {
            news = feed.next() => {
                if let Some(sweep) = desk.hear(news) {
                    running.push(sweep);
                }
            }
            Some(event) = requests.next() => desk.on_request(event),
            Some(event) = lent.next() => desk.on_lent(event),
            Some(event) = borrowed.next() => desk.on_borrowed(event),
            Some(done) = running.next(), if !running.is_empty() => desk.finish(done),
            () = due(desk.queue.next_due()), if running.len() < AT_ONCE => {}
            () = context.peering.changed() => desk.look_at_all(),
        }
    }
}

fn watched<K: Watchable>(api: Api<K>) -> Watched<K> {
    watcher(api, watcher::Config::default()).default_backoff().boxed()
}

/// What can be watched.
trait Watchable:
    kube::Resource<DynamicType = ()>
    + Clone
    + std::fmt::Debug
    + serde::de::DeserializeOwned
    + Send
    + 'static
{
}
impl Watchable for ResourceRequest {}
impl Watchable for ProviderInstruction {}
impl Watchable for ReservationInstruction {}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// What came of a piece of work.
enum Done {
    Request(Key, Box<request::Worked>),
    Lent(Key, Box<instruction::Worked<ProviderInstruction>>),
    Borrowed(Key, Box<instruction::Worked<ReservationInstruction>>),
    Swept,
}

type Name = (String, String);

/// Everything that is known.
struct Desk {
    context: Context,
    queue: Queue,
    wanted: Wanted,
    requests: Shelf<Name, ResourceRequest>,
    lent: Shelf<String, ProviderInstruction>,
    borrowed: Shelf<String, ReservationInstruction>,
    heard: u64,
}

impl Desk {
    fn new(context: Context) -> Self {
        Self {
            context,
            queue: Queue::default(),
            wanted: Wanted::default(),
            requests: Shelf::default(),
            lent: Shelf::default(),
            borrowed: Shelf::default(),
            heard: 0,
        }
    }

    /// A piece of work, with what it needs to know.
    fn work(&self, key: Key) -> BoxFuture<'static, Done> {
        let context = self.context.clone();
        match &key {
            Key::Request(namespace, name) => {
                let name = (namespace.clone(), name.clone());
                let Some(request) = self.requests.get(&name) else {
                    return idle(Done::Request(key, Box::new(request::Worked::nothing())));
                };
                let reservation = request.status.as_ref().map(|status| &status.reservation_name);
                let instruction = reservation.and_then(|name| self.borrowed.get(name));
                let instruction = instruction.map(Record::seen);
                let request = request.clone();
                async move {
                    let work = request::Work::new(&context, request, instruction);
                    Done::Request(key, Box::new(work.run().await))
                }
                .boxed()
            }
            Key::Instruction(side @ Side::Provider, name) => {
                let told = self.wanted.told(*side, name);
                let object = self.lent.get(name).cloned();
                async move {
                    let work = instruction::Work { context: &context, told, object };
                    Done::Lent(key, Box::new(work.run().await))
                }
                .boxed()
            }
            Key::Instruction(side @ Side::Requester, name) => {
                let told = self.wanted.told(*side, name);
                let object = self.borrowed.get(name).cloned();
                async move {
                    let work = instruction::Work { context: &context, told, object };
                    Done::Borrowed(key, Box::new(work.run().await))
                }
                .boxed()
            }
        }
    }

    fn finish(&mut self, done: Done) {
        let (key, outcome) = match done {
            Done::Swept => return,
            Done::Request(key, worked) => {
                if let Some(request) = worked.request {
                    self.look_again_if_outdated(&request, worked.instruction.as_ref());
                    self.requests.renew(name_of(&request), request);
                }
                for order in worked.orders {
                    self.overhear(order);
                }
                (key, worked.outcome)
            }
            Done::Lent(key, worked) => {
                if let Some(object) = worked.object {
                    self.lent.renew(object.reservation().to_owned(), object);
                }
                (key, worked.outcome)
            }
            Done::Borrowed(key, worked) => {
                if let Some(object) = worked.object {
                    let reservation = object.reservation().to_owned();
                    self.borrowed.renew(reservation.clone(), object);
                    self.wake_request(&reservation);
                }
                (key, worked.outcome)
            }
        };
        self.queue.done(key, outcome, Instant::now());
    }

    /// Its instruction may have come, or gone on, while the request was worked on.
    fn look_again_if_outdated(&mut self, request: &ResourceRequest, seen: Option<&Seen>) {
        let reservation = request.status.as_ref().map(|status| &status.reservation_name);
        let now = reservation.and_then(|name| self.borrowed.get(name)).map(Record::seen);
        if now.as_ref() != seen {
            let (namespace, name) = name_of(request);
            self.queue.push(Key::Request(namespace, name));
        }
    }

    fn overhear(&mut self, order: Order) {
        let key = Key::Instruction(order.side, order.reservation.clone());
        self.wanted.overhear(order);
        self.queue.push(key);
    }

    /// What the broker says; after a whole list, the sweep of what is not in it.
    fn hear(&mut self, news: News) -> Option<BoxFuture<'static, Done>> {
        match news {
            News::Connected => {
                self.heard += 1;
                self.context.contact.send_replace(Contact::Heard(self.heard));
                self.queue.retry_all();
            }
            News::Interrupted(error) => {
                tracing::info!(%error, "the broker is not heard");
                self.context.contact.send_replace(Contact::Lost(error.to_string()));
            }
            News::Reset(reach) => self.wanted.reset(reach),
            News::Order(order) => {
                let key = Key::Instruction(order.side, order.reservation.clone());
                self.wanted.hear(order);
                self.queue.push(key);
            }
            News::Synced => return self.wanted.complete().map(|reach| self.listed(reach)),
        }
        None
    }

    /// A whole list is known: everything is compared with it.
    fn listed(&mut self, reach: Reach) -> BoxFuture<'static, Done> {
        self.look_at_instructions();
        let sides: &'static [Side] = match reach {
            Reach::Both => &[Side::Provider, Side::Requester],
            Reach::Lent => &[Side::Provider],
        };
        let live: BTreeSet<String> = self.wanted.live(sides);
        let peering = self.context.peering.clone();
        async move {
            peering.sweep(sides, &live).await;
            Done::Swept
        }
        .boxed()
    }

    fn look_at_instructions(&mut self) {
        let wanted = self.wanted.keys().cloned();
        let lent = self.lent.keys().map(|name| (Side::Provider, name.clone()));
        let borrowed = self.borrowed.keys().map(|name| (Side::Requester, name.clone()));
        let all: Vec<_> = wanted.chain(lent).chain(borrowed).collect();
        for (side, name) in all {
            self.queue.push(Key::Instruction(side, name));
        }
    }

    fn look_at_all(&mut self) {
        self.look_at_instructions();
        let all: Vec<_> = self.requests.keys().cloned().collect();
        for (namespace, name) in all {
            self.queue.push(Key::Request(namespace, name));
        }
    }

    fn on_request(&mut self, event: Result<Event<ResourceRequest>, watcher::Error>) {
        for (namespace, name) in self.requests.on(event, name_of) {
            self.queue.push(Key::Request(namespace, name));
        }
    }

    fn on_lent(&mut self, event: Result<Event<ProviderInstruction>, watcher::Error>) {
        for name in self.lent.on(event, |object| object.reservation().to_owned()) {
            self.queue.push(Key::Instruction(Side::Provider, name));
        }
    }

    fn on_borrowed(&mut self, event: Result<Event<ReservationInstruction>, watcher::Error>) {
        for name in self.borrowed.on(event, |object| object.reservation().to_owned()) {
            self.wake_request(&name);
            self.queue.push(Key::Instruction(Side::Requester, name));
        }
    }

    /// The request whose reservation this is.
    fn wake_request(&mut self, reservation: &str) {
        let is_its = |request: &ResourceRequest| {
            request.status.as_ref().is_some_and(|status| status.reservation_name == reservation)
        };
        let found = self.requests.iter().find(|(_, request)| is_its(request));
        if let Some(((namespace, name), _)) = found {
            self.queue.push(Key::Request(namespace.clone(), name.clone()));
        }
    }
}

fn idle(done: Done) -> BoxFuture<'static, Done> {
    std::future::ready(done).boxed()
}

fn name_of(request: &ResourceRequest) -> Name {
    (request.namespace().unwrap_or_default(), request.name_any())
}
