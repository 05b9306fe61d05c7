//! How a process is told to end.

use std::future::Future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Listens from now on; what comes back is done when `SIGTERM` or `SIGINT` came.
pub fn told() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let which = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = which, "ending: finishing what is open");
    })
}
