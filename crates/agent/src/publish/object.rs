//! The Advertisement object, which people look at; the broker has it over the wire.

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use sublet_core::time::{Span, Time};
use sublet_crds::condition::{self, Reason, Statement, Type};
use sublet_crds::{Advertisement, AdvertisementSpec, AdvertisementStatus, Number, from_time};

use crate::kinds::{WriteError, kept};
use crate::peering::WhyNot;

use super::presence::Presence;
use super::status::{self, Measuring, Outcome};

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

/// The object.
pub struct Object {
    api: Api<Advertisement>,
    namespace: String,
    name: String,
    /// What somebody before us has left in it.
    left: Option<AdvertisementSpec>,
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
        let (left, status) = left.map(|left| (left.spec, left.status)).unzip();
        let status = status.flatten().unwrap_or_default();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Ok(Self { api, namespace, name, left, status, written: None })
    }

    /// The number that was left in it.
    pub fn left(&self) -> Option<Number> {
        self.left.as_ref()?.number
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
        (measuring, outcome): (&Measuring, Outcome<'_>),
        now: Time,
    ) -> Result<bool, WriteError> {
        status::say(&mut self.status, measuring, outcome, now);
        self.write_if_new(spec, now).await
    }

    /// Says that the cluster cannot be measured. What is known of it stays; if nothing is, `nothing` is
    /// written. True if it was written, false if all of that was said already.
    pub(super) async fn write_unmeasured(
        &mut self,
        nothing: AdvertisementSpec,
        why: &str,
        now: Time,
    ) -> Result<bool, WriteError> {
        status::say_unmeasured(&mut self.status, why, now);
        let known = self.written.as_ref().map(|(spec, ..)| spec).or(self.left.as_ref()).cloned();
        self.write_if_new(known.unwrap_or(nothing), now).await
    }

    async fn write_if_new(
        &mut self,
        spec: AdvertisementSpec,
        now: Time,
    ) -> Result<bool, WriteError> {
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
}
