//! The certificates of the metrics: read at the start, and looked at again now and then, so that
//! renewed ones are used without a restart.

use std::sync::Arc;
use std::time::Duration;

use sublet_process::Tls;
use sublet_process::tls::{Error, Places, Reload};
use tokio::sync::watch;

use crate::clock;

/// A Prometheus has one.
const SESSIONS: usize = 16;
/// How often the folder is looked at.
const EVERY: Duration = Duration::from_secs(30);

/// Reads the certificates for the first time.
pub(crate) fn open(places: &Places) -> Result<Arc<Tls>, Error> {
    Tls::open(places.clone(), SESSIONS, clock::now()).map(Arc::new)
}

/// Looks at them again and again until the agent stops. What cannot be used is said once, and the old
/// ones are kept.
pub(crate) async fn watch(tls: Arc<Tls>, mut stopping: watch::Receiver<bool>) {
    let mut refused = None;
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        match tls.reload(clock::now()) {
            Ok(Reload::Same) => refused = None,
            Ok(Reload::New) => {
                refused = None;
                tracing::info!("the certificates of the metrics were renewed");
            }
            Err(error) => {
                let said = error.to_string();
                if refused.as_ref() != Some(&said) {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, "metrics: the old certificates are kept");
                    refused = Some(said);
                }
            }
        }
    }
}
