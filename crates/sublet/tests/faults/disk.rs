//! The k-th write, sync or truncate goes wrong, in several ways, while clients reserve and release.
//!
//! Then nothing more is acknowledged, who asked is told so with a code, the process ends with a
//! message and a status, and after a restart the truth is found: everything that was acknowledged
//! is there once, and what was in doubt is there once or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sublet_core::id::{Key, ReservationId};
use sublet_wire::Code;
use sublet_wire::client::{Client, Error};
use tokio::task::JoinSet;

use crate::house::{Broker, House, advertisement, ask, code};
use crate::preload::failing_disk;

/// Requests at the same time: more than one, so that batches are shared.
const AT_ONCE: usize = 4;
const ROUNDS: usize = 6;

/// What a client knows of a request that it made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was told that this is reserved.
    Reserved(String),
    /// It was told that this is over.
    Released(String),
    /// It was reserved; whether it is released is not known.
    Leaving(String),
    /// It was told that nobody knows.
    Doubt,
    /// It was told that nothing was done.
    Nothing,
}

/// What all clients know, by key: kept outside of the broker.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) known: BTreeMap<String, Known>,
    /// What clients were told when it went wrong.
    pub(crate) codes: Vec<Option<Code>>,
}

/// What an error says about the request: the codes that a failing disk may lead to, and no others.
fn judge(error: &Error) -> Known {
    match (error, code(error)) {
        (_, Some(Code::Unavailable)) | (Error::Unreachable { .. }, _) => Known::Nothing,
        (_, Some(Code::OutcomeUnknown)) => Known::Doubt,
        // The process ended before it could answer.
        (Error::InDoubt { source, .. }, None) if matches!(**source, Error::Broken { .. }) => {
            Known::Doubt
        }
        _ => panic!("an odd answer of a broker whose disk fails: {error:?}"),
    }
}

impl Journal {
    /// A few clients ask at the same time; says whether all of them were served.
    pub(crate) async fn reserve(&mut self, shop: &Client, round: usize) -> bool {
        let mut asked = JoinSet::new();
        for number in 0..AT_ONCE {
            let (shop, key) = (shop.clone(), format!("job-{round}-{number}"));
            asked.spawn(async move {
                let answer = shop.reserve_under(&ask(None), &name(&key)).await;
                (key, answer)
            });
        }
        let mut served = true;
        for (key, answer) in asked.join_all().await {
            let known = answer.map_or_else(
                |error| {
                    served = false;
                    self.codes.push(code(&error));
                    judge(&error)
                },
                |reservation| Known::Reserved(reservation.id),
            );
            self.known.insert(key, known);
        }
        served
    }

    /// One of the round is released again.
    async fn release(&mut self, shop: &Client, round: usize) -> bool {
        let key = format!("job-{round}-0");
        let Some(Known::Reserved(id)) = self.known.get(&key).cloned() else { return false };
        let answer = shop.release(id.parse::<ReservationId>().unwrap()).await;
        let served = answer.is_ok();
        let known = match answer {
            Ok(_) => Known::Released(id),
            Err(error) => {
                self.codes.push(code(&error));
                Known::Leaving(id)
            }
        };
        self.known.insert(key, known);
        served
    }

    /// After a restart on a sound disk: is it as everybody was told?
    pub(crate) async fn check(&self, house: &House, broker: &Broker, what: &str) {
        let (found, shop) = (house.reservations(broker).await, house.client("shop", broker));
        house.client("edge", broker).advertise(&advertisement(64)).await.unwrap();
        let mut explained = 0;
        for (key, known) in &self.known {
            let under = found.values().find(|one| one.key.as_deref() == Some(key));
            explained += usize::from(under.is_some());
            let id = under.map(|one| one.id.as_str());
            let phase = under.map(|one| one.status.phase.as_str());
            match known {
                Known::Reserved(told) => {
                    assert_eq!(
                        (id, phase),
                        (Some(told.as_str()), Some("Reserved")),
                        "{what} {key}"
                    );
                }
                Known::Released(told) => {
                    assert_eq!(
                        (id, phase),
                        (Some(told.as_str()), Some("Releasing")),
                        "{what} {key}"
                    );
                }
                Known::Leaving(told) => assert_eq!(id, Some(told.as_str()), "{what} {key}"),
                Known::Doubt => assert!(phase.is_none_or(|p| p == "Reserved"), "{what} {key}"),
                Known::Nothing => assert_eq!(id, None, "{what} {key}"),
            }
            // The same key is the same reservation, and never a second one.
            let again = shop.reserve_under(&ask(None), &name(key)).await.unwrap().id;
            assert_eq!(id.unwrap_or(&again), again, "{what} {key}");
        }
        assert_eq!(explained, found.len(), "{what}: somebody has what nobody asked for");
        assert_eq!(house.reservations(broker).await.len(), self.known.len(), "{what}");
    }
}

