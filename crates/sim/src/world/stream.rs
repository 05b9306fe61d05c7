//! Streams of instructions: the real watchers and readers, on connections that keep the order and
//! break where a message would be lost.

use sublet_broker::engine::{Changes, Engine, News, Watcher, Watchers};
use sublet_broker::stream::{Part, Reader};
use sublet_core::id::ClusterId;
use tokio::sync::mpsc::Receiver;

use super::{Task, World};
use crate::message::{Heard, Order, Party, Ticket};

/// All streams of a broker's process.
#[derive(Default)]
pub(super) struct Streams {
    watchers: Watchers,
    open: Vec<Open>,
}

/// One connection.
struct Open {
    call: Ticket,
    news: Receiver<News>,
    /// None before the first part was sent.
    reader: Option<Reader>,
}

impl Streams {
    /// Watches before it looks, as the broker does.
    pub(super) fn open(&mut self, call: &Ticket, engine: &mut Engine<Ticket>) {
        let Order::Watch(cluster, _) = &call.order else { return };
        // An agent has one connection; a copy of the question is none.
        self.open.retain(|open| open.call.from != call.from || open.call.number > call.number);
        let (watcher, news) = Watcher::new(cluster.clone());
        self.watchers.add(watcher);
        engine.watch(true);
        let call = Ticket::clone(call);
        self.open.push(Open { call, news, reader: None });
    }

    /// Is the connection of this call there?
    fn has(&self, number: u64) -> bool {
        self.open.iter().any(|open| open.call.number == number)
    }

    /// The parts that are to be sent, after these changes.
    fn tell(&mut self, Changes { at, reservations, .. }: &Changes) -> Vec<(Ticket, Part)> {
        self.watchers.tell(at.revision, at.time, reservations);
        let mut parts = Vec::new();
        for open in &mut self.open {
            let Some(reader) = open.reader else { continue };
            while let Ok(news) = open.news.try_recv() {
                let part = reader.hear(news);
                parts.extend(part.map(|part| (Ticket::clone(&open.call), part)));
            }
        }
        parts
    }
}

impl World {
    /// The first part of a stream leaves.
    pub(super) fn begin_stream(&mut self, at: usize, call: &Ticket, part: Part) {
        let resumes = matches!(call.order, Order::Watch(_, Some(_))) && !part.whole;
        let began = if resumes { "stream resumed" } else { "stream began with everything" };
        self.sometimes.hit(began);
        let durable = self.home.durable();
        let process = self.brokers.get_mut(at).and_then(|broker| broker.process.as_mut());
        if let Some(process) = &process {
            self.audit.opens(process.writer, call, &part, durable);
        }
        let open =
            process.and_then(|p| p.streams.open.iter_mut().find(|o| o.call.number == call.number));
        if let Some(open) = open {
            open.reader.get_or_insert_default().looked(&part);
            self.send_part(at, call, part);
        }
    }

    /// What became durable goes to whoever watches.
    pub(super) fn tell_watchers(&mut self, at: usize) {
        let process = self.brokers.get_mut(at).and_then(|broker| broker.process.as_mut());
        let Some(process) = process else { return };
        let changes = process.engine.changes();
        let parts = process.streams.tell(&changes);
        process.engine.watch(!process.streams.watchers.is_empty());
        for (call, part) in parts {
            self.sometimes.hit("stream told news");
            self.audit.tells(&part, self.home.durable());
            self.send_part(at, &call, part);
        }
    }

    fn send_part(&mut self, at: usize, call: &Ticket, part: Part) {
        let delay = self.fate_of_message(call.from, at).first().copied();
        let now = self.now;
        let process = self.brokers.get_mut(at).and_then(|broker| broker.process.as_mut());
        let Some(streams) = process.map(|process| &mut process.streams) else { return };
        let Some(delay) = delay else {
            // What is lost on a connection ends it.
            return streams.open.retain(|open| open.call.number != call.number);
        };
        let Party::Agent(agent) = call.from else { return };
        let Some(agent) = self.agents.get_mut(agent).filter(|_| streams.has(call.number)) else {
            return;
        };
        // A connection keeps the order; one that a copy of the question opened is no other.
        agent.arrives_ms = agent.arrives_ms.max(now + delay);
        let wait = agent.arrives_ms - now;
        let (call, heard) = (Ticket::clone(call), Heard::Part(part));
        self.after(wait, Task::ToParty { call, heard });
    }

    /// An agent opens its stream where it has none, and now and then anew.
    pub(super) fn watch(&mut self, at: usize) {
        let brokers = self.setup.brokers;
        let Some(agent) = self.agents.get_mut(at) else { return };
        let streams = self.brokers.iter().filter_map(|broker| broker.process.as_ref());
        let alive = streams.into_iter().any(|process| process.streams.has(agent.stream));
        if alive && !agent.dice.chance(60) {
            return;
        }
        let after = agent.read.filter(|_| !agent.dice.chance(60));
        let (broker, name): (_, ClusterId) = (agent.dice.index(brokers), agent.name.clone());
        let number = self.send(Party::Agent(at), Order::Watch(name, after), broker, None);
        if let Some(agent) = self.agents.get_mut(at) {
            agent.stream = number;
        }
    }
}
