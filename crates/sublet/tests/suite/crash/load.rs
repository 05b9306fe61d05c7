//! Those who borrow, ask again and give back, whatever happens to the broker meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sublet_core::id::ReservationId;
use sublet_wire::Code;
use sublet_wire::client::{Client, Error};
use tokio::time::sleep;

use super::shared::{Count, Shared};
use crate::fleet::{UNIT, request};
use crate::recount::Name;

/// How long to wait before the broker is tried again.
const AGAIN: Duration = Duration::from_millis(20);
/// What one borrower holds before it gives back.
const HELD_MAX: usize = 3;

/// Borrows and gives back until told to stop; whatever it has begun it finishes.
pub(super) async fn borrow(shared: Arc<Shared>, who: String, client: Client, number: u64) {
    let mut held = VecDeque::new();
    for turn in 0.. {
        if shared.stops() {
            return;
        }
        let name = (who.clone(), format!("w{number}-{turn}"));
        let units = 1 + (number + turn) % 4;
        shared.journal().asks(&name, [units * UNIT[0], units * UNIT[1]]);
        let granted = ask(&shared, &client, &name, units).await;
        if let Some(id) = granted {
            held.push_back((name.clone(), id));
            if turn % 5 == 0 {
                ask(&shared, &client, &name, units).await;
            }
        }
        if (granted.is_none() || held.len() > HELD_MAX)
            && let Some((name, id)) = held.pop_front()
        {
            release(&shared, &client, &name, id).await;
        }
        if granted.is_none() {
            // What is given back is free when the provider has confirmed.
            sleep(AGAIN).await;
        }
    }
}

/// Asks until there is an answer; none when nobody has room.
pub(super) async fn ask(
    shared: &Shared,
    client: &Client,
    name: &Name,
    units: u64,
) -> Option<ReservationId> {
    let (key, request) = (name.1.parse().unwrap(), request([units, units]));
    loop {
        match client.reserve_under(&request, &key).await {
            Ok(answer) => {
                let id = shared.journal().granted(name, &answer);
                shared.count(Count::Granted);
                return Some(id);
            }
            Err(error) if error.code() == Some(Code::NoSuitableCluster) => {
                shared.count(Count::Refused);
                return None;
            }
            Err(error) => again(shared, &error).await,
        }
    }
}

async fn release(shared: &Shared, client: &Client, name: &Name, id: ReservationId) {
    shared.journal().line(name).releasing = true;
    loop {
        match client.release(id).await {
            Ok(_) => {
                shared.journal().line(name).released = true;
                shared.count(Count::Released);
                return;
            }
            Err(error) => again(shared, &error).await,
        }
    }
}

/// A broker that is away comes back; anything else that it says is wrong.
pub(super) async fn again(shared: &Shared, error: &Error) {
    assert!(error.is_retryable(), "{error:?}");
    shared.count(Count::Unanswered);
    sleep(AGAIN).await;
}
