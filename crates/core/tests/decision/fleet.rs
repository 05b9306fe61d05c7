//! Books, a policy and a clock, with short words for what the tests of the decision do to them.

use sublet_core::advertisement::Advertisement;
use sublet_core::books::Books;
use sublet_core::decision::{NoPick, Pick, decide};
use sublet_core::event::{Event, Note};
use sublet_core::id::{ClusterId, ReservationId, Revision};
use sublet_core::ledger::Stamp;
use sublet_core::plan::{Command, Refusal, Reply, plan};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};

pub(crate) const GI: u64 = 1 << 30;
pub(crate) const MI: u64 = 1 << 20;

pub(crate) fn id(name: &str) -> ClusterId {
    name.parse().unwrap()
}

pub(crate) fn ask(cpu: u64, memory: u64) -> Ask {
    Ask { resources: Resources::new(cpu, memory), ..Ask::default() }
}

pub(crate) fn note() -> Note {
    Note { by: Actor::Operator("root".into()), why: "test".into() }
}

#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) books: Books,
    pub(crate) policy: Policy,
    pub(crate) now: Time,
    revision: u64,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let now = Time::from_millis(1_700_000_000_000);
        Self { books: Books::default(), policy: Policy::default(), now, revision: 0 }
    }

    /// A cluster with so much of which so much is free.
    pub(crate) fn with(mut self, name: &str, has: Resources, free: Resources) -> Self {
        let taken = has.checked_sub(&free).unwrap();
        self.hear(Advertisement::plain(id(name), has, taken));
        self
    }

    pub(crate) fn hear(&mut self, advertisement: Advertisement) {
        let advertisement = advertisement.validated().unwrap();
        self.books.hear(advertisement, self.now, &self.policy.silence);
    }

    /// The newest word of a cluster, to be said again with changes.
    pub(crate) fn word(&self, name: &ClusterId) -> Advertisement {
        self.books.market().entry(name).unwrap().advertisement.clone()
    }

    pub(crate) fn wait(&mut self, span: Span) {
        self.now = self.now.checked_add(span).unwrap();
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { revision: Revision(self.revision + 1), time: self.now }
    }

    pub(crate) fn apply(&mut self, event: &Event) {
        self.books.apply(self.stamp(), event).unwrap();
        self.revision += 1;
    }

    pub(crate) fn decide(&self, requester: &str, ask: &Ask) -> Result<Pick, NoPick> {
        decide(&self.books, &id(requester), ask, &self.policy, self.now)
    }

    /// Who is chosen.
    pub(crate) fn pick(&self, requester: &str, ask: &Ask) -> Option<String> {
        self.decide(requester, ask).ok().map(|pick| pick.provider.to_string())
    }

    /// Plans a request and applies what comes of it; the provider that holds it, if any.
    pub(crate) fn reserve(
        &mut self,
        requester: &str,
        ask: &Ask,
    ) -> Result<(ReservationId, Option<ClusterId>), Refusal> {
        let key = format!("key-{}", self.revision).parse().unwrap();
        let command =
            Command::Reserve { requester: id(requester), key, ask: ask.clone(), explain: true };
        let plan = plan(&self.books, &command, &self.policy, self.stamp())?;
        let stamp = self.stamp();
        for event in &plan.events {
            self.books.apply(stamp, event).unwrap();
        }
        self.revision += 1;
        let Reply::Reservation { id, .. } = plan.reply else { panic!("{:?}", plan.reply) };
        let grant = self.books.ledger().reservation(id).and_then(|r| r.grant().cloned());
        Ok((id, grant.map(|grant| grant.provider)))
    }
}
