//! Those who borrow, wait, resize, ask again and give back, whatever happens to the broker meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sublet_core::id::{Key, ReservationId};
use sublet_wire::Code;
use sublet_wire::client::{Client, Error};
use sublet_wire::v1::{ReservationRequest, Resizing};
use tokio::time::sleep;

use super::shared::{Count, Shared};
use crate::fleet::{UNIT, request};
use crate::journal::Line;
use crate::recount::{Amounts, Name};

/// How long to wait before the broker is tried again.
const AGAIN: Duration = Duration::from_millis(20);
/// What one borrower holds before it gives back.
const HELD_MAX: usize = 3;
/// How long what ends by itself runs, and how long what waits has patience.
const RUNS_FOR: &str = "700ms";
const WAITS_FOR: &str = "1500ms";

fn amounts(units: u64) -> Amounts {
    [units * UNIT[0], units * UNIT[1]]
}

/// One who borrows.
pub(super) struct Borrower {
    shared: Arc<Shared>,
    client: Client,
    who: String,
    number: u64,
    held: VecDeque<(Name, ReservationId)>,
}

impl Borrower {
    pub(super) fn new(shared: Arc<Shared>, client: Client, who: &str, number: u64) -> Self {
        Self { shared, client, who: who.to_owned(), number, held: VecDeque::new() }
    }

    /// Borrows and gives back until told to stop; whatever it has begun it finishes.
    pub(super) async fn run(mut self) {
        for turn in 0.. {
            if self.shared.stops() {
                return;
            }
            let name = (self.who.clone(), format!("w{}-{turn}", self.number));
            match (self.number + turn) % 8 {
                3 => self.let_expire(&name).await,
                5 => self.wait(&name).await,
                7 => self.bury(&name).await,
                _ => self.keep(&name, turn).await,
            }
        }
    }

    /// Borrows, uses, changes, and gives back what it has had for longest.
    async fn keep(&mut self, name: &Name, turn: u64) {
        let units = 1 + (self.number + turn) % 4;
        self.shared.journal().asks(name, amounts(units));
        let granted = ask(&self.shared, &self.client, name, &request([units, units])).await;
        if let Some(id) = granted {
            self.held.push_back((name.clone(), id));
            match turn % 3 {
                0 => drop(ask(&self.shared, &self.client, name, &request([units, units])).await),
                1 => self.activate(name, id).await,
                _ => self.resize(name, id, 1 + units % 4).await,
            }
        }
        if (granted.is_none() || self.held.len() > HELD_MAX)
            && let Some((name, id)) = self.held.pop_front()
        {
            let id = turn.is_multiple_of(2).then_some(id);
            release(&self.shared, &self.client, &name, id).await;
            self.shared.journal().line(&name).done = true;
        }
        if granted.is_none() {
            self.shared.journal().line(name).done = true;
            // What is given back is free when the provider has confirmed.
            sleep(AGAIN).await;
        }
    }

    /// Borrows for a moment, and leaves the end to the broker.
    async fn let_expire(&self, name: &Name) {
        self.shared.journal().asks(name, amounts(1)).ends = true;
        let asked = request_of(self.shared.journal().line(name));
        ask(&self.shared, &self.client, name, &asked).await;
        self.shared.journal().line(name).done = true;
    }

    /// Waits for more than there usually is, and gives back at once what it gets.
    async fn wait(&self, name: &Name) {
        self.shared.journal().asks(name, amounts(8)).waits = true;
        let asked = request_of(self.shared.journal().line(name));
        let id = ask(&self.shared, &self.client, name, &asked).await;
        while let Some(id) = id {
            match self.client.reservation(id).await {
                Ok(now) if now.status.phase == "Pending" => sleep(AGAIN).await,
                Ok(now) => {
                    if !now.target_cluster_id.is_empty() {
                        self.shared.count(Count::Waited);
                        self.shared.journal().granted(name, &now);
                        release(&self.shared, &self.client, name, None).await;
                    }
                    break;
                }
                Err(error) => again(&self.shared, &error).await,
            }
        }
        self.shared.journal().line(name).done = true;
    }

    /// Releases a key that was not used yet: nothing can be had under it any more.
    async fn bury(&self, name: &Name) {
        self.shared.journal().asks(name, amounts(1));
        release(&self.shared, &self.client, name, None).await;
        let key = key(name);
        loop {
            match self.client.reserve_under(&request([1, 1]), &key).await {
                Err(error) if error.code() == Some(Code::KeyReleased) => break,
                Err(error) => again(&self.shared, &error).await,
                Ok(answer) => panic!("{name:?} was buried and is {answer:?}"),
            }
        }
        self.shared.count(Count::Buried);
        self.shared.journal().line(name).done = true;
    }

    async fn activate(&self, name: &Name, id: ReservationId) {
        while let Err(error) = self.client.activate(id).await {
            again(&self.shared, &error).await;
        }
        self.shared.count(Count::Activated);
        self.shared.journal().line(name).activated = true;
    }

    async fn resize(&self, name: &Name, id: ReservationId, units: u64) {
        let number = {
            let mut journal = self.shared.journal();
            let sizes = &mut journal.line(name).sizes;
            sizes.push(amounts(units));
            sizes.len() - 1
        };
        let resizing =
            Resizing { requested_resources: request([units, units]).requested_resources };
        loop {
            match self.client.resize(id, &resizing).await {
                Ok(_) => {
                    self.shared.count(Count::Resized);
                    self.shared.journal().line(name).sized = number;
                    return;
                }
                Err(error) if error.code() == Some(Code::NoSuitableCluster) => return,
                Err(error) => again(&self.shared, &error).await,
            }
        }
    }
}

/// What was asked for.
pub(super) fn request_of(line: &Line) -> ReservationRequest {
    let units = line.sizes[0][0] / UNIT[0];
    ReservationRequest {
        duration: line.ends.then(|| RUNS_FOR.to_owned()),
        wait: line.waits.then(|| WAITS_FOR.to_owned()),
        ..request([units, units])
    }
}

fn key(name: &Name) -> Key {
    name.1.parse().unwrap()
}

/// Asks until there is an answer; none when nobody has room.
pub(super) async fn ask(
    shared: &Shared,
    client: &Client,
    name: &Name,
    request: &ReservationRequest,
) -> Option<ReservationId> {
    let key = key(name);
    loop {
        match client.reserve_under(request, &key).await {
            Ok(answer) if answer.target_cluster_id.is_empty() => {
                // It waits, or has waited in vain.
                let id = answer.id.parse().unwrap();
                shared.journal().line(name).pending.push(id);
                return Some(id);
            }
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

/// Gives back by id, or without one by key.
async fn release(shared: &Shared, client: &Client, name: &Name, id: Option<ReservationId>) {
    shared.journal().line(name).releasing = true;
    loop {
        let released = match id {
            Some(id) => client.release(id).await.map(drop),
            None => client.release_by_key(&key(name)).await.map(drop),
        };
        match released {
            Ok(()) => {
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
