//! The links under the slices of these tests: made by hand, or by the agents themselves.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::Client;
use sublet_agent::metrics::Metrics;
use sublet_agent::peering::liqo::link::{Keeper, LinkState, Links, Reason, Settings, Trouble};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};
use sublet_wire::v1::Message;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::linking::{Relay, folder};
use super::world::NAMESPACE;
use crate::authority::Authority;

/// How long a link is kept that nobody needs.
const IDLE: Span = Span::from_millis(100);

pub(super) fn clock() -> Time {
    let millis = jiff::Timestamp::now().as_millisecond();
    Time::from_millis(u64::try_from(millis).unwrap())
}

/// By how many milliseconds the agents that link their clusters themselves are ahead of everybody else.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// What time it is for them.
pub(super) fn later() -> Time {
    clock().checked_add(Span::from_millis(AHEAD.load(Ordering::Relaxed))).unwrap()
}

/// So much time passes for them at once.
pub(super) fn pass(time: Span) {
    AHEAD.fetch_add(time.as_millis(), Ordering::Relaxed);
}

/// Links that were made by hand.
#[derive(Default)]
pub(super) struct ByHand {
    /// Whether something is the matter with them.
    pub(super) is_broken: AtomicBool,
    /// How often somebody needed one.
    pub(super) asked: AtomicUsize,
    /// How often somebody said that nobody does.
    pub(super) unused: AtomicUsize,
    /// What happens while somebody says so.
    pub(super) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Links for ByHand {
    fn ensure<'a>(&'a self, _: Side, _: &'a ClusterId) -> BoxFuture<'a, LinkState> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let trouble = Trouble { reason: Reason::LiqoSilent, message: "nobody answers".to_owned() };
        let is_broken = self.is_broken.load(Ordering::Relaxed);
        let state = if is_broken { LinkState::Failed(trouble) } else { LinkState::Ready };
        std::future::ready(state).boxed()
    }

    fn unused<'a>(&'a self, _: Side, _: &'a ClusterId) -> BoxFuture<'a, ()> {
        self.unused.fetch_add(1, Ordering::Relaxed);
        if let Some(happens) = self.meanwhile.lock().unwrap().take() {
            happens();
        }
        std::future::ready(()).boxed()
    }

    fn hear(&self, _: Message) {}

    fn changed(&self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }
}

/// What an agent keeps its links with.
pub(super) struct Own {
    id: ClusterId,
    relay: Relay,
    credentials: TempDir,
}

impl Own {
    /// Of two clusters that can write to each other.
    pub(super) fn pair(names: [&str; 2]) -> [Self; 2] {
        let (authority, relay) = (Authority::new(), Relay::default());
        names.map(|name| Self {
            id: name.parse().unwrap(),
            relay: relay.clone(),
            credentials: folder(&authority, name),
        })
    }

    /// Begins with nothing in memory.
    pub(super) fn begin(
        &self,
        client: &Client,
        metrics: &Arc<Metrics>,
        tasks: &mut JoinSet<()>,
    ) -> Arc<Keeper> {
        let keeper = Arc::new(Keeper::new(Settings {
            client: client.clone(),
            cluster: self.id.clone(),
            namespace: NAMESPACE.to_owned(),
            credentials: self.credentials.path().to_owned(),
            post: self.relay.post_of(self.id.as_str()),
            idle: IDLE,
            clock: later,
            metrics: Arc::clone(metrics),
            hook: None,
        }));
        self.relay.listen(self.id.as_str(), &keeper);
        let running = Arc::clone(&keeper);
        tasks.spawn(async move {
            let (_never, stopping) = watch::channel(false);
            running.run(stopping).await;
        });
        keeper
    }
}
