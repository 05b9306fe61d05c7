//! The loop that sees to all objects.

mod hearing;

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::pin::pin;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use kube::runtime::watcher::Event;
use kube::{Api, Resource, ResourceExt};
use sublet_core::instruction::Side;
use sublet_crds::{ProviderInstruction, ReservationInstruction, ResourceRequest};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::context::Context;
use super::counts::Counts;
use super::instruction::{self, Look, Record, Seen};
use super::lanes::Lanes;
use super::queue::{Key, Outcome, due};
use super::request;
use super::shelf::Shelf;
use super::source::{Told, listen, watched};
use super::wanted::Wanted;
use crate::peering::Change;
use crate::transport::Promise;
use crate::watch::Grants;
use hearing::SWEEP_EVERY;

/// How much of what the broker says may wait to be heard.
const AHEAD: usize = 64;
/// Sees to all requests and instructions, until it is dropped; that can be anywhere. Where somebody
/// else watches what is lent, he tells of it.
pub async fn run(context: Context, lent: Option<Grants>) -> Infallible {
    let (tell, mut news) = mpsc::channel(AHEAD);
    // Beside the loop, and never begun anew: whatever else happens, what it is at goes on.
    let mut listening = pin!(listen(context.broker.feed(), tell));
    let mut requests = watched::<ResourceRequest>(Api::all(context.client.clone()));
    let mut lent = match lent {
        Some(mut told) => stream::poll_fn(move |task| told.poll_recv(task)).map(Ok).boxed(),
        None => watched::<ProviderInstruction>(context.instructions().0),
    };
    let mut borrowed = watched::<ReservationInstruction>(context.instructions().0);
    let mut running = FuturesUnordered::new();
    let mut desk = Desk::new(context.clone());
    loop {
        while let Some(key) = desk.queue.pop(Instant::now()) {
            running.push(desk.work(key));
        }
        tokio::select! {
            never = &mut listening => match never {},
            Some(news) = news.recv() => {
                if let Some(sweep) = desk.hear(news) {
                    running.push(sweep);
                }
            }
            Some(event) = requests.next() => desk.on_request(event),
            Some(event) = lent.next() => desk.on_lent(event),
            Some(event) = borrowed.next() => desk.on_borrowed(event),
            Some(done) = running.next(), if !running.is_empty() => desk.finish(done),
            () = due(desk.queue.next_due()) => {}
            () = due(desk.counts.due()) => {
                desk.count();
                continue;
            }
            change = context.peering.changed() => desk.on_change(change),
            () = sleep_until(desk.sweep_at) => running.extend(desk.sweep_again()),
        }
        running.extend(desk.strays.drain(..));
        desk.counts.touch(Instant::now());
    }
}

/// What came of a piece of work.
enum Done {
    Request(Begun, Box<request::Worked>),
    Lent(Begun, Box<instruction::Worked<ProviderInstruction>>),
    Borrowed(Begun, Box<instruction::Worked<ReservationInstruction>>),
    Swept,
}

/// A thing that is worked on, and how many whole lists of its kind were seen when that began.
struct Begun {
    key: Key,
    lists: u64,
}

type Name = (String, String);

/// Everything that is known.
struct Desk {
    context: Context,
    queue: Lanes,
    wanted: Wanted,
    requests: Shelf<Name, ResourceRequest>,
    lent: Shelf<String, ProviderInstruction>,
    borrowed: Shelf<String, ReservationInstruction>,
    heard: u64,
    /// What is to be looked at closely, and when all of it last was.
    closely: HashSet<(Side, String)>,
    last_closely: Option<Instant>,
    sweep_at: Instant,
    /// The removal of objects whose name is not that of what they say.
    strays: Vec<BoxFuture<'static, Done>>,
    counts: Counts,
    /// What old brokers answered and could not be written down yet, by the UID of the request.
    answers: HashMap<String, Promise>,
}

