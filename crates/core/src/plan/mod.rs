//! Stage 8 of 12 · reserve — a command becomes events and a reply, or a refusal with its reason.
//!
//! Upstream: `decision` picks a provider. Downstream: `log` makes the events durable.
//!
//! [`plan`] is pure and total: the same books, command, policy and stamp give the same plan. It
//! changes nothing; whoever calls it applies the events. A repeat of what was done already is
//! answered with how things are now and no event, so that every retry is harmless. No plan has more
//! than [`EVENTS_MAX`] events, so that a record always fits its home.

mod advertise;
mod end;
mod fill;
mod live;
mod operate;
mod reserve;
mod sweep;

use alloc::{boxed::Box, format, string::String, vec::Vec};

use crate::advertisement::Advertisement;
use crate::books::Books;
use crate::decision::explain::Explanation;
use crate::event::{Event, Subject};
use crate::id::{ClusterId, Generation, Key, ReservationId};
use crate::ledger::{Place, Stamp};
use crate::policy::Policy;
use crate::reservation::{Actor, Ask, AskError, Hindrance, Phase, Reservation};
use crate::resources::{Limits, Resources};
use crate::time::Span;

/// The most events of one plan.
pub const EVENTS_MAX: usize = 256;

pub use fill::{Fill, Grown};

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A cluster said something of itself; the books have heard it already.
    Advertise(Box<Advertisement>),
    /// A requester asks for capacity under its key.
    Reserve {
        /// Who asks.
        requester: ClusterId,
        /// Under which key.
        key: Key,
        /// What for.
        ask: Ask,
        /// Whether a grant comes with its reasons: making them is most of the work of planning one.
        explain: bool,
    },
    /// What would happen to such a request now?
    DryRun {
        /// Who asks.
        requester: ClusterId,
        /// What for.
        ask: Ask,
    },
    /// End a reservation, or a request that may still be on its way.
    Release {
        /// Who wants it.
        by: Actor,
        /// Which.
        which: Which,
    },
    /// Let it run for this long from now; none means the operator's default.
    Renew {
        /// Who wants it.
        by: Actor,
        /// Which.
        id: ReservationId,
        /// How long.
        duration: Option<Span>,
    },
    /// Change its amounts.
    Resize {
        /// Who wants it.
        by: Actor,
        /// Which.
        id: ReservationId,
        /// To what.
        resources: Resources,
    },
    /// The requester confirms that it is usable.
    Activate {
        /// The requester.
        by: ClusterId,
        /// Which.
        id: ReservationId,
    },
    /// The provider confirms that it carried out an instruction.
    Acknowledge {
        /// The provider.
        by: ClusterId,
        /// Which.
        id: ReservationId,
        /// Which instruction.
        generation: Generation,
    },
    /// One side says that the clusters cannot be joined.
    Fail {
        /// Who says so.
        by: ClusterId,
        /// Which.
        id: ReservationId,
        /// What is in the way.
        why: Option<Hindrance>,
    },
    /// An operator decides.
    Operate {
        /// Their name.
        operator: String,
        /// Why, in their words.
        why: String,
        /// What.
        action: Action,
    },
    /// Grant the first waiting request that fits.
    Fill(Fill),
    /// Do what operators asked for bit by bit and, with `expire`, what time has made due.
    Sweep {
        /// False while the clock is in doubt or holders may still be coming back.
        expire: bool,
    },
}

/// Which reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// By its name.
    Id(ReservationId),
    /// By the key that its requester gave it.
    Key(ClusterId, Key),
}

/// What operators decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Grant nothing new there; with `drain`, also take back what it lends.
    Cordon {
        /// Which cluster.
        cluster: ClusterId,
        /// Also take back.
        drain: bool,
    },
    /// Let it take part again.
    Uncordon(ClusterId),
    /// The most that it lends in all; no bound lifts the cap.
    Cap(ClusterId, Limits),
    /// Believe it no longer.
    Revoke(Subject),
    /// Believe it again.
    Reinstate(Subject),
    /// Give a provider up.
    DeclareLost(ClusterId),
    /// Let a provider lend after a restore although it has not reported.
    Vouch(ClusterId),
    /// The wall clock that is far ahead is right.
    ConfirmClock,
}

