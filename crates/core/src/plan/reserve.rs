//! A request is granted, waits, or is refused with its reason.

use alloc::{boxed::Box, collections::BTreeMap};

use super::{Plan, Refusal, Reply, Scene};
use crate::bugs::{Bug, planted};
use crate::decision::filter::{self, Question};
use crate::decision::{self, NoPick, Pick, explain};
use crate::event::Event;
use crate::id::{ClusterId, Key, ReservationId};
use crate::ledger::{Account, Bond};
use crate::reservation::{Ask, Reservation};
use crate::resources::Resources;
use crate::time::{Span, Time};

impl Scene<'_> {
    pub(super) fn reserve(
        &self,
        requester: &ClusterId,
        key: &Key,
        ask: &Ask,
        explain: bool,
    ) -> Result<Plan, Refusal> {
        let (ledger, account) = (self.books.ledger(), self.books.ledger().account(requester));
        let keys = ledger.keys(requester);
        let of_anybody = || ledger.reservations(None).find(|r| r.key.as_ref() == Some(key));
        let bond = match planted(Bug::KeyOfAnybody).then(of_anybody).flatten() {
            Some(known) => Some(Bond::Reservation(known.id)),
            None => keys.and_then(|keys| keys.get(key)).copied(),
        };
        match bond {
            Some(Bond::Tombstone(_)) if planted(Bug::ForgetsTombstone) => {}
            Some(Bond::Tombstone(_)) => return Err(Refusal::KeyReleased),
            Some(Bond::Reservation(id)) => return self.repeat(id, ask),
            None => self.check(requester, account, keys.map_or(0, BTreeMap::len), ask)?,
        }
        let id = ReservationId::derive(requester, key, self.at.revision);
        if let Some(known) = ledger.reservation(id) {
            // A restored log reached this revision again, and the provider reported what it keeps.
            let same = known.requester == *requester && known.ask.resources == ask.resources;
            return if same { Ok(Plan::about(id, [])) } else { Err(Refusal::KeyReused(id)) };
        }
        let most = self.policy.allowance(requester).priority_max;
        let most = if planted(Bug::PriorityUncapped) { i32::MAX } else { most };
        let priority = ask.priority.min(most);
        let reply = |why: Option<explain::Explanation>| Reply::Reservation {
            id,
            created: true,
            explanation: why.map(Box::new),
        };
        match self.choose(requester, account, ask) {
            Ok(pick) => {
                let (books, policy, now) = (self.books, self.policy, self.at.time);
                let why = || explain::granted(books, requester, ask, &pick, policy, now);
                let why = explain.then(why);
                let reserved = Event::Reserved {
                    id,
                    requester: requester.clone(),
                    key: key.clone(),
                    ask: ask.clone(),
                    priority,
                    expires_at: self.expiry(ask.duration),
                    activate_by: self.activation(ask),
                    confirms: pick.confirms,
                    provider: pick.provider,
                    basis: pick.basis,
                };
                Ok(Plan::new([reserved], reply(why)))
            }
            Err(no) => match ask.wait.filter(|wait| !wait.is_zero()) {
                None => Err(self.refuse(no, requester, ask)),
                Some(wait) => {
                    let why = self.why_not(requester, ask);
                    let why = self.check_queue(requester, wait, why)?;
                    let (requester, key, ask) = (requester.clone(), key.clone(), ask.clone());
                    let until = self.after(wait);
                    let asked = Event::Requested { id, requester, key, ask, priority, until };
                    Ok(Plan::new([asked], reply(Some(why))))
                }
            },
        }
    }

    pub(super) fn dry_run(&self, requester: &ClusterId, ask: &Ask) -> Result<Plan, Refusal> {
        let account = self.books.ledger().account(requester);
        self.check(requester, account, self.books.ledger().key_count(requester), ask)?;
        let pick = self.choose(requester, account, ask);
        let pick = pick.map_err(|no| self.refuse(no, requester, ask))?;
        let (books, policy, now) = (self.books, self.policy, self.at.time);
        let explanation = Box::new(explain::granted(books, requester, ask, &pick, policy, now));
        Ok(Plan::new([], Reply::WouldGrant { provider: pick.provider, explanation }))
    }

    /// It may have been granted since the backup that was restored: see [`Books::doubted_until`].
    ///
    /// [`Books::doubted_until`]: crate::books::Books::doubted_until
    pub(super) fn is_held_back(&self, reservation: &Reservation) -> bool {
        let silence = &self.policy.silence;
        self.books.held_back_until(reservation, silence, self.at.time).is_some()
    }

    /// The same request again is answered with how its reservation stands now.
    fn repeat(&self, id: ReservationId, ask: &Ask) -> Result<Plan, Refusal> {
        let known = self.books.ledger().reservation(id);
        if known.is_some_and(|reservation| reservation.ask == *ask) {
            Ok(Plan::about(id, []))
        } else {
            Err(Refusal::KeyReused(id))
        }
    }

    fn check(
        &self,
        requester: &ClusterId,
        account: Option<&Account>,
        keys: usize,
        ask: &Ask,
    ) -> Result<(), Refusal> {
        ask.check()?;
        if self.books.ledger().is_revoked(requester) {
            return Err(Refusal::Revoked);
        }
        self.check_duration(ask.duration)?;
        self.check_keys(requester, keys)?;
        let live = account.map_or(0, |account| account.borrowing.len());
        let most = self.policy.allowance(requester).reservations_max;
        if u32::try_from(live).is_ok_and(|live| live < most) {
            Ok(())
        } else {
            Err(Refusal::TooManyReservations(most))
        }
    }

    pub(super) fn check_keys(&self, requester: &ClusterId, keys: usize) -> Result<(), Refusal> {
        let (most, kept) = (self.policy.allowance(requester).keys_max, self.policy.key_retention);
        let known = u32::try_from(keys);
        let fits = known.is_ok_and(|known| known < most);
        if fits { Ok(()) } else { Err(Refusal::TooManyKeys { most, kept }) }
    }

    pub(super) fn check_duration(&self, duration: Option<Span>) -> Result<(), Refusal> {
        match self.policy.duration_max {
            Some(limit) if duration.is_some_and(|duration| duration > limit) => {
                Err(Refusal::TooLong { what: "duration", limit, why: None })
            }
            _ => Ok(()),
        }
    }

    /// May one more wait, of all and of this requester's? Hands back why it has to.
    fn check_queue(
        &self,
        requester: &ClusterId,
        wait: Span,
        why: explain::Explanation,
    ) -> Result<explain::Explanation, Refusal> {
        let (limit, ledger) = (self.policy.wait_max, self.books.ledger());
        if wait > limit {
            return Err(Refusal::TooLong { what: "wait", limit, why: Some(Box::new(why)) });
        }
        let theirs = ledger.account(requester).map_or(0, |account| account.waiting);
        let all = u32::try_from(ledger.waiting_count()).unwrap_or(u32::MAX);
        let most = self.policy.allowance(requester).waiting_max;
        let counts = [(theirs, most), (all, self.policy.waiting_max)];
        let full = counts.into_iter().find(|(waiting, most)| waiting >= most);
        match full {
            Some((_, most)) => Err(Refusal::TooManyWaiting { most, why: Box::new(why) }),
            None => Ok(why),
        }
    }

    fn choose(
        &self,
        requester: &ClusterId,
        account: Option<&Account>,
        ask: &Ask,
    ) -> Result<Pick, NoPick> {
        self.choose_among((requester, account), ask, None, &mut 0)
    }

    /// The same among some alone, or everywhere; counts the clusters that it looks at.
    pub(super) fn choose_among(
        &self,
        (requester, account): (&ClusterId, Option<&Account>),
        ask: &Ask,
        among: Option<&[&ClusterId]>,
        looks: &mut u64,
    ) -> Result<Pick, NoPick> {
        let Self { books, policy, at } = *self;
        let excess = filter::excess_of(account, requester, ask, policy);
        if excess.is_some() || overflows(account, &ask.resources) {
            return Err(NoPick::NobodyFits);
        }
        let question = Question { books, requester, ask, policy, now: at.time, grows: false };
        decision::search(&question, among, looks)
    }

    pub(super) fn grant(&self, id: ReservationId, ask: &Ask, pick: Pick) -> Event {
        Event::Granted {
            id,
            amounts: ask.resources.clone(),
            expires_at: self.expiry(ask.duration),
            activate_by: self.activation(ask),
            confirms: pick.confirms,
            provider: pick.provider,
            basis: pick.basis,
        }
    }

    /// When a requester that confirms use must have done so.
    fn activation(&self, ask: &Ask) -> Option<Time> {
        ask.activates.then(|| self.after(self.policy.activate_within))
    }

    /// When something that runs for `duration` from now ends; never, if nobody set a limit.
    pub(super) fn expiry(&self, duration: Option<Span>) -> Option<Time> {
        let duration = duration.or(self.policy.duration_default).or(self.policy.duration_max);
        duration.map(|duration| self.after(duration))
    }

    fn after(&self, span: Span) -> Time {
        // `Ask::check` bounds spans to ten years; a time that overflows all the same never comes.
        self.at.time.checked_add(span).unwrap_or(Time::from_millis(u64::MAX))
    }

    fn refuse(&self, no: NoPick, requester: &ClusterId, ask: &Ask) -> Refusal {
        let why = Box::new(self.why_not(requester, ask));
        match no {
            NoPick::NobodyFits => Refusal::NobodyFits(why),
            NoPick::OnlySuspects => Refusal::OnlySuspects(why),
        }
    }

    pub(super) fn why_not(&self, requester: &ClusterId, ask: &Ask) -> explain::Explanation {
        explain::refused(self.books, requester, ask, self.policy, self.at.time)
    }
}

/// Would all that is held for a requester go beyond 64 bits?
pub(super) fn overflows(account: Option<&Account>, more: &Resources) -> bool {
    account.is_some_and(|account| account.borrowed.checked_add(more).is_err())
}
