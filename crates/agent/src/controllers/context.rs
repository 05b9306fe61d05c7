//! What every controller works with.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Recorder, Reporter};
use kube::{Api, Client};
use sublet_core::time::Time;
use tokio::sync::watch;

use super::instruction::Record;
use super::notice::Notice;
use super::store::Store;
use crate::metrics::Metrics;
use crate::peering::Peering;
use crate::transport::Broker;

/// Reads the clock; the shell has one place for that.
pub type Clock = fn() -> Time;

/// What has just been done, for whoever wants to stop there in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// A request has its finalizer.
    Finalized,
    /// The broker answered a request, and nothing of that is written down.
    Answered,
    /// The broker has changed the amounts of a reservation, and nothing of that is written down.
    Resized,
    /// The broker has let a reservation run on, and nothing of that is written down.
    Renewed,
    /// The status of a request is written.
    Written,
    /// An instruction is written down.
    Recorded,
    /// An instruction was carried out, and the broker does not know.
    Established,
    /// The broker knows that an instruction was carried out, and nothing of that is written down.
    Told,
    /// It is written down that the broker knows.
    Noted,
    /// An instruction says why it cannot be carried out, and the broker does not know.
    Hindered,
    /// The broker knows that an instruction cannot be carried out.
    Failed,
    /// The capacity was taken down, and nobody knows.
    Withdrawn,
    /// It is written down that the capacity was taken down, and the broker does not know.
    TakenDown,
    /// The broker has released what a deleted request held, and the request is still there.
    Released,
    /// An instruction's object was removed.
    Removed,
}

impl Point {
    /// Every one.
    pub const ALL: [Self; 15] = [
        Self::Finalized,
        Self::Answered,
        Self::Resized,
        Self::Renewed,
        Self::Written,
        Self::Recorded,
        Self::Established,
        Self::Told,
        Self::Noted,
        Self::Hindered,
        Self::Failed,
        Self::Withdrawn,
        Self::TakenDown,
        Self::Released,
        Self::Removed,
    ];
}

/// Called after each [`Point`]; the work goes on when the future ends.
pub type Hook = Arc<dyn Fn(Point) -> BoxFuture<'static, ()> + Send + Sync>;

/// Whether the broker is heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contact {
    /// It was not heard yet.
    #[default]
    Never,
    /// It is heard, for the so many-th time: time to advertise.
    Heard(u64),
    /// It is not heard any more, and why.
    Lost(String),
}

/// What every controller works with.
#[derive(Clone)]
pub struct Context {
    pub(crate) client: Client,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) peering: Arc<dyn Peering>,
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    pub(crate) contact: Arc<watch::Sender<Contact>>,
    pub(crate) hook: Option<Hook>,
    recorder: Recorder,
    metrics: Arc<Metrics>,
}

impl Context {
    /// How long something is left alone of which no news is expected.
    pub(crate) const LONG: Duration = Duration::from_mins(1);

    /// Instructions are kept in `namespace`; requests may be in any.
    pub fn new(
        client: Client,
        broker: Arc<dyn Broker>,
        peering: Arc<dyn Peering>,
        namespace: &str,
        clock: Clock,
    ) -> Self {
        let reporter = Reporter { controller: "sublet-agent".to_owned(), instance: None };
        let recorder = Recorder::new(client.clone(), reporter);
        let contact = Arc::new(watch::channel(Contact::default()).0);
        let namespace = namespace.to_owned();
        let metrics = Arc::new(Metrics::new());
        Self { client, broker, peering, namespace, clock, contact, hook: None, recorder, metrics }
    }

    /// Counts here what is done.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Calls this after each step.
    #[must_use]
    pub fn with_hook(mut self, hook: Hook) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Whether the broker is heard: for probes, and for whoever advertises on every reconnect.
    pub fn contact(&self) -> watch::Receiver<Contact> {
        self.contact.subscribe()
    }

    pub(crate) fn now(&self) -> Time {
        (self.clock)()
    }

    /// How long it is until then, and a moment more.
    pub(crate) fn until(&self, then: Time) -> Duration {
        Duration::from_millis(then.since(self.now()).as_millis()) + Duration::from_millis(10)
    }

    pub(crate) async fn passed(&self, point: Point) {
        if let Some(hook) = &self.hook {
            hook(point).await;
        }
    }

    pub(crate) fn instructions<K: Record>(&self) -> Store<K> {
        Store(Api::namespaced(self.client.clone(), &self.namespace))
    }

    /// Says something to people; that it cannot be said stops nothing.
    pub(crate) async fn publish(&self, about: ObjectReference, notice: Notice) {
        if let Err(error) = self.recorder.publish(&notice.event(), &about).await {
            tracing::debug!(%error, "an Event could not be written");
        }
    }
}