/// The answer to a command that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The advertisement was taken, or was older than what is known.
    Advertised {
        /// Whether it was news.
        news: bool,
    },
    /// How a reservation stands now.
    Reservation {
        /// Which; the caller reads it after applying the events.
        id: ReservationId,
        /// Whether this command made it.
        created: bool,
        /// Why it was granted, if that was asked, or why it waits; only where it was decided now.
        explanation: Option<Box<Explanation>>,
    },
    /// A request under this key will not be granted any more.
    KeyReleased,
    /// What would happen.
    WouldGrant {
        /// Where.
        provider: ClusterId,
        /// Why.
        explanation: Box<Explanation>,
    },
    /// It is done.
    Done,
    /// A waiting request was granted; the next one is looked for after this place.
    Filled {
        /// Its place.
        place: Place,
        /// How many clusters were looked at.
        looks: u64,
    },
    /// None up to this place fits; more may wait after it.
    NotYetFilled {
        /// The last that was tried.
        place: Place,
        /// How many clusters were looked at.
        looks: u64,
    },
    /// Nothing waiting fits.
    NothingToFill {
        /// How many clusters were looked at.
        looks: u64,
    },
    /// What was due is done; with `more`, not all of it yet.
    Swept {
        /// Sweep again.
        more: bool,
    },
}

/// Why a command was refused. Nothing has changed, and a key is not bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody can lend this.
    #[error("no cluster can lend this: {0}")]
    NobodyFits(Box<Explanation>),
    /// Only a cluster that is overdue could.
    #[error("only a cluster whose advertisement is overdue could lend this; ask again soon: {0}")]
    OnlySuspects(Box<Explanation>),
    /// The same key, another body.
    #[error("this key was used for another request ({0}): use a new key for a new request")]
    KeyReused(ReservationId),
    /// The key was released before.
    #[error("this key was released before its request arrived: use a new key to ask again")]
    KeyReleased,
    /// Not there, or not yours.
    #[error("there is no such reservation: list yours to see what there is")]
    NotFound,
    /// Not possible where it stands.
    #[error(
        "the reservation is {0}: {next}",
        next = match .0 {
            Phase::Pending => "wait until it is granted, or release it",
            _ => "this is not possible any more, or not yet; read it again, and ask anew if you \
                  still need it",
        }
    )]
    Phase(Phase),
    /// A generation that was never issued.
    #[error(
        "the newest instruction of this reservation has generation {0}: read your instructions \
         again, and acknowledge what was carried out"
    )]
    Generation(Generation),
    /// Wrong in itself.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Longer than the operator lets it.
    #[error("the longest {what} here is {limit}: ask for no more than that{}", now(why.as_deref()))]
    TooLong {
        /// Which of them.
        what: &'static str,
        /// The limit.
        limit: Span,
        /// Why it would have to wait at all, if that is too long.
        why: Option<Box<Explanation>>,
    },
    /// Too many at once.
    #[error("you have {0} live reservations, which is the most you may have: release one first")]
    TooManyReservations(u32),
    /// Too many keys are remembered.
    #[error(
        "{most} of your keys are remembered, which is the most: release what you no longer need, \
         and ask again later; a key is forgotten {kept} after its reservation has ended"
    )]
    TooManyKeys {
        /// The most.
        most: u32,
        /// How long a key is remembered after its end.
        kept: Span,
    },
    /// Too many wait at once.
    #[error(
        "{most} requests wait already, which is the most: ask without waiting, or later{}",
        now(Some(why))
    )]
    TooManyWaiting {
        /// The most.
        most: u32,
        /// Why it would have to wait.
        why: Box<Explanation>,
    },
    /// Pods use what is to be taken away.
    #[error("pods use {0}, which is more than this: move them away first")]
    InUse(Resources),
    /// The provider's agent is too old to follow.
    #[error("the provider's agent cannot change a running reservation: release it and ask anew")]
    ProviderIsOld,
    /// The cluster's certificates are not believed.
    #[error("the certificate of this cluster was revoked: ask the operator")]
    Revoked,
    /// A text that is kept must be short.
    #[error("the reason or name is longer than {0} characters: shorten it")]
    TextTooLong(usize),
}

