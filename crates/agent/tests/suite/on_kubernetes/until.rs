//! Waiting for a condition, as everything here does.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// No condition of these tests takes as long, even where many programs share a core: one look at an API server
/// that stands still for a moment is given up after half a minute, and begun anew.
pub(super) const PATIENCE: Duration = Duration::from_mins(3);
/// Each look costs an API server and an agent something, and they share the cores with what is waited for.
const PAUSE: Duration = Duration::from_millis(60);
/// What takes long is looked at less often: by this share of what was waited already, and at most so many pauses.
const SHARE: u32 = 8;
const PAUSES_MAX: u32 = 5;
/// One look and its pause count as no more than this: a machine that stood still has not waited.
const TURN_MAX: Duration = Duration::from_secs(2);

/// What is looked for, when it is there.
pub(super) async fn until<T, F>(what: &str, look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    within(PAUSE, PATIENCE, look).await.unwrap_or_else(|| panic!("never came: {what}"))
}

/// The same with such a pause between the first two looks; none if it did not come in this time.
pub(super) async fn within<T, F>(
    pause: Duration,
    limit: Duration,
    mut look: impl FnMut() -> F,
) -> Option<T>
where
    F: Future<Output = Option<T>>,
{
    let mut waited = Duration::ZERO;
    while waited < limit {
        let begun = Instant::now();
        match timeout(limit, look()).await {
            Ok(Some(found)) => return Some(found),
            Ok(None) => sleep((waited / SHARE).clamp(pause, pause * PAUSES_MAX)).await,
            // It hangs, or the machine does: it is looked at once more, and hardly ever a third time.
            Err(_) => waited += limit / 2,
        }
        waited += begun.elapsed().min(TURN_MAX);
    }
    None
}
