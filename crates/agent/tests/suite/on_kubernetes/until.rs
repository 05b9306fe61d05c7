//! Waiting for a condition, as everything here does.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// No condition of these tests takes as long, even where many programs share a core.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(10);
/// One look and its pause count as no more than this: a machine that stood still has not waited.
const TURN_MAX: Duration = Duration::from_secs(2);

/// What is looked for, when it is there.
pub(super) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        let begun = Instant::now();
        match timeout(PATIENCE, look()).await {
            Ok(Some(found)) => return found,
            Ok(None) => sleep(PAUSE).await,
            // It hangs, or the machine does: it is looked at once more, and hardly ever a third time.
            Err(_) => waited += PATIENCE / 2,
        }
        waited += begun.elapsed().min(TURN_MAX);
    }
    panic!("never came: {what}")
}
