//! The audit lines of what no call asked for: what was decided by the engine itself, when a waiting
//! request fitted, when time was over, when a provider went or came. What a call asks for is written
//! down where it is answered; both have the target [`AUDIT`].

use std::sync::Arc;

use sublet_core::event::Event;
use sublet_process::lines::AUDIT;
use sublet_wire::v1::{actor, reason};
use tokio::sync::mpsc::Receiver;

use crate::engine::{Decided, Told};
use crate::metrics::Metrics;

/// Writes lines until the engine has ended, its last commit included.
pub(crate) async fn run(mut told: Receiver<Told>, metrics: Arc<Metrics>) {
    while let Some(Told { decisions, left_out }) = told.recv().await {
        if left_out > 0 {
            tracing::error!(target: AUDIT, left_out, "decisions without a line: see the log");
        }
        for decided in &decisions {
            if matches!(decided.event, Event::Granted { .. }) {
                metrics.granted.inc();
            }
            line(decided);
        }
    }
}

fn line(Decided { revision, event }: &Decided) {
    match event {
        Event::Granted { id, provider, .. } => {
            tracing::info!(target: AUDIT, %revision, reservation = %id, %provider, "granted");
        }
        Event::Ending { id, reason: why, by, .. } => {
            let (reason, by) = (reason(*why), actor(by));
            tracing::info!(target: AUDIT, %revision, reservation = %id, reason, by, "ending");
        }
        Event::Ended { id, reason: why, by, confirmation, .. } => {
            let (reason, by) = (reason(*why), actor(by));
            tracing::info!(
                target: AUDIT,
                %revision, reservation = %id, reason, by, ?confirmation,
                "ended"
            );
        }
        Event::Adopted { id, requester, provider, .. } => {
            tracing::info!(
                target: AUDIT,
                %revision, reservation = %id, %requester, %provider,
                "adopted"
            );
        }
        Event::Lost { cluster, note } => {
            let (why, by) = (&note.why, actor(&note.by));
            tracing::info!(target: AUDIT, %revision, %cluster, why, by, "provider lost");
        }
        Event::Returned { cluster } => {
            tracing::info!(target: AUDIT, %revision, %cluster, "provider returned");
        }
        Event::Reconciled { cluster, note } => {
            let (why, by) = (&note.why, actor(&note.by));
            tracing::info!(target: AUDIT, %revision, %cluster, why, by, "provider reconciled");
        }
        // Nothing else is decided without a call; if it should be, it is not to go unseen.
        other => tracing::info!(target: AUDIT, %revision, event = ?other, "decided"),
    }
}
