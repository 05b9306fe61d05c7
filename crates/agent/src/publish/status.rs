//! What the status of the Advertisement object says: pure. In the Go agent's words where it has some.

use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_crds::condition::{self, Reason, Statement, Type};
use sublet_crds::{AdvertisementPhase, AdvertisementStatus};

use crate::controllers::cut;
use crate::transport;

/// As much of the words of others as somebody reads.
const WORDS_MAX: usize = 1024;

/// What came of telling the broker.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    /// It keeps it.
    Kept,
    /// It keeps another agent's, and what to do about that.
    Overtaken(&'a str),
    /// It could not be told.
    Failed(&'a transport::Error),
}

/// What came of measuring.
#[derive(Clone, Debug, Default)]
pub(super) struct Measuring {
    /// Why it cannot be measured now: the figures are those of before.
    pub(super) blind: Option<String>,
    /// How many amounts could not be read.
    pub(super) unread: usize,
    /// How many kinds of resources are not told, because there are too many.
    pub(super) left_out: usize,
}

impl Measuring {
    /// Whether all of it was measured, or what is missing.
    fn words(&self) -> (bool, Reason, String) {
        let Self { blind, unread, left_out } = self;
        match (blind, unread, left_out) {
            (Some(why), ..) => (false, Reason::MeasuringFailed, failed(why)),
            (None, 0, 0) => (true, Reason::Done, String::new()),
            (None, 0, count) => {
                let most = Resources::EXTENDED_MAX;
                let why = format!("{count} kinds of resources are not told: at most {most} are");
                (false, Reason::KindsLeftOut, why)
            }
            (None, count, _) => {
                let why = format!(
                    "{count} amounts of nodes, pods or instructions cannot be read, and are not counted: the log of \
                     the agent names them"
                );
                (false, Reason::UnreadableAmounts, why)
            }
        }
    }
}

/// The cluster was told to the broker, or was not.
pub(super) fn say(
    status: &mut AdvertisementStatus,
    measuring: &Measuring,
    outcome: Outcome<'_>,
    now: Time,
) {
    let is_kept = matches!(outcome, Outcome::Kept);
    let (reason, message) = match outcome {
        Outcome::Kept => {
            (Reason::Done, "Advertisement updated and published successfully".to_owned())
        }
        Outcome::Overtaken(advice) => (Reason::Overtaken, advice.to_owned()),
        Outcome::Failed(error @ transport::Error::NoBroker) => {
            (Reason::NoBroker, error.to_string())
        }
        Outcome::Failed(error @ transport::Error::Refused(_)) => {
            (Reason::Refused, error.to_string())
        }
        Outcome::Failed(error) => {
            let why = format!("Metrics collected but broker unreachable: {error}");
            (Reason::BrokerUnavailable, why)
        }
    };
    status.published = is_kept;
    let (is_measured, why, missing) = measuring.words();
    let is_blind = measuring.blind.is_some();
    status.phase =
        Some(if is_blind { AdvertisementPhase::Error } else { AdvertisementPhase::Active });
    status.message.clone_from(if is_blind { &missing } else { &message });
    state(status, Type::Measured, (is_measured, why, missing), now);
    state(status, Type::Published, (is_kept, reason, message), now);
}

/// There is nothing to tell the broker, because the cluster cannot be measured.
pub(super) fn say_unmeasured(status: &mut AdvertisementStatus, why: &str, now: Time) {
    status.published = false;
    status.phase = Some(AdvertisementPhase::Error);
    status.message = failed(why);
    for about in [Type::Measured, Type::Published] {
        state(status, about, (false, Reason::MeasuringFailed, failed(why)), now);
    }
}

fn failed(why: &str) -> String {
    format!("Failed to collect metrics: {}", cut(why, WORDS_MAX))
}

fn state(
    status: &mut AdvertisementStatus,
    about: Type,
    (holds, reason, message): (bool, Reason, String),
    now: Time,
) {
    let statement = Statement { about, holds: Some(holds), reason, message, generation: None };
    condition::say(&mut status.conditions, statement, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_794_780_000_000);

    /// The status and the reason of one of its conditions.
    fn said(status: &AdvertisementStatus, about: Type) -> (&str, &str) {
        let about = about.to_string();
        let one = status.conditions.iter().find(|one| one.type_ == about).unwrap();
        (&one.status, &one.reason)
    }

    fn after(measuring: &Measuring, outcome: Outcome<'_>) -> AdvertisementStatus {
        let mut status = AdvertisementStatus::default();
        say(&mut status, measuring, outcome, NOW);
        status
    }

    #[test]
    fn what_the_go_agent_says_is_said_in_its_words() {
        let all = Measuring::default();
        let kept = after(&all, Outcome::Kept);
        assert_eq!(kept.message, "Advertisement updated and published successfully");
        assert_eq!((kept.phase, kept.published), (Some(AdvertisementPhase::Active), true));
        let away = transport::Error::Transient { why: "away".to_owned(), retry_after: None };
        let away = after(&all, Outcome::Failed(&away));
        assert!(away.message.starts_with("Metrics collected but broker unreachable: "));
        assert_eq!((away.phase, away.published), (Some(AdvertisementPhase::Active), false));
        assert_eq!(said(&away, Type::Published), ("False", "BrokerUnavailable"));
        assert_eq!(said(&away, Type::Measured), ("True", "Done"));
        let mut blind = kept;
        say_unmeasured(&mut blind, "pods: forbidden", NOW);
        assert_eq!(blind.message, "Failed to collect metrics: pods: forbidden");
        assert_eq!((blind.phase, blind.published), (Some(AdvertisementPhase::Error), false));
    }

    #[test]
    fn what_is_not_measured_is_a_condition_with_a_reason_until_it_is() {
        let blind = Some("nodes: forbidden".to_owned());
        for (measuring, phase, reason) in [
            (Measuring { unread: 1, ..Measuring::default() }, "Active", "UnreadableAmounts"),
            (Measuring { left_out: 1, ..Measuring::default() }, "Active", "KindsLeftOut"),
            (Measuring { blind, ..Measuring::default() }, "Error", "MeasuringFailed"),
        ] {
            let mut status = after(&measuring, Outcome::Kept);
            assert_eq!(said(&status, Type::Measured), ("False", reason));
            assert_eq!(said(&status, Type::Published), ("True", "Done"), "the broker has it");
            assert_eq!(format!("{:?}", status.phase.unwrap()), phase);
            say(&mut status, &Measuring::default(), Outcome::Kept, NOW);
            assert_eq!(said(&status, Type::Measured), ("True", "Done"));
            assert_eq!(status.phase, Some(AdvertisementPhase::Active));
        }
    }
}
