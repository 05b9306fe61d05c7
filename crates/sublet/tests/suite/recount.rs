//! What the log says was granted, counted anew by somebody who shares no code with the ledger.

use std::collections::BTreeMap;
use std::path::Path;

use sublet_core::event::Event;
use sublet_core::id::{ReservationId, Revision};
use sublet_core::resources::Resources;
use sublet_log::embedded::Embedded;
use sublet_log::{Log, Record};

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
    pub(crate) amounts: Amounts,
    pub(crate) stand: Stand,
}

/// Everything that was granted, and what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Recount {
    /// What each cluster said it has.
    capacity: BTreeMap<String, Amounts>,
    held: BTreeMap<String, Amounts>,
    pub(crate) grants: BTreeMap<Name, Grant>,
    names: BTreeMap<ReservationId, Name>,
    next: Revision,
    pub(crate) objections: Vec<String>,
}

impl Recount {
    /// Nothing is granted yet.
    pub(crate) fn new(capacity: &[(&str, Amounts)]) -> Self {
        let capacity = capacity.iter().map(|(name, amounts)| ((*name).to_owned(), *amounts));
        Self {
            capacity: capacity.collect(),
            held: BTreeMap::new(),
            grants: BTreeMap::new(),
            names: BTreeMap::new(),
            next: Revision(1),
            objections: Vec::new(),
        }
    }

    /// Reads on in the log of a broker, whether it runs or not.
    pub(crate) fn read_on(&mut self, folder: &Path) {
        let log = Embedded::look(folder).unwrap();
        loop {
            let records = log.read(self.next, 1024).unwrap();
            let Some(last) = records.last() else { return };
            self.next = last.revision().next();
            for event in records.iter().flat_map(Record::events) {
                self.take(event);
            }
        }
    }

    /// How many records were read.
    pub(crate) fn records(&self) -> u64 {
        self.next.0 - 1
    }

    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Reserved { id, requester, key, ask, provider, .. } => {
                let name = (requester.to_string(), key.to_string());
                self.grant(name, *id, provider.to_string(), amounts(&ask.resources));
            }
            Event::Ending { id, .. } => self.end(*id, Stand::Releasing),
            Event::Ended { id, .. } => self.end(*id, Stand::Ended),
            Event::Acknowledged { .. } => {}
            other => self.objections.push(format!("nobody asked for {other:?}")),
        }
    }

    fn grant(&mut self, name: Name, id: ReservationId, provider: String, amounts: Amounts) {
        let [cpu, memory] = self.capacity.get(&provider).copied().unwrap_or_default();
        let held = self.held.entry(provider.clone()).or_default();
        *held = [held[0] + amounts[0], held[1] + amounts[1]];
        if held[0] > cpu || held[1] > memory {
            let why = format!("{id} makes {provider} hold {held:?} of {:?}", [cpu, memory]);
            self.objections.push(why);
        }
        if self.names.insert(id, name.clone()).is_some() {
            self.objections.push(format!("{id} was granted twice"));
        }
        let grant = Grant { id, provider, amounts, stand: Stand::Held };
        if let Some(before) = self.grants.insert(name.clone(), grant) {
            self.objections.push(format!("{name:?} was granted as {} and as {id}", before.id));
        }
    }

    fn end(&mut self, id: ReservationId, to: Stand) {
        let Some(grant) = self.names.get(&id).and_then(|name| self.grants.get_mut(name)) else {
            self.objections.push(format!("{id} ended and never began"));
            return;
        };
        if grant.stand == Stand::Ended || grant.stand == to {
            self.objections.push(format!("{id} was {:?} and is {to:?} again", grant.stand));
            return;
        }
        grant.stand = to;
        if to == Stand::Ended {
            let held = self.held.entry(grant.provider.clone()).or_default();
            *held = [held[0] - grant.amounts[0], held[1] - grant.amounts[1]];
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
