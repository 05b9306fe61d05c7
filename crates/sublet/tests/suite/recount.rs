//! What the log says was granted, counted anew by somebody who shares no code with the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sublet_core::event::Event;
use sublet_core::id::{ReservationId, Revision};
use sublet_core::reservation::{Ask, Reason};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_log::embedded::Embedded;
use sublet_log::{Log, ReadError};

/// Millicores and bytes.
pub(crate) type Amounts = [u64; 2];
/// Who asked, and under which key.
pub(crate) type Name = (String, String);

/// Where a grant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It runs.
    Held,
    /// It ends, and still takes what it took.
    Releasing,
    /// It takes nothing any more.
    Ended,
}

/// One grant.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) id: ReservationId,
    pub(crate) provider: String,
    /// What both sides are told.
    pub(crate) amounts: Amounts,
    /// What it takes: more than that while a shrink is not confirmed.
    held: Amounts,
    pub(crate) stand: Stand,
    /// Whether its requester confirmed use.
    pub(crate) active: bool,
    /// Why it ends.
    pub(crate) reason: Option<Reason>,
    expires_at: Option<Time>,
    generation: u32,
}

/// One request that waits, or waited in vain.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) id: ReservationId,
    duration: Option<Span>,
    until: Time,
    /// Why it is over.
    pub(crate) over: Option<Reason>,
}

/// Everything that was granted, and what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Recount {
    /// What each cluster said it has.
    capacity: BTreeMap<String, Amounts>,
    held: BTreeMap<String, Amounts>,
    pub(crate) grants: BTreeMap<Name, Grant>,
    pub(crate) waits: BTreeMap<Name, Wait>,
    /// Keys that were released before they were used.
    pub(crate) buried: BTreeSet<Name>,
    names: BTreeMap<ReservationId, Name>,
    /// What the broker gave up remembering, and when.
    pub(crate) forgotten: u64,
    next: Revision,
    pub(crate) objections: Vec<String>,
}

fn plus(a: Amounts, b: Amounts) -> Amounts {
    [a[0] + b[0], a[1] + b[1]]
}

fn minus(a: Amounts, b: Amounts) -> Amounts {
    [a[0] - b[0], a[1] - b[1]]
}

impl Recount {
    /// Nothing is granted yet.
    pub(crate) fn new(capacity: &[(&str, Amounts)]) -> Self {
        let capacity = capacity.iter().map(|(name, amounts)| ((*name).to_owned(), *amounts));
        Self {
            capacity: capacity.collect(),
            held: BTreeMap::new(),
            grants: BTreeMap::new(),
            waits: BTreeMap::new(),
            buried: BTreeSet::new(),
            names: BTreeMap::new(),
            forgotten: 0,
            next: Revision(1),
            objections: Vec::new(),
        }
    }

    /// Reads on in the log of a broker, whether it runs or not. Says up to which revision a snapshot
    /// covers it, and what the first revision is that can still be read.
    pub(crate) fn read_on(&mut self, folder: &Path) -> (Revision, Revision) {
        let log = Embedded::look(folder).unwrap();
        let snapshot = log.snapshot().unwrap().map_or(Revision(0), |found| found.revision());
        let oldest = match log.read(Revision(1), 1) {
            Err(ReadError::Compacted { oldest }) => oldest,
            _ => Revision(1),
        };
        loop {
            let records = log.read(self.next, 1024).expect("the count is not behind the history");
            let Some(last) = records.last() else { return (snapshot, oldest) };
            self.next = last.revision().next();
            for record in &records {
                for event in record.events() {
                    self.take(record.time(), event);
                }
            }
        }
    }

    /// How many records were read.
    pub(crate) fn records(&self) -> u64 {
        self.next.0 - 1
    }

    pub(crate) fn take(&mut self, at: Time, event: &Event) {
        match event {
            Event::Requested { id, requester, key, ask, until, .. } => {
                let name = (requester.to_string(), key.to_string());
                let wait = Wait { id: *id, duration: ask.duration, until: *until, over: None };
                self.begin(&name, *id);
                self.waits.insert(name, wait);
            }
            Event::Reserved { id, requester, key, ask, provider, expires_at, .. } => {
                let name = (requester.to_string(), key.to_string());
                self.begin(&name, *id);
                self.check_end(*id, at, ask, *expires_at);
                self.grant(name, *id, provider.to_string(), (&ask.resources, *expires_at));
            }
            Event::Granted { id, provider, amounts, expires_at, .. } => {
                let waited = self.names.get(id).cloned();
                let Some((name, wait)) = waited.and_then(|name| self.waits.remove_entry(&name))
                else {
                    return self.objections.push(format!("{id} was granted and did not wait"));
                };
                if wait.over.is_some() {
                    self.objections.push(format!("{id} was granted after it waited in vain"));
                }
                let ask = Ask { duration: wait.duration, ..Ask::default() };
                self.check_end(*id, at, &ask, *expires_at);
                self.grant(name, *id, provider.to_string(), (amounts, *expires_at));
            }
            Event::KeyReleased { requester, key } => {
                let name = (requester.to_string(), key.to_string());
                if self.grants.contains_key(&name) || self.waits.contains_key(&name) {
                    self.objections.push(format!("{name:?} was in use and was buried"));
                }
                self.buried.insert(name);
            }
            Event::Forgotten { reservations, tombstones } => {
                for id in reservations {
                    self.forget(*id);
                }
                for (requester, key) in tombstones {
                    self.forgotten += 1;
                    self.buried.remove(&(requester.to_string(), key.to_string()));
                }
            }
            Event::Ended { id, reason, .. } if self.waiting(*id).is_some() => {
                let Some(wait) = self.waiting(*id) else { return };
                let early = *reason == Reason::WaitOver && at < wait.until;
                let twice = wait.over.replace(*reason).is_some();
                if early || twice {
                    self.objections.push(format!("{id} stopped waiting: {early} {twice}"));
                }
            }
            other => self.change(at, other),
        }
    }