fn name(key: &str) -> Key {
    key.parse().unwrap()
}

/// Clients work until something goes wrong, or until they are done.
async fn play(house: &House, broker: &Broker) -> Journal {
    let mut journal = Journal::default();
    let (edge, shop) = (house.client("edge", broker), house.client("shop", broker));
    if let Err(error) = edge.advertise(&advertisement(64)).await {
        journal.codes.push(code(&error));
        return journal;
    }
    for round in 0..ROUNDS {
        if !journal.reserve(&shop, round).await || !journal.release(&shop, round).await {
            // Whoever comes now is not acknowledged any more, by a broker on its way out.
            assert!(!journal.reserve(&shop, ROUNDS).await, "acknowledged after a failure");
            break;
        }
    }
    journal
}

/// One broker whose call number `at` goes wrong; says which one that was, if it came so far.
async fn run(house: &House, mode: &str, at: u64) -> Option<String> {
    let data = house.path(&format!("data-{mode}-{at}"));
    let mut command = house.broker(&data);
    command.env("LD_PRELOAD", failing_disk()).env("SHIM_FOLDER", &data);
    command.env("SHIM_MODE", mode).env("SHIM_AT", at.to_string());
    let mut broker = house.start(command);
    let journal =
        if broker.url.is_some() { play(house, &broker).await } else { Journal::default() };
    let hit = broker.said().lines().find_map(|line| Some(line.strip_prefix("shim: ")?.to_owned()));
    let what = format!("{mode} at {at} ({hit:?})");
    let failed = broker.url.is_none() || !journal.codes.is_empty();
    if failed {
        assert!(hit.is_some(), "{what}: it failed although nothing went wrong: {}", broker.said());
        ends_with_a_message(&mut broker, &data, &what);
        let told = |code: &Option<Code>| code.is_some_and(|code| code.status() == 503);
        let served = broker.url.is_some();
        assert!(!served || journal.codes.iter().any(told), "{what}: nobody was told why");
    }
    drop(broker);
    let broker = house.start(house.broker(&data));
    journal.check(house, &broker, &what).await;
    broker.stop();
    let checked = house.ok(&format!("fsck {}", data.display()));
    assert!(checked.contains("state "), "{what}: {checked}");
    fs::remove_dir_all(&data).unwrap();
    hit
}

/// The end of a broker that cannot write: not 0, and the reason, with what it was about.
pub(crate) fn ends_with_a_message(broker: &mut Broker, data: &Path, what: &str) {
    assert_eq!(broker.ended(), Some(1), "{what}: {}", broker.said());
    let said = broker.said();
    let reason = said.lines().find(|line| line.starts_with("sublet: ")).unwrap_or_default();
    let at_start = reason.contains("--data-dir") && reason.contains(&data.display().to_string());
    let later =
        reason.contains("the log cannot be written") || reason.contains("the log cannot be loaded");
    assert!(at_start || later, "{what}: {said}");
    assert!(!said.contains("panicked"), "{what}: {said}");
}

/// Lets calls from all over the life of a broker go wrong, the first ones more closely.
async fn sweep(mode: &str) {
    let house = House::new();
    // The calls before are those that set the folder up; the log's own tests try each of them.
    let (mut at, mut hits) = (14, 0);
    while run(&house, mode, at).await.is_some() {
        hits += 1;
        at += 1 + at / 5;
    }
    assert!(hits > 6, "{mode}: the shim sees too little");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_or_sync_ends_the_broker_and_nothing_acknowledged_is_lost_or_doubled() {
    sweep("eio").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_becomes_full_ends_the_broker_and_nothing_acknowledged_is_lost_or_doubled() {
    sweep("enospc").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_cut_short_ends_the_broker_and_nothing_acknowledged_is_lost_or_doubled() {
    sweep("short").await;
}