fn now(why: Option<&Explanation>) -> String {
    why.map(|why| format!("; nothing fits now: {why}")).unwrap_or_default()
}

/// Events and the reply to give once they are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What becomes true, in order.
    pub events: Vec<Event>,
    /// What to answer.
    pub reply: Reply,
}

impl Plan {
    fn new(events: impl Into<Vec<Event>>, reply: Reply) -> Self {
        Self { events: events.into(), reply }
    }

    fn about(id: ReservationId, events: impl Into<Vec<Event>>) -> Self {
        Self::new(events, Reply::Reservation { id, created: false, explanation: None })
    }
}

/// What every part of planning looks at.
#[derive(Clone, Copy)]
struct Scene<'a> {
    books: &'a Books,
    policy: &'a Policy,
    at: Stamp,
}

impl<'a> Scene<'a> {
    /// The reservation, if `by` may see it.
    fn visible(&self, by: &Actor, id: ReservationId) -> Result<&'a Reservation, Refusal> {
        operate::check_name(by)?;
        let reservation = self.books.ledger().reservation(id).ok_or(Refusal::NotFound)?;
        let sees = match by {
            Actor::Cluster(cluster) => reservation.sides().any(|side| side == cluster),
            Actor::Operator(_) | Actor::Broker => true,
        };
        // Somebody else's is not told apart from none, so that ids cannot be probed.
        if sees { Ok(reservation) } else { Err(Refusal::NotFound) }
    }

    /// The reservation, if `by` is its requester or an operator.
    fn owned(&self, by: &Actor, id: ReservationId) -> Result<&'a Reservation, Refusal> {
        let reservation = self.visible(by, id)?;
        match by {
            Actor::Cluster(cluster) if reservation.requester != *cluster => Err(Refusal::NotFound),
            _ => Ok(reservation),
        }
    }

    /// Does the provider's agent confirm what it did, as far as is known?
    fn confirms(&self, provider: &ClusterId) -> Option<bool> {
        let entry = self.books.market().entry(provider)?;
        Some(entry.advertisement.capabilities.acknowledge)
    }
}

/// Decides what a command does.
pub fn plan(books: &Books, command: &Command, policy: &Policy, at: Stamp) -> Result<Plan, Refusal> {
    let scene = Scene { books, policy, at };
    match command {
        Command::Advertise(advertisement) => Ok(scene.advertise(advertisement)),
        Command::Reserve { requester, key, ask, explain } => {
            scene.reserve(requester, key, ask, *explain)
        }
        Command::DryRun { requester, ask } => scene.dry_run(requester, ask),
        Command::Release { by, which } => scene.release(by, which),
        Command::Renew { by, id, duration } => scene.renew(by, *id, *duration),
        Command::Resize { by, id, resources } => scene.resize(by, *id, resources),
        Command::Activate { by, id } => scene.activate(by, *id),
        Command::Acknowledge { by, id, generation } => scene.acknowledge(by, *id, *generation),
        Command::Fail { by, id, why } => scene.fail(by, *id, why.as_ref()),
        Command::Operate { operator, why, action } => operate::operate(operator, why, action),
        Command::Fill(fill) => Ok(scene.fill(fill)),
        Command::Sweep { expire } => Ok(scene.sweep(*expire)),
    }
}
