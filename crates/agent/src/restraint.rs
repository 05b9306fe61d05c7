//! How often somebody tries who may not: an agent under an older role than its own is not let watch
//! something, and that does not change by trying.
//!
//! The pauses of kube's watches do not grow here: each try begins with the word that a list begins, and
//! that counts as a success.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use kube::runtime::watcher::{self, Error, Event};
use tokio::time::sleep;

/// The first pause, and the longest; each is twice the one before. A role that was just applied is in
/// force after a moment.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// How often it was forbidden in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Restraint {
    refusals: u32,
}

impl Restraint {
    /// How long to wait after this, before the next try.
    fn pause<K>(&mut self, event: &watcher::Result<Event<K>>) -> Option<Duration> {
        match event {
            Err(error) if is_forbidden(error) => {
                let doubled = 1_u32.checked_shl(self.refusals);
                let pause = doubled.and_then(|times| PAUSE_FIRST.checked_mul(times));
                self.refusals = self.refusals.saturating_add(1);
                Some(pause.unwrap_or(PAUSE_MAX).min(PAUSE_MAX))
            }
            // It is about to be tried.
            Ok(Event::Init) => None,
            _ => {
                self.refusals = 0;
                None
            }
        }
    }
}

/// The same watch, which is tried later each time while it is forbidden.
pub(crate) fn restrained<K: Send + 'static>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
) -> BoxStream<'static, watcher::Result<Event<K>>> {
    let start = (events.boxed(), Restraint::default(), None::<Duration>);
    stream::unfold(start, |(mut events, mut restraint, pause)| async move {
        if let Some(pause) = pause {
            sleep(pause).await;
        }
        let event = events.next().await?;
        let pause = restraint.pause(&event);
        Some((event, (events, restraint, pause)))
    })
    .boxed()
}

/// Does the API server say that we may not?
pub(crate) fn is_forbidden(error: &Error) -> bool {
    let code = match error {
        Error::InitialListFailed(error)
        | Error::WatchStartFailed(error)
        | Error::WatchFailed(error) => crate::cluster::code(error),
        Error::WatchError(status) => Some(status.code),
        Error::NoResourceVersion => None,
    };
    code == Some(403)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn failed(code: u16) -> watcher::Result<Event<()>> {
        let status = Status { code, ..Status::default() };
        Err(Error::InitialListFailed(kube::Error::Api(Box::new(status))))
    }

    #[test]
    fn who_may_not_tries_later_each_time_and_who_may_again_is_as_new() {
        let mut restraint = Restraint::default();
        let mut last = Duration::ZERO;
        for _ in 0..40 {
            assert_eq!(restraint.pause::<()>(&Ok(Event::Init)), None);
            let pause = restraint.pause(&failed(403)).unwrap();
            assert!(pause > last || pause == PAUSE_MAX, "{pause:?} after {last:?}");
            last = pause;
        }
        assert_eq!(last, PAUSE_MAX);
        assert_eq!(restraint.pause::<()>(&Ok(Event::InitDone)), None);
        assert_eq!(restraint.pause(&failed(403)), Some(PAUSE_FIRST));
        assert_eq!(restraint.pause(&failed(500)), None, "that may be over at once");
        assert_eq!(restraint.pause(&failed(403)), Some(PAUSE_FIRST));
    }
}
