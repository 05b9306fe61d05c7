//! Waiting for a condition, as everything here does.

use std::future::Future;
use std::time::Duration;

/// No condition of these tests takes as long, even where many programs share a core.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(10);

/// What is looked for, when it is there.
pub(super) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    found.await.unwrap_or_else(|_| panic!("never came: {what}"))
}
