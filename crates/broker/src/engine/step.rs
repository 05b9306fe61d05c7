//! The engine as a plain value: commands in, a batch and answers out; no thread, no clock, no disk.

mod follow;

use std::sync::Arc;

use sublet_core::advertisement::Advertisement;
use sublet_core::books::Books;
use sublet_core::bugs::{Bug, planted};
use sublet_core::event::Event;
use sublet_core::invariants;
use sublet_core::ledger::{self, Stamp};
use sublet_core::market::Entry;
use sublet_core::plan::{self, Command, Plan, Reply};
use sublet_core::policy::Policy;
use sublet_core::time::Time;
use sublet_log::Record;

use super::backlog::Backlog;
use super::decided::to_account_for;
use super::flight::{Changes, Flight, Item, Outcome, Planned, Room};
use super::retry::Retry;
use super::work::{Failure, Settled, Submitted, Work};

/// A batch is closed when it has this many bytes: one more plan of the largest kind still fits the
/// limit of a record.
pub(super) const BATCH_BYTES: usize = Record::BYTES_MAX / 2;

/// The most commands planned in one step: news from the disk waits no longer than these take.
const PIECE: usize = 8;

/// The books and the log contradict each other: a bug, ours or another broker's. Nothing more may
/// be acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum Contradiction {
    /// An event that the ledger refuses.
    #[error("the ledger refuses what was planned or logged")]
    Ledger(#[from] ledger::Error),
    /// A grant that its own basis does not justify.
    #[error("planned against the rules: {}: {}", .0.rule, .0.found)]
    Unjustified(invariants::Violation),
    /// An event that cannot be written.
    #[error("a planned event cannot be encoded")]
    Encode(#[from] sublet_log::record::Error),
}

/// The single owner of the books.
pub struct Engine<T> {
    books: Books,
    policy: Arc<Policy>,
    backlog: Backlog<T>,
    open: Option<Flight<T>>,
    writing: Option<Flight<T>>,
    /// What the last batch took.
    room: Room,
    retry: Retry,
    /// How many clusters were looked at for those who wait.
    looked_at: u64,
    /// Some of those who wait are held back after a restore.
    doubted: bool,
    /// Somebody wants to know what changes.
    watched: bool,
    /// What became durable and has not been handed out.
    changes: Changes,
    /// Others write the same log: also an answer without events waits until it is known that
    /// nobody wrote since it was decided.
    shared: bool,
}

impl<T> Engine<T> {
    /// An engine on what the log said, and what is remembered of the market.
    pub fn new(books: Books, policy: Arc<Policy>) -> Self {
        let (backlog, retry, changes) = (Backlog::new(), Retry::default(), Changes::default());
        let (open, writing, room) = (None, None, Room::default());
        let (doubted, shared, watched) = (false, false, false);
        Self {
            books,
            policy,
            backlog,
            open,
            writing,
            room,
            retry,
            looked_at: 0,
            doubted,
            watched,
            changes,
            shared,
        }
    }

    /// The same, on a log that other brokers write too: a batch may be handed out empty, and
    /// committing it makes sure that nothing was missed.
    #[must_use]
    pub fn shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// The books, ahead of the disk: what is shown to anybody goes through [`Work::Look`].
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Replaces the policy; what waits is tried under the new one.
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        self.policy = policy;
        self.backlog.arrange(&self.policy);
        self.retry.begin_again();
    }

    /// Takes what an earlier process had noted of the market.
    pub fn remember(&mut self, entry: Entry, now: Time) {
        self.books.remember(entry, now);
    }

    /// From now on, changes of reservations are collected, or not.
    pub fn watch(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// What became durable since this was asked last.
    pub fn changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// How many clusters were looked at for those who wait, since the start.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// Is everything that was taken in answered?
    pub fn is_done(&self) -> bool {
        self.backlog.is_empty() && self.open.is_none() && self.writing.is_none()
    }

    /// Is everything that was taken in planned? Some of those who wait may have to be tried yet.
    pub fn is_planned(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Is there something to plan that goes into the open batch before that is written? Each batch
    /// costs a sync; but who is answered with it does not wait until others have looked at much.
    pub fn gathers(&self) -> bool {
        self.is_behind() && !self.is_planned() && !self.will_look_at_much()
    }

    /// Will the next step look at much, and take as long?
    pub fn will_look_at_much(&self) -> bool {
        self.backlog.next_is_survey()
    }

    /// Is there something to plan that has room in the open batch: work that was taken in, or a
    /// waiting request that may fit by now?
    pub fn is_behind(&self) -> bool {
        !(self.backlog.is_empty() && self.retry.is_over() || self.open_is_full())
    }

    /// Takes new work, and plans a piece of what there is; [`Engine::is_behind`] asks for another.
    pub fn step(
        &mut self,
        work: impl IntoIterator<Item = Submitted<T>>,
        now: Time,
    ) -> Result<(), Contradiction> {
        for submitted in work {
            self.backlog.push(&self.policy, submitted);
        }
        self.end_doubt(now);
        let mut looks = self.retry.looks();
        for planned in 0..PIECE {
            let is_long = self.will_look_at_much();
            if is_long && planned > 0 {
                // It is a piece by itself.
                return Ok(());
            }
            let floor = self.backlog.next_priority();
            let first = floor.is_some() && !planted(Bug::NewOnesPass);
            if self.open_is_full() || first && !self.fill(floor, &mut looks, now)? {
                return Ok(());
            }
            let Some(mut item) = self.backlog.pop() else { break };
            let outcome = self.plan(&mut item, now)?;
            self.open(now).planned.push(Planned { item, outcome });
            if is_long {
                break;
            }
        }
        self.serve_waiting(looks, now)
    }

    /// Does what operators asked for and, with `expire`, what time has made due.
    pub fn sweep(&mut self, now: Time, expire: bool) -> Result<(), Contradiction> {
        self.end_doubt(now);
        let command = Command::Sweep { expire };
        while !self.open_is_full() {
            let plan = plan::plan(&self.books, &command, &self.policy, self.stamp(now));
            let Ok(plan) = plan else { break };
            self.accept_uncalled(plan.events, now)?;
            if plan.reply != (Reply::Swept { more: true }) {
                break;
            }
        }
        let looks = self.retry.looks();
        self.serve_waiting(looks, now)
    }

    /// What was held back after a restore is tried when that is over; nothing else would say so.
    fn end_doubt(&mut self, now: Time) {
        let (time, until) = (self.stamp(now).time, self.books.doubted_until(&self.policy.silence));
        let doubted = until.is_some_and(|until| time < until);
        if std::mem::replace(&mut self.doubted, doubted) && !doubted {
            self.retry.begin_again();
        }
    }

    /// Grants what waits and fits, once nothing is left of what was taken in: that may say more
    /// about who has room, and ask with a higher priority.
    fn serve_waiting(&mut self, mut looks: u64, now: Time) -> Result<(), Contradiction> {
        if self.backlog.is_empty() {
            self.fill(None, &mut looks, now)?;
        }
        Ok(())
    }

    /// Grants what waits and fits, down to a priority: before a new request of that priority is
    /// planned, because who waits came first. Is everybody down to there tried?
    fn fill(
        &mut self,
        floor: Option<i32>,
        looks: &mut u64,
        now: Time,
    ) -> Result<bool, Contradiction> {
        while !self.retry.is_over() {
            if self.open_is_full() {
                return Ok(false);
            }
            if *looks == 0 {
                self.retry.cut();
                return Ok(false);
            }
            let command = Command::Fill(self.retry.next(floor, *looks));
            let plan = plan::plan(&self.books, &command, &self.policy, self.stamp(now));
            let Ok(Plan { events, reply }) = plan else { return Ok(true) };
            let (place, looked) = match reply {
                Reply::Filled { place, looks } | Reply::NotYetFilled { place, looks } => {
                    (Some(place), looks)
                }
                Reply::NothingToFill { looks } => (None, looks),
                _ => return Ok(true),
            };
            *looks = looks.saturating_sub(looked);
            self.looked_at = self.looked_at.saturating_add(looked);
            if planted(Bug::FirstPieceOnly) && events.is_empty() {
                self.retry.give_up();
                return Ok(true);
            }
            match place {
                Some(place) => self.retry.go_on_after(place),
                None if self.retry.finish(floor) => return Ok(true),
                None => {}
            }
            self.accept_uncalled(events, now)?;
        }
        Ok(true)
    }

    fn plan(&mut self, item: &mut Item<T>, now: Time) -> Result<Outcome, Contradiction> {
        let command = match &item.submitted.work {
            Work::Look(look) | Work::Survey(look) => {
                return Ok(Outcome::Seen(look(&self.books, now)));
            }
            Work::Command(command) => command,
        };
        if let Command::Advertise(advertisement) = command {
            item.was_news = self.hear(advertisement, item.was_news, now);
        }
        let answer = match plan::plan(&self.books, command, &self.policy, self.stamp(now)) {
            Err(refusal) => Err(Failure::Refused(refusal)),
            Ok(plan) => {
                if matches!(command, Command::Advertise(_)) {
                    self.accept_uncalled(plan.events, now)?;
                } else {
                    self.accept(plan.events, now)?;
                }
                Ok(self.settle(plan.reply))
            }
        };
        Ok(Outcome::Answer(Box::new(answer)))
    }

    /// Hears an advertisement; says whether it is news. What others wrote makes it be planned again,
    /// not heard again: it arrived once, and was no copy then.
    fn hear(&mut self, advertisement: &Advertisement, was_news: bool, now: Time) -> bool {
        if was_news {
            self.books.hear_as_news(advertisement);
            return true;
        }
        let silence = &self.policy.silence;
        let news = self.books.market().is_news(advertisement, now, silence);
        if self.books.hear(advertisement.clone(), now, silence) && self.somebody_waits() {
            self.retry.lends_more(&advertisement.cluster);
        }
        news
    }

    fn settle(&self, reply: Reply) -> Settled {
        let ledger = self.books.ledger();
        let reservation = match &reply {
            Reply::Reservation { id, .. } => ledger.share_reservation(*id),
            _ => None,
        };
        Settled { revision: ledger.stamp().revision, reply, reservation }
    }

    /// The same for what no call asked for by name; it is accounted for once it is durable.
    fn accept_uncalled(&mut self, events: Vec<Event>, now: Time) -> Result<(), Contradiction> {
        let uncalled: Vec<_> = to_account_for(&events).cloned().collect();
        self.accept(events, now)?;
        if !uncalled.is_empty() {
            self.open(now).uncalled.extend(uncalled);
        }
        Ok(())
    }

    /// Applies planned events and puts them into the open batch.
    fn accept(&mut self, events: Vec<Event>, now: Time) -> Result<(), Contradiction> {
        for event in events {
            let stamp = self.open(now).stamp;
            // The last check before a promise: the same rule that every audit applies later.
            if let Some(violation) = invariants::judge(self.books.ledger(), stamp, &event) {
                return Err(Contradiction::Unjustified(violation));
            }
            if self.somebody_waits() && !planted(Bug::NoRetry) {
                self.retry.heed(&event, self.books.ledger());
            }
            let reversal = self.books.apply(stamp, &event)?;
            let touched = event.reservation().filter(|_| self.watched);
            let open = self.open(now);
            open.touched.extend(touched);
            open.reversals.push(reversal);
            open.body.push(event)?;
        }
        Ok(())
    }

    /// Who does not wait yet is tried when it asks.
    fn somebody_waits(&self) -> bool {
        self.books.ledger().waiting_count() > 0
    }

    fn open_is_full(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.body.size() >= BATCH_BYTES)
    }

    /// Where the open batch will stand, and its time: one for all that is planned in it.
    fn stamp(&self, now: Time) -> Stamp {
        let last = self.books.ledger().stamp();
        let committed = || Stamp { revision: last.revision.next(), time: last.time.max(now) };
        self.open.as_ref().map_or_else(committed, |open| open.stamp)
    }

    fn open(&mut self, now: Time) -> &mut Flight<T> {
        let stamp = self.stamp(now);
        let room = self.room;
        self.open.get_or_insert_with(|| Flight::new(stamp, room))
    }
}
