//! Many at once for little, on a real broker: exactly what fits is granted.
//!
//! Everybody is connected before anybody asks, and then all ask in the same moment. What was granted
//! is counted three times: by the answers, by the log, and by `sublet fsck`.

use std::sync::Arc;

use sublet_core::id::Key;
use sublet_core::resources::Resources;
use sublet_wire::Code;
use sublet_wire::client::{Client, Error};
use sublet_wire::v1::Reservation;
use tokio::runtime::Runtime;
use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fleet::{Fleet, UNIT, request};
use crate::journal::{Journal, audit, unsettled};
use crate::recount::{Amounts, Name, Recount};
use crate::word::advertisement;

/// Connections at most, each of another cluster: with more clients, several share one.
const CONNECTIONS_MAX: usize = 500;
/// Clients that connect at the same time.
const CONNECTING: usize = 64;

/// What one client asks for, in cores and GiB, and how often at once under its key.
#[derive(Clone, Copy)]
struct Wish {
    amounts: [u64; 2],
    times: usize,
}

/// How the rush went.
struct Rush {
    journal: Journal,
    recount: Recount,
    refused: Vec<Amounts>,
    took: std::time::Duration,
}

/// Cores and GiB as the log has them.
fn units([cores, gib]: [u64; 2]) -> Amounts {
    [cores * UNIT[0], gib * UNIT[1]]
}

/// Lets everybody ask at once, and counts.
fn rush(providers: &[(&str, [u64; 2])], wishes: &[Wish]) -> Rush {
    let fleet = Fleet::new();
    let runtime = Runtime::new().unwrap();
    let capacity: Vec<_> = providers.iter().map(|(name, has)| (*name, units(*has))).collect();
    for (name, [cpu, memory]) in &capacity {
        let client = Client::new(fleet.options(name)).unwrap();
        let word = advertisement(name, &Resources::new(*cpu, *memory));
        runtime.block_on(client.advertise(&word)).unwrap();
    }
    let count = wishes.len().min(CONNECTIONS_MAX);
    let name = |number: usize| format!("shop-{number}");
    let clients: Vec<_> =
        (0..count).map(|number| Client::new(fleet.options(&name(number))).unwrap()).collect();
    let named = wishes.iter().enumerate().map(|(number, wish)| {
        ((name(number % count), format!("job-{number}")), clients[number % count].clone(), *wish)
    });
    runtime.block_on(connect(&clients));
    let (answers, took) = runtime.block_on(ask_at_once(named.collect()));
    let (mut journal, mut refused) = (Journal::default(), Vec::new());
    for (name, wish, answers) in answers {
        journal.asks(&name, units(wish.amounts));
        let no = answers.iter().filter(|answer| answer.is_none()).count();
        assert!(no == 0 || no == wish.times, "{name:?} was told yes and no");
        if no > 0 {
            refused.push(units(wish.amounts));
        }
        for answer in answers.iter().flatten() {
            journal.granted(&name, answer);
        }
    }
    let mut recount = Recount::new(&capacity);
    recount.read_on(&fleet.data());
    assert_eq!(audit(&journal, &journal, &recount), Vec::<String>::new());
    assert_eq!(unsettled(&journal, &recount), Vec::<String>::new());
    assert!(fleet.anna.ok("fsck data").contains("state "));
    Rush { journal, recount, refused, took }
}

/// Everybody has a connection afterwards.
async fn connect(clients: &[Client]) {
    let seats = Arc::new(Semaphore::new(CONNECTING));
    let mut tasks = JoinSet::new();
    for client in clients {
        let (client, seats) = (client.clone(), Arc::clone(&seats));
        tasks.spawn(async move {
            let _seat = seats.acquire().await.unwrap();
            client.health().await.unwrap();
        });
    }
    tasks.join_all().await;
}

type Answered = (Name, Wish, Vec<Option<Reservation>>);

/// Nobody asks before everybody can.
async fn ask_at_once(all: Vec<(Name, Client, Wish)>) -> (Vec<Answered>, std::time::Duration) {
    let calls = all.iter().map(|(.., wish)| wish.times).sum::<usize>();
    let barrier = Arc::new(Barrier::new(calls + 1));
    let mut tasks = JoinSet::new();
    for (name, client, wish) in all {
        let barrier = Arc::clone(&barrier);
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            for _ in 0..wish.times {
                let (client, key) = (client.clone(), name.1.parse().unwrap());
                calls.spawn(ask(client, key, wish.amounts, Arc::clone(&barrier)));
            }
            let answers = calls.join_all().await;
            (name, wish, answers)
        });
    }
    barrier.wait().await;
    let begin = Instant::now();
    let answers = tasks.join_all().await;
    (answers, begin.elapsed())
}

/// The reservation, or none when nobody has room; any other answer is wrong.
async fn ask(
    client: Client,
    key: Key,
    amounts: [u64; 2],
    barrier: Arc<Barrier>,
) -> Option<Reservation> {
    barrier.wait().await;
    match client.reserve_under(&request(amounts), &key).await {
        Ok(reservation) => Some(reservation),
        Err(Error::Problem { problem, .. }) if problem.code() == Some(Code::NoSuitableCluster) => {
            None
        }
        Err(error) => panic!("{key}: {error:?}"),
    }
}

/// So many clients at once for one unit.
fn last_unit(clients: usize) -> Rush {
    let rush = rush(&[("edge", [1, 1])], &vec![Wish { amounts: [1, 1], times: 1 }; clients]);
    assert_eq!(rush.journal.0.values().filter(|line| !line.granted.is_empty()).count(), 1);
    assert_eq!(rush.recount.grants.len(), 1);
    assert_eq!(rush.recount.rooms()["edge"], [0, 0]);
    assert_eq!(rush.refused.len(), clients - 1);
    rush
}

#[test]
fn of_ten_at_once_one_gets_the_last_unit() {
    last_unit(10);
}

#[test]
fn of_a_hundred_at_once_one_gets_the_last_unit() {
    last_unit(100);
}

#[test]
fn of_a_thousand_at_once_one_gets_the_last_unit() {
    let rush = last_unit(1000);
    println!("1 000 clients for the last unit: all answered within {:?}", rush.took);
}

#[test]
fn what_is_left_at_the_edge_is_too_little_for_everybody_who_was_refused() {
    // More than is there of both, in sizes that fit badly; each asks twice at once under its key.
    let providers = [("edge", [31, 61]), ("hall", [23, 17]), ("yard", [11, 13])];
    let sizes = (0..300).map(|number| [1 + number % 4, 1 + number / 4 % 5]);
    let wishes: Vec<_> = sizes.map(|amounts| Wish { amounts, times: 2 }).collect();
    let rush = rush(&providers, &wishes);
    assert!(rush.recount.grants.len() < wishes.len(), "there was enough for everybody");
    for (provider, room) in rush.recount.rooms() {
        let fits = |asked: &&Amounts| asked[0] <= room[0] && asked[1] <= room[1];
        let turned_away = rush.refused.iter().find(fits);
        assert_eq!(turned_away, None, "{provider} has still {room:?}");
    }
    println!(
        "600 requests of mixed sizes: {} granted, {} refused, within {:?}, left {:?}",
        rush.recount.grants.len(),
        rush.refused.len(),
        rush.took,
        rush.recount.rooms()
    );
}
