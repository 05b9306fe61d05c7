//! Who is at the door: connections between their first packet and the end of their handshake.
//!
//! Nobody is known before the handshake is over, so bounds are by address: of one origin only so
//! many may stand there, and fewer may have their handshake done at the same time; the rest of these
//! wait for their turn. So one origin can hold neither all handshakes nor all connections. An origin
//! is an IPv4 address or an IPv6 network of 64 bits, of which anybody has all addresses.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::Limits;

/// Everybody at the door.
pub(crate) struct Door {
    /// Handshakes of all at the same time.
    all: Semaphore,
    origins: Mutex<HashMap<IpAddr, Origin>>,
    most: usize,
    turns: usize,
}

/// What one origin has.
struct Origin {
    standing: usize,
    turns: Arc<Semaphore>,
}

impl Door {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            all: Semaphore::new(limits.handshakes),
            origins: Mutex::default(),
            most: limits.arrivals_per_address,
            turns: limits.handshakes_per_address,
        })
    }

    /// One more stands at the door, if there is room for it.
    pub(crate) fn arrive(self: &Arc<Self>, from: IpAddr) -> Option<Arrival> {
        let from = origin(from);
        let mut origins = self.origins();
        let fresh = || Origin { standing: 0, turns: Arc::new(Semaphore::new(self.turns)) };
        let origin = origins.entry(from).or_insert_with(fresh);
        if origin.standing >= self.most {
            return None;
        }
        origin.standing += 1;
        let turns = Arc::clone(&origin.turns);
        Some(Arrival { door: Arc::clone(self), from, turns })
    }

    fn origins(&self) -> MutexGuard<'_, HashMap<IpAddr, Origin>> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that stands at the door, until this is dropped.
pub(crate) struct Arrival {
    door: Arc<Door>,
    from: IpAddr,
    turns: Arc<Semaphore>,
}

/// A handshake may be made while this is kept.
pub(crate) struct Turn<'a> {
    _own: Option<SemaphorePermit<'a>>,
    _all: Option<SemaphorePermit<'a>>,
}

impl Arrival {
    /// Waits for a turn: first among those of its own origin, so that only whom it could have waits
    /// for a turn of all.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        // Neither is ever closed.
        let own = self.turns.acquire().await.ok();
        Turn { _own: own, _all: self.door.all.acquire().await.ok() }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let mut origins = self.door.origins();
        let Some(origin) = origins.get_mut(&self.from) else { return };
        origin.standing = origin.standing.saturating_sub(1);
        if origin.standing == 0 {
            origins.remove(&self.from);
        }
    }
}

fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            Ipv6Addr::from_bits(network).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(handshakes: usize, per_address: usize, arrivals: usize) -> Arc<Door> {
        Door::new(&Limits {
            handshakes,
            handshakes_per_address: per_address,
            arrivals_per_address: arrivals,
            ..Limits::default()
        })
    }

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_origin_is_an_address_or_a_network_that_one_has() {
        assert_eq!(origin(at("::ffff:10.0.0.1")), at("10.0.0.1"));
        assert_eq!(origin(at("2001:db8:1:2:3:4:5:6")), at("2001:db8:1:2::"));
        assert_ne!(origin(at("2001:db8:1:3::1")), origin(at("2001:db8:1:2::1")));
    }

    #[test]
    fn of_one_origin_only_so_many_stand_at_the_door_and_who_goes_makes_room() {
        let door = door(9, 9, 2);
        let first = door.arrive(at("10.0.0.1"));
        let second = door.arrive(at("10.0.0.1"));
        assert!(first.is_some() && second.is_some());
        assert!(door.arrive(at("10.0.0.1")).is_none());
        assert!(door.arrive(at("10.0.0.2")).is_some());
        drop(first);
        assert!(door.arrive(at("10.0.0.1")).is_some());
        drop(second);
        assert!(door.origins().is_empty());
    }

    #[tokio::test]
    async fn one_origin_cannot_have_all_turns() {
        let door = door(3, 2, 9);
        let same: Vec<_> = (0..5).map(|_| door.arrive(at("10.0.0.1")).unwrap()).collect();
        let (_first, _second) = (same[0].turn().await, same[1].turn().await);
        let mut third = std::pin::pin!(same[2].turn());
        let waits = std::future::poll_fn(|context| {
            std::task::Poll::Ready(third.as_mut().poll(context).is_pending())
        });
        assert!(waits.await, "a third turn for one origin");
        let other = door.arrive(at("10.0.0.2")).unwrap();
        drop(other.turn().await);
    }
}
