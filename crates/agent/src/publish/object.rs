//! The Advertisement object, which people look at; the broker has it over the wire.

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use sublet_core::time::{Span, Time};
use sublet_crds::condition::{self, Reason, Statement, Type};
use sublet_crds::{
    Advertisement, AdvertisementPhase, AdvertisementSpec, AdvertisementStatus, Number, from_time,
};

use crate::kinds::{WriteError, kept};
use crate::peering::WhyNot;
use crate::transport;

use super::presence::Presence;

/// Who writes it, to the API server.
const WRITER: &str = "sublet-agent";
/// How old its times may be while nothing else changes. Everything the broker is told beyond that is
/// not worth a write into etcd.
const KEEP_FRESH: Span = Span::from_secs(300);

/// Why it cannot be read at the start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such kind.
    #[error(
        "this cluster does not know our kinds: install them with \
         `sublet crds --for agent | kubectl apply --server-side -f -`"
    )]
    NoKinds,
    /// Anything else.
    #[error("the Advertisement {namespace}/{name} cannot be read")]
    Read {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// Why.
        source: kube::Error,
    },
}

/// What came of telling the broker.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    /// It keeps it.
    Kept,
    /// It keeps another agent's, and what to do about that.
    Overtaken(&'a str),
    /// It could not be told.
    Failed(&'a transport::Error),
}

/// The object.
pub struct Object {
    api: Api<Advertisement>,
    namespace: String,
    name: String,
    left: Option<Number>,
    status: AdvertisementStatus,
    written: Option<(AdvertisementSpec, AdvertisementStatus, Time)>,
}

impl Object {
    /// The object as somebody before us may have left it.
    pub async fn open(client: &Client, namespace: &str, name: &str) -> Result<Self, Error> {
        let api: Api<Advertisement> = Api::namespaced(client.clone(), namespace);
        let left = match api.get(name).await {
            Ok(left) => Some(left),
            // The server says so of an object; of a kind that it does not have, it says nothing.
            Err(kube::Error::Api(status)) if status.reason == "NotFound" => None,
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(Error::NoKinds),
            Err(source) => {
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                return Err(Error::Read { namespace, name, source });
            }
        };
        let number = left.as_ref().and_then(|left| left.spec.number);
        let status = left.and_then(|left| left.status).unwrap_or_default();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Ok(Self { api, namespace, name, left: number, status, written: None })
    }

    /// The number that was left in it.
    pub fn left(&self) -> Option<Number> {
        self.left
    }

    /// Says whether the cluster lends, and why not.
    pub fn lends(&mut self, why_not: Option<&WhyNot>, now: Time) {
        let (reason, message) = match why_not {
            None => (Reason::Done, String::new()),
            Some(why) => (why.reason, why.message.clone()),
        };
        let (about, holds) = (Type::Lending, Some(why_not.is_none()));
        let lending = Statement { about, holds, reason, message, generation: None };
        condition::say(&mut self.status.conditions, lending, now);
    }

    /// Brings it up to date with what was told, and with what came of it. True if it was written,
    /// false if there was nothing to write.
    pub(super) async fn write(
        &mut self,
        spec: AdvertisementSpec,
        outcome: Outcome<'_>,
        now: Time,
    ) -> Result<bool, WriteError> {
        self.say(outcome, now);
        if self.is_fresh(&spec, now) {
            return Ok(false);
        }
        self.put(spec, now).await?;
        Ok(true)
    }

    /// Watches whether it is there.
    pub(super) fn presence(&self) -> Presence {
        let client = self.api.clone().into_client();
        Presence::of(Api::namespaced(client, &self.namespace), &self.name)
    }

    /// Somebody has deleted it: makes it again, as it was. False if we had not made it yet.
    pub(super) async fn make_again(&mut self, now: Time) -> Result<bool, WriteError> {
        let Some((spec, ..)) = self.written.take() else { return Ok(false) };
        self.put(spec, now).await?;
        Ok(true)
    }

    async fn put(&mut self, spec: AdvertisementSpec, now: Time) -> Result<(), WriteError> {
        let mut status = self.status.clone();
        status.last_update_time = Some(from_time(now));
        let mut object = Advertisement::new(&self.name, spec.clone());
        let writer = PatchParams::apply(WRITER).force();
        let back = self.api.patch(&self.name, &writer, &Patch::Apply(&object)).await?;
        kept("spec", &object, &back)?;
        object.status = Some(status);
        let back = self.api.patch_status(&self.name, &writer, &Patch::Apply(&object)).await?;
        kept("status", &object, &back)?;
        self.written = Some((spec, self.status.clone(), now));
        Ok(())
    }

    /// Is all of it written but the times and the number?
    fn is_fresh(&self, spec: &AdvertisementSpec, now: Time) -> bool {
        let Some((written, status, at)) = &self.written else { return false };
        let timeless = AdvertisementSpec {
            timestamp: written.timestamp.clone(),
            number: written.number,
            ..spec.clone()
        };
        timeless == *written && *status == self.status && now.since(*at) < KEEP_FRESH
    }

    /// In the Go agent's words where it has some.
    fn say(&mut self, outcome: Outcome<'_>, now: Time) {
        let status = &mut self.status;
        status.phase = Some(AdvertisementPhase::Active);
        let is_kept = matches!(outcome, Outcome::Kept);
        status.published = is_kept;
        let (reason, message) = match outcome {
            Outcome::Kept => {
                (Reason::Done, "Advertisement updated and published successfully".to_owned())
            }
            Outcome::Overtaken(advice) => (Reason::Overtaken, advice.to_owned()),
            Outcome::Failed(error) => {
                let reason = match error {
                    transport::Error::NoBroker => Reason::NoBroker,
                    transport::Error::Refused(_) => Reason::Refused,
                    _ => Reason::BrokerUnavailable,
                };
                (reason, error.to_string())
            }
        };
        status.message.clone_from(&message);
        let measured = Statement {
            about: Type::Measured,
            holds: Some(true),
            reason: Reason::Done,
            message: String::new(),
            generation: None,
        };
        condition::say(&mut status.conditions, measured, now);
        let about = Type::Published;
        let published =
            Statement { about, holds: Some(is_kept), reason, message, generation: None };
        condition::say(&mut status.conditions, published, now);
    }
}