impl Desk {
    fn new(context: Context) -> Self {
        Self {
            counts: Counts::new(context.metrics()),
            context,
            queue: Lanes::default(),
            wanted: Wanted::default(),
            requests: Shelf::default(),
            lent: Shelf::default(),
            borrowed: Shelf::default(),
            heard: 0,
            closely: HashSet::new(),
            last_closely: None,
            sweep_at: Instant::now() + SWEEP_EVERY,
            strays: Vec::new(),
            answers: HashMap::new(),
        }
    }

    /// A piece of work, with what it needs to know.
    fn work(&mut self, key: Key) -> BoxFuture<'static, Done> {
        let context = self.context.clone();
        match &key {
            Key::Request(namespace, name) => {
                let name = (namespace.clone(), name.clone());
                let lists = self.requests.lists();
                let Some(request) = self.requests.get(&name) else {
                    let nothing = Box::new(request::Worked::nothing());
                    return async move { Done::Request(Begun { key, lists }, nothing) }.boxed();
                };
                let reservation = request.status.as_ref().map(|status| &status.reservation_name);
                let instruction = reservation.and_then(|name| self.borrowed.get(name));
                let instruction = instruction.map(Record::seen);
                let request = request.clone();
                let answer = request.uid().and_then(|uid| self.answers.remove(&uid));
                async move {
                    let work = request::Work::new(&context, request, instruction);
                    let work = work.with_answer(answer);
                    Done::Request(Begun { key, lists }, Box::new(work.run().await))
                }
                .boxed()
            }
            Key::Instruction(side @ Side::Provider, name) => {
                let (told, look) = (self.wanted.told(*side, name), self.look(*side, name));
                let (object, lists) = (self.lent.get(name).cloned(), self.lent.lists());
                async move {
                    let work = instruction::Work { context: &context, told, object, look };
                    Done::Lent(Begun { key, lists }, Box::new(work.run().await))
                }
                .boxed()
            }
            Key::Instruction(side @ Side::Requester, name) => {
                let (told, look) = (self.wanted.told(*side, name), self.look(*side, name));
                let (object, lists) = (self.borrowed.get(name).cloned(), self.borrowed.lists());
                async move {
                    let work = instruction::Work { context: &context, told, object, look };
                    Done::Borrowed(Begun { key, lists }, Box::new(work.run().await))
                }
                .boxed()
            }
        }
    }

    fn look(&mut self, side: Side, name: &str) -> Look {
        let is_close = self.closely.remove(&(side, name.to_owned()));
        if is_close { Look::Closely } else { Look::Believing }
    }

    /// It was looked at as closely as was wanted, unless something came in between: then again.
    fn looked_at(&mut self, key: &Key, outcome: Outcome, look: Look, is_there: bool) {
        let Key::Instruction(side, name) = key else { return };
        if look == Look::Closely && matches!(outcome, Outcome::Retry(_) | Outcome::Barred(_)) {
            self.closely.insert((*side, name.clone()));
        }
        if !is_there {
            self.wanted.settle(*side, name);
        }
    }

    fn finish(&mut self, done: Done) {
        let (key, outcome, is_known) = match done {
            Done::Swept => return,
            Done::Request(Begun { key, lists }, worked) => {
                let mut is_known = false;
                if let Some(request) = worked.request {
                    let uid = request.uid().unwrap_or_default();
                    let answer =
                        worked.answer.filter(|_| request.meta().deletion_timestamp.is_none());
                    self.answers.extend(answer.map(|answer| (uid, answer)));
                    self.look_again_if_outdated(&request, worked.instruction.as_ref());
                    is_known = self.requests.renew(name_of(&request), request, lists);
                }
                for order in worked.orders {
                    self.overhear(order);
                }
                (key, worked.outcome, is_known)
            }
            Done::Lent(Begun { key, lists }, worked) => {
                let is_there = worked.object.is_some();
                let is_known = worked.object.is_some_and(|object| {
                    self.lent.renew(object.reservation().to_owned(), object, lists)
                });
                self.looked_at(&key, worked.outcome, worked.look, is_there);
                (key, worked.outcome, is_known)
            }
            Done::Borrowed(Begun { key, lists }, worked) => {
                let is_there = worked.object.is_some();
                let is_known = worked.object.is_some_and(|object| {
                    self.wake_request(object.reservation());
                    self.borrowed.renew(object.reservation().to_owned(), object, lists)
                });
                self.looked_at(&key, worked.outcome, worked.look, is_there);
                (key, worked.outcome, is_known)
            }
        };
        self.counts.worked(&key, outcome);
        self.queue.done(key, outcome, is_known);
    }

    fn count(&mut self) {
        let requests = self.requests.iter().map(|(_, request)| request);
        let lent = self.lent.iter().map(|(_, object)| object.seen());
        let borrowed = self.borrowed.iter().map(|(_, object)| object.seen());
        self.counts.take(requests, lent.chain(borrowed));
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

    fn look_at_instructions(&mut self, closely: bool) {
        let wanted = self.wanted.keys().cloned();
        let lent = self.lent.keys().map(|name| (Side::Provider, name.clone()));
        let borrowed = self.borrowed.keys().map(|name| (Side::Requester, name.clone()));
        let all: Vec<_> = wanted.chain(lent).chain(borrowed).collect();
        for (side, name) in all {
            self.look_at_instruction(side, name, closely);
        }
    }

    fn look_at_instruction(&mut self, side: Side, name: String, closely: bool) {
        if closely {
            self.closely.insert((side, name.clone()));
        }
        self.queue.push(Key::Instruction(side, name));
    }

    fn look_at_changed(&mut self, side: Side, name: String, is_list: bool) {
        if is_list {
            return self.look_at_instruction(side, name, true);
        }
        self.queue.changed(Key::Instruction(side, name));
    }

    fn on_change(&mut self, change: Change) {
        match change {
            Change::Everything => self.look_at_all(),
            Change::One(side, name) => self.look_at_instruction(side, name, true),
        }
    }

    fn look_at_all(&mut self) {
        self.look_at_instructions(true);
        let all: Vec<_> = self.requests.keys().cloned().collect();
        for (namespace, name) in all {
            self.queue.push(Key::Request(namespace, name));
        }
    }

    fn on_request(&mut self, event: Told<ResourceRequest>) {
        for (namespace, name) in self.requests.on(event, name_of) {
            self.queue.changed(Key::Request(namespace, name));
        }
    }

    fn on_lent(&mut self, event: Told<ProviderInstruction>) {
        let Some(event) = self.without_strays(event) else { return };
        let is_list = matches!(event, Ok(Event::InitDone));
        for name in self.lent.on(event, |object| object.reservation().to_owned()) {
            self.look_at_changed(Side::Provider, name, is_list);
        }
    }

    fn on_borrowed(&mut self, event: Told<ReservationInstruction>) {
        let Some(event) = self.without_strays(event) else { return };
        let is_list = matches!(event, Ok(Event::InitDone));
        for name in self.borrowed.on(event, |object| object.reservation().to_owned()) {
            self.wake_request(&name);
            self.look_at_changed(Side::Requester, name, is_list);
        }
    }

    /// An object has the name of what it says, or is not one of ours and goes: two about one
    /// reservation would hide each other.
    fn without_strays<K: Record>(&mut self, event: Told<K>) -> Option<Told<K>> {
        let Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = &event
        else {
            return Some(event);
        };
        if object.name_any() == K::object_name(object.reservation()) {
            return Some(event);
        }
        if !matches!(event, Ok(Event::Delete(_))) {
            let name = object.name_any();
            tracing::warn!(name, "an instruction under a wrong name is removed");
            let (store, object) = (self.context.instructions::<K>(), object.clone());
            let removal = async move {
                if let Err(error) = store.delete(&object).await {
                    tracing::warn!(%error, name, "it could not be removed");
                }
                Done::Swept
            };
            self.strays.push(removal.boxed());
        }
        None
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

fn name_of(request: &ResourceRequest) -> Name {
    (request.namespace().unwrap_or_default(), request.name_any())
}
