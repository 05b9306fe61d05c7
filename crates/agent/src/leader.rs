//! Of several agents of one cluster, one works: whoever holds a Lease.
//!
//! As in client-go, the clocks of the others are not believed: a lease is over when it was not
//! renewed for its duration as seen from here. Losing it ends the process, so that what it had begun
//! ends with it; the Deployment starts it again.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use sublet_crds::from_time;
use tokio::time::{Instant, sleep};

use crate::clock;

/// As the Go agent's, so that the two do not work at the same time while one replaces the other.
const NAME: &str = "e90c6511.fluidos.eu";
/// For how long it is held without being renewed.
const DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed.
const RENEW: Duration = Duration::from_secs(5);
/// The holder gives up when it could not renew for so long; before others may take it.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often whoever waits looks.
const RETRY: Duration = Duration::from_secs(2);

/// The lease, and who we are to the others.
pub struct Election {
    api: Api<Lease>,
    candidate: Candidate,
    /// The lease as we wrote it last. Unless somebody has written it since, which is a conflict, it is so
    /// still, and need not be read before it is renewed.
    held: Option<Lease>,
}

/// Who wants the lease, and what it saw of others.
struct Candidate {
    me: String,
    seen: Option<(LeaseSpec, Instant)>,
}

/// What to do about the lease.
#[derive(Debug, PartialEq)]
enum Step {
    /// Hold it, or hold it on.
    Write(LeaseSpec),
    /// Somebody else has it.
    Wait,
}

impl Election {
    /// An election among the agents that keep their objects in this namespace.
    pub fn new(client: &Client, namespace: &str) -> Self {
        let candidate = Candidate { me: name(), seen: None };
        Self { api: Api::namespaced(client.clone(), namespace), candidate, held: None }
    }

    /// Returns when we hold the lease.
    pub async fn won(&mut self) {
        tracing::info!(me = self.candidate.me, "waiting for our turn");
        loop {
            match self.attempt().await {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "the lease cannot be read or written");
                }
            }
            sleep(RETRY).await;
        }
        tracing::info!(me = self.candidate.me, "it is our turn");
    }

    /// Renews the lease; returns when we hold it no longer.
    pub async fn lost(&mut self) {
        let mut held = Instant::now();
        while held.elapsed() < DEADLINE {
            sleep(if held.elapsed() < RENEW { RENEW } else { RETRY }).await;
            let begun = Instant::now();
            match tokio::time::timeout(RETRY, self.attempt()).await {
                Ok(Ok(true)) => held = begun,
                Ok(Ok(false)) => break,
                Ok(Err(_)) | Err(_) => tracing::warn!("the lease could not be renewed"),
            }
        }
        tracing::error!(
            me = self.candidate.me,
            "another agent has the lease, or nobody could renew ours"
        );
    }

    /// Lets go of the lease, so that the next one need not wait for its end.
    pub async fn give_up(&self) {
        let Ok(Some(mut lease)) = self.api.get_opt(NAME).await else { return };
        let Some(spec) = lease.spec.as_mut().filter(|spec| self.candidate.holds(spec)) else {
            return;
        };
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        // If that fails, the others wait for its end.
        drop(self.api.replace(NAME, &PostParams::default(), &lease).await);
    }

    /// True if we hold the lease now.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        if let Some(held) = self.held.take()
            && self.hold(Some(held)).await?
        {
            return Ok(true);
        }
        let found = self.api.get_opt(NAME).await?;
        self.hold(found).await
    }

    /// Writes the lease as ours, if we may have what was found. What somebody else wrote in between is a
    /// conflict, and not ours.
    async fn hold(&mut self, found: Option<Lease>) -> Result<bool, kube::Error> {
        let spec = found.as_ref().and_then(|lease| lease.spec.as_ref());
        let step = self.candidate.step(spec, Instant::now());
        let Step::Write(spec) = step else { return Ok(false) };
        let params = PostParams::default();
        let written = if let Some(mut lease) = found {
            lease.spec = Some(spec);
            self.api.replace(NAME, &params, &lease).await
        } else {
            let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
            self.api.create(&params, &Lease { metadata, spec: Some(spec) }).await
        };
        match written {
            Ok(lease) => {
                self.held = Some(lease);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Candidate {
    fn holds(&self, spec: &LeaseSpec) -> bool {
        spec.holder_identity.as_deref() == Some(&self.me)
    }

    fn step(&mut self, found: Option<&LeaseSpec>, now: Instant) -> Step {
        let moment = MicroTime(from_time(clock::now()).0);
        let held_until = |spec: &LeaseSpec, since: Instant| {
            let seconds = spec.lease_duration_seconds.and_then(|seconds| seconds.try_into().ok());
            since + seconds.map_or(DURATION, Duration::from_secs)
        };
        let Some(spec) = found else { return Step::Write(self.terms(0, moment.clone(), moment)) };
        let transitions = spec.lease_transitions.unwrap_or_default();
        if self.holds(spec) {
            let since = spec.acquire_time.clone().unwrap_or_else(|| moment.clone());
            return Step::Write(self.terms(transitions, since, moment));
        }
        let since = match &self.seen {
            Some((seen, since)) if seen == spec => *since,
            _ => {
                self.seen = Some((spec.clone(), now));
                now
            }
        };
        let free = spec.holder_identity.as_ref().is_none_or(String::is_empty);
        if free || held_until(spec, since) <= now {
            return Step::Write(self.terms(transitions + 1, moment.clone(), moment));
        }
        Step::Wait
    }

    fn terms(&self, transitions: i32, since: MicroTime, now: MicroTime) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: Some(since),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }
}

/// The machine's name, which is the pod's in a pod, and something that no other process has.
fn name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // Without randomness, a restart takes itself for its own predecessor, which does no harm.
    let random = getrandom::u64().unwrap_or(0);
    format!("{}_{random:016x}", host.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(me: &str) -> Candidate {
        Candidate { me: me.to_owned(), seen: None }
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_or_was_not_renewed_for_its_duration() {
        let (mut rome, mut milan) = (candidate("rome"), candidate("milan"));
        let start = Instant::now();
        let Step::Write(first) = rome.step(None, start) else { panic!("it is nobody's") };
        assert_eq!(milan.step(Some(&first), start), Step::Wait);
        assert_eq!(milan.step(Some(&first), start + DURATION / 2), Step::Wait);
        let Step::Write(again) = rome.step(Some(&first), start) else { panic!("it is ours") };
        // Renewed: the wait begins anew, whatever the other clock says.
        let again = LeaseSpec { renew_time: None, ..again };
        assert_eq!(milan.step(Some(&again), start + DURATION), Step::Wait);
        let Step::Write(taken) = milan.step(Some(&again), start + DURATION * 2) else {
            panic!("it is over")
        };
        assert_eq!(taken.holder_identity.as_deref(), Some("milan"));
        assert_eq!(taken.lease_transitions, Some(1));
        assert_eq!(rome.step(Some(&taken), start + DURATION * 2), Step::Wait);
        let free = LeaseSpec { holder_identity: Some(String::new()), ..taken };
        assert!(matches!(rome.step(Some(&free), start), Step::Write(_)));
    }
}
