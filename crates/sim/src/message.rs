//! What travels between clusters and brokers.

use std::sync::Arc;

use sublet_broker::engine::Answer;
use sublet_broker::stream::{Cursor, Part};
use sublet_core::id::{ClusterId, Key, Revision};
use sublet_core::instruction::Instruction;
use sublet_core::plan::Command;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// A cluster's agent.
    Agent(usize),
    /// A request of a cluster.
    Client(usize),
    /// An operator.
    Operator,
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum Order {
    /// A command to be planned.
    Command(Command),
    /// What a cluster must do: all of it, or what is new since a revision.
    List(ClusterId, Option<Revision>),
    /// The same, and from then on what changes.
    Watch(ClusterId, Option<Cursor>),
}

/// One request on its way. All its copies share it, so that one can tell whether any is left.
#[derive(Debug)]
pub struct Call {
    /// Which.
    pub number: u64,
    /// Who asks.
    pub from: Party,
    /// What.
    pub order: Order,
    /// The newest revision that anybody had been told of when it was sent.
    pub floor: Revision,
    /// Which published advertisement it carries.
    pub advert: Option<usize>,
}

impl Call {
    /// The requester and key of a request for capacity.
    pub fn key(&self) -> Option<(&ClusterId, &Key)> {
        match &self.order {
            Order::Command(Command::Reserve { requester, key, .. }) => Some((requester, key)),
            _ => None,
        }
    }
}

/// How much of all that a cluster must do a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What is not in it is over.
    Whole,
    /// There may be more.
    Part,
}

/// What comes back.
#[derive(Clone, Debug)]
pub enum Heard {
    /// The answer to a command.
    Answer(Answer),
    /// A list of instructions, made at a revision.
    List(Revision, Vec<Instruction>, Extent),
    /// A part of a stream.
    Part(Part),
}

/// A request as the engine holds it.
pub type Ticket = Arc<Call>;
