//! Whether the Advertisement object is there: somebody may delete it, and then it is made again soon,
//! and not only when something in it changes.
//!
//! It is watched by its name, and nothing of it is kept but whether it is there.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use sublet_crds::Advertisement;
use tokio::time::{Instant, sleep_until};

use crate::restraint::restrained;

/// So long after it went: whoever deletes it again and again does not make us write as often, and one
/// that is replaced by hand is there by then.
const SOON: Duration = Duration::from_secs(1);

/// What is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// A list begins.
    Listing,
    /// It is there.
    There,
    /// A list is complete.
    Listed,
    /// It was deleted.
    Deleted,
    /// The watch broke, and is opened again.
    Broken,
}

/// Watches for the end of the object.
pub(super) struct Presence {
    signs: BoxStream<'static, Sign>,
    /// Is it in the list that is being told?
    is_listed: bool,
    /// When it is to be said that it is gone.
    due: Option<Instant>,
}

impl Presence {
    /// Watches this one.
    pub(super) fn of(api: Api<PartialObjectMeta<Advertisement>>, name: &str) -> Self {
        let config = Config::default().fields(&format!("metadata.name={name}"));
        let events = restrained(watcher(api, config).default_backoff());
        let mut is_said = false;
        let signs = events.map(move |event| match event {
            // That a list begins is told before it is known whether it can be had.
            Ok(Event::Init) => Sign::Listing,
            Ok(event) => {
                is_said = false;
                match event {
                    Event::Init => Sign::Listing,
                    Event::InitApply(_) | Event::Apply(_) => Sign::There,
                    Event::InitDone => Sign::Listed,
                    Event::Delete(_) => Sign::Deleted,
                }
            }
            Err(error) => {
                if !is_said {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "the Advertisement is not watched, and is tried again; does the role \
                         (deploy/agent/rbac.yaml) allow that?"
                    );
                    is_said = true;
                }
                Sign::Broken
            }
        });
        Self::told(signs.boxed())
    }

    fn told(signs: BoxStream<'static, Sign>) -> Self {
        Self { signs, is_listed: false, due: None }
    }

    /// Returns when it is gone, for a moment at least. Nothing is lost when the future is dropped.
    pub(super) async fn gone(&mut self) {
        loop {
            let due = self.due;
            tokio::select! {
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.due = None;
                    return;
                }
                sign = self.signs.next() => match sign {
                    Some(sign) => self.see(sign, Instant::now()),
                    // A watch never ends; without one, it is written when something changes.
                    None => std::future::pending().await,
                },
            }
        }
    }

    fn see(&mut self, sign: Sign, now: Instant) {
        match sign {
            Sign::Listing => self.is_listed = false,
            Sign::There => (self.is_listed, self.due) = (true, None),
            Sign::Listed if self.is_listed => {}
            Sign::Listed | Sign::Deleted => self.due = Some(now + SOON),
            Sign::Broken => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::stream;

    /// Is it said to be gone after these signs?
    async fn is_gone(signs: &[Sign]) -> bool {
        let signs = stream::iter(signs.to_vec()).chain(stream::pending());
        let mut presence = Presence::told(signs.boxed());
        let patience = SOON + SOON;
        // Asked and not waited for, as in a choice where something else comes first.
        assert!(presence.gone().now_or_never().is_none());
        tokio::time::timeout(patience, presence.gone()).await.is_ok()
    }

    #[tokio::test]
    async fn it_is_gone_when_it_is_deleted_or_missing_from_a_list_and_not_there_again() {
        use Sign::{Broken, Deleted, Listed, Listing, There};
        let (gone, there) = tokio::join!(
            async {
                for signs in [
                    &[Listing, Listed][..],
                    &[Listing, There, Listed, Deleted],
                    &[Listing, There, Listed, Broken, Listing, Listed],
                ] {
                    assert!(is_gone(signs).await, "{signs:?}");
                }
            },
            async {
                for signs in [
                    &[Listing, There, Listed][..],
                    &[Listing, There, Listed, Deleted, There],
                    &[Listing, There, Listed, Broken, Listing, There, Listed],
                    &[Broken],
                ] {
                    assert!(!is_gone(signs).await, "{signs:?}");
                }
            }
        );
        let ((), ()) = (gone, there);
    }
}