    /// What happens to a grant.
    fn change(&mut self, at: Time, event: &Event) {
        let name = event.reservation().and_then(|id| self.names.get(&id));
        let Some(grant) = name.and_then(|name| self.grants.get_mut(name)) else {
            return self.objections.push(format!("nobody asked for {event:?}"));
        };
        let (id, before) = (grant.id, grant.held);
        match event {
            Event::Activated { .. } => grant.active = true,
            Event::Resized { amounts: new, .. } => {
                grant.amounts = amounts(new);
                grant.held = [0, 1].map(|kind| before[kind].max(grant.amounts[kind]));
                grant.generation += 1;
            }
            // Only the newest instruction says how little is enough.
            Event::Acknowledged { generation, .. } => {
                if generation.0 == grant.generation && grant.stand == Stand::Held {
                    grant.held = grant.amounts;
                }
            }
            Event::Ending { reason, .. } => {
                grant.generation += 1;
                self.end(id, at, (*reason, Stand::Releasing));
                return;
            }
            Event::Ended { reason, .. } => return self.end(id, at, (*reason, Stand::Ended)),
            other => self.objections.push(format!("nobody asked for {other:?}")),
        }
        let (now, provider) = (grant.held, grant.provider.clone());
        let held = self.held.entry(provider.clone()).or_default();
        *held = minus(plus(*held, now), before);
        self.check_room(id, &provider);
    }

    fn begin(&mut self, name: &Name, id: ReservationId) {
        if self.names.insert(id, name.clone()).is_some() {
            self.objections.push(format!("{id} was granted twice"));
        }
        if self.buried.contains(name) {
            self.objections.push(format!("{name:?} was buried and came to life as {id}"));
        }
        let before = self.waits.get(name).map(|wait| wait.id);
        if let Some(before) = before.or(self.grants.get(name).map(|grant| grant.id)) {
            self.objections.push(format!("{name:?} was granted as {before} and as {id}"));
        }
    }

    fn grant(
        &mut self,
        name: Name,
        id: ReservationId,
        provider: String,
        (resources, expires_at): (&Resources, Option<Time>),
    ) {
        let amounts = amounts(resources);
        let held = self.held.entry(provider.clone()).or_default();
        *held = plus(*held, amounts);
        self.check_room(id, &provider);
        let grant = Grant {
            id,
            provider,
            amounts,
            held: amounts,
            stand: Stand::Held,
            active: false,
            reason: None,
            expires_at,
            generation: 1,
        };
        self.grants.insert(name, grant);
    }

    fn check_room(&mut self, id: ReservationId, provider: &str) {
        let [cpu, memory] = self.capacity.get(provider).copied().unwrap_or_default();
        let held = self.held.get(provider).copied().unwrap_or_default();
        if held[0] > cpu || held[1] > memory {
            let why = format!("{id} makes {provider} hold {held:?} of {:?}", [cpu, memory]);
            self.objections.push(why);
        }
    }

    /// It runs for as long as was asked, from when it was granted.
    fn check_end(&mut self, id: ReservationId, at: Time, ask: &Ask, expires_at: Option<Time>) {
        let due = ask.duration.map(|duration| at.checked_add(duration).unwrap());
        if due != expires_at {
            self.objections.push(format!("{id} is due at {due:?} and expires at {expires_at:?}"));
        }
    }

    fn end(&mut self, id: ReservationId, at: Time, (reason, to): (Reason, Stand)) {
        let Some(grant) = self.names.get(&id).and_then(|name| self.grants.get_mut(name)) else {
            return self.objections.push(format!("{id} ended and never began"));
        };
        if grant.stand == Stand::Ended || grant.stand == to {
            let why = format!("{id} was {:?} and is {to:?} again", grant.stand);
            return self.objections.push(why);
        }
        if reason == Reason::Expired && grant.expires_at.is_none_or(|due| at < due) {
            self.objections.push(format!("{id} expired at {at:?}, due {:?}", grant.expires_at));
        }
        (grant.stand, grant.reason) = (to, Some(reason));
        if to == Stand::Ended {
            let held = self.held.entry(grant.provider.clone()).or_default();
            *held = minus(*held, grant.held);
        }
    }

    fn waiting(&mut self, id: ReservationId) -> Option<&mut Wait> {
        self.waits.get_mut(self.names.get(&id)?)
    }

    /// Only what is over is forgotten. What was put aside before is not looked for.
    fn forget(&mut self, id: ReservationId) {
        self.forgotten += 1;
        let Some(name) = self.names.remove(&id) else {
            return self.objections.push(format!("{id} was forgotten and nobody knew it"));
        };
        let runs = self.grants.get(&name).is_some_and(|grant| grant.stand != Stand::Ended);
        let waits = self.waits.get(&name).is_some_and(|wait| wait.over.is_none());
        if runs || waits {
            self.objections.push(format!("{id} was forgotten while it ran"));
        }
    }

    /// What is free on each cluster.
    pub(crate) fn rooms(&self) -> BTreeMap<&str, Amounts> {
        let room = |(name, has): (&'_ String, &Amounts)| -> Amounts {
            let held = self.held.get(name).copied().unwrap_or_default();
            [has[0].saturating_sub(held[0]), has[1].saturating_sub(held[1])]
        };
        self.capacity.iter().map(|pair| (pair.0.as_str(), room(pair))).collect()
    }
}

fn amounts(resources: &Resources) -> Amounts {
    [resources.cpu, resources.memory]
}
