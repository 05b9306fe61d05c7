//! The wall clock of the broker's machine jumps, while it runs and while it does not.
//!
//! Broker time is the last logged time plus elapsed time. So a jump while it runs changes nothing, a
//! clock that is behind at a start is not believed, and one that is far ahead suspends expiries
//! until an operator confirms it.

use std::fs;

use sublet_core::id::{Key, ReservationId};
use sublet_core::time::{Span, Time};
use sublet_wire::Code;
use sublet_wire::client::Error;
use sublet_wire::v1::Reservation;

use crate::house::{Broker, House, advertisement, ask, code, wait_for};
use crate::preload::wrong_clock;

const HOUR: i64 = 3600;

/// A broker whose machine shows whatever time we like.
struct Machine {
    house: House,
    broker: Broker,
    made: u32,
}

impl Machine {
    async fn new() -> Self {
        let house = House::new();
        set(&house, 0);
        let broker = start(&house);
        let machine = Self { house, broker, made: 0 };
        machine.hear().await;
        machine
    }

    /// The wall clock is off by so many seconds from now on.
    fn set(&self, seconds: i64) {
        set(&self.house, seconds);
    }

    /// Killed, and started again when the clock is off by so much.
    async fn restarted(self, seconds: i64) -> Self {
        let Self { house, broker, made } = self;
        drop(broker);
        set(&house, seconds);
        let machine = Self { broker: start(&house), house, made };
        machine.hear().await;
        machine
    }

    async fn hear(&self) {
        let edge = self.house.client("edge", &self.broker);
        edge.advertise(&advertisement(10_000)).await.unwrap();
    }

    async fn reserve(&mut self, duration: Option<&str>) -> Reservation {
        self.made += 1;
        let key: Key = format!("key-{}", self.made).parse().unwrap();
        let shop = self.house.client("shop", &self.broker);
        shop.reserve_under(&ask(duration), &key).await.unwrap()
    }

    async fn look(&self, reservation: &Reservation) -> Reservation {
        let id: ReservationId = reservation.id.parse().unwrap();
        self.house.client("anna", &self.broker).reservation(id).await.unwrap()
    }

    /// Broker time: what a new reservation is stamped with.
    async fn now(&mut self) -> Time {
        created(&self.reserve(None).await)
    }

    /// Waits until broker time has passed a moment by a second, so that everything due was swept.
    async fn pass(&mut self, moment: Time) {
        let after = moment.checked_add(Span::from_secs(1)).unwrap();
        for _ in 0..400 {
            if self.now().await > after {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("broker time never passed {moment:?}");
    }

    /// Waits for the end of a reservation, and says how long after its beginning that was.
    async fn lasted(&self, reservation: &Reservation) -> Span {
        for _ in 0..400 {
            let now = self.look(reservation).await;
            if let Some(ending) = now.status.ending_at {
                assert_eq!(now.status.reason.as_deref(), Some("Expired"), "{now:?}");
                return ending.time().since(created(reservation));
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{} never ended: {}", reservation.id, self.broker.said());
    }

    async fn is_reserved(&self, reservation: &Reservation) -> bool {
        self.look(reservation).await.status.phase == "Reserved"
    }
}

fn set(house: &House, seconds: i64) {
    // Never seen half written.
    fs::write(house.path("clock.new"), seconds.to_string()).unwrap();
    fs::rename(house.path("clock.new"), house.path("clock")).unwrap();
}

fn start(house: &House) -> Broker {
    let mut command = house.broker(&house.path("data"));
    command.env("LD_PRELOAD", wrong_clock()).env("CLOCK_FILE", house.path("clock"));
    house.start(command)
}

/// In TLS 1.3 a refusal comes after the client's side of the handshake, so that the connection breaks
/// instead of an answer; whether the client still sees the reason depends on which came first.
fn is_not_believed(error: &Error) -> bool {
    matches!(error, Error::Tls { .. } | Error::Broken { .. })
}

fn created(reservation: &Reservation) -> Time {
    reservation.created_at.unwrap().time()
}

fn expires(reservation: &Reservation) -> Time {
    reservation.status.expires_at.unwrap().time()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_while_the_broker_runs_changes_nothing() {
    let mut machine = Machine::new().await;
    let (short, long) = (machine.reserve(Some("2s")).await, machine.reserve(Some("1h")).await);
    machine.set(-HOUR);
    let lasted = machine.lasted(&short).await;
    assert!((Span::from_secs(2)..Span::from_secs(30)).contains(&lasted), "{lasted:?}");

    machine.set(48 * HOUR);
    let second = machine.reserve(Some("2s")).await;
    assert!(created(&second).since(created(&short)) < Span::from_secs(300), "time jumped");
    let lasted = machine.lasted(&second).await;
    assert!((Span::from_secs(2)..Span::from_secs(30)).contains(&lasted), "{lasted:?}");
    assert!(machine.is_reserved(&long).await);
    machine.broker.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_behind_at_a_start_is_not_believed() {
    let mut machine = Machine::new().await;
    let (short, long) = (machine.reserve(Some("2s")).await, machine.reserve(Some("1h")).await);
    let mut machine = machine.restarted(-HOUR).await;
    assert!(machine.now().await >= created(&long), "time went back");
    let lasted = machine.lasted(&short).await;
    assert!((Span::from_secs(2)..Span::from_secs(60)).contains(&lasted), "{lasted:?}");
    assert!(machine.is_reserved(&long).await);
    // And then right again: the hour that it was behind makes nothing due.
    let machine = machine.restarted(0).await;
    assert!(machine.is_reserved(&long).await);
    machine.broker.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_far_ahead_at_a_start_ends_nothing_until_an_operator_confirms_it() {
    let mut machine = Machine::new().await;
    let short = machine.reserve(Some("2s")).await;
    let day = machine.reserve(Some("24h")).await;
    let days = machine.reserve(Some("72h")).await;
    let mut machine = machine.restarted(48 * HOUR).await;
    // Its lines are written by a thread of their own.
    wait_for("advice", || machine.broker.said().contains("sublet confirm-clock").then_some(()));
    machine.pass(expires(&short)).await;
    assert!(machine.is_reserved(&short).await, "it expired by a clock that nobody confirmed");
    // What is made now has its time, and is kept as well.
    let late = machine.reserve(Some("1s")).await;
    assert!(created(&late).since(created(&short)) < Span::from_secs(600), "time jumped");

    // A second start changes nothing: what was logged since is not far ahead either.
    let mut machine = machine.restarted(48 * HOUR).await;
    machine.pass(expires(&late)).await;
    assert!(machine.is_reserved(&short).await && machine.is_reserved(&late).await);

    let url = machine.broker.url.clone().unwrap();
    let anna = format!("--cert-path certs/anna --broker-url {url}");
    machine.house.ok(&format!("confirm-clock --why checked {anna}"));
    for ended in [&short, &late, &day] {
        machine.lasted(ended).await;
    }
    assert!(machine.is_reserved(&days).await);
    // By the confirmed clock edge has been silent for two days.
    machine.hear().await;
    let ahead = machine.now().await.since(created(&short));
    assert!(ahead > Span::from_secs(47 * 3600), "the confirmed clock is not used: {ahead:?}");
    machine.broker.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_whose_time_is_over_is_told_so_on_an_open_connection_and_not_let_in_on_a_new_one()
 {
    let machine = Machine::new().await;
    machine.house.ok("ca issue brief --days 1 --out certs/brief");
    let open = machine.house.client("brief", &machine.broker);
    open.provider_instructions().await.unwrap();
    machine.set(48 * HOUR);
    let refused = open.provider_instructions().await.unwrap_err();
    assert_eq!(code(&refused), Some(Code::CertificateRequired), "{refused:?}");
    let new = machine.house.client("brief", &machine.broker);
    let refused = new.provider_instructions().await.unwrap_err();
    assert!(is_not_believed(&refused), "{refused:?}");
    // Before its time is as bad as after it.
    machine.set(-72 * HOUR);
    let new = machine.house.client("brief", &machine.broker);
    let refused = new.provider_instructions().await.unwrap_err();
    assert!(is_not_believed(&refused), "{refused:?}");
    machine.set(0);
    machine.house.client("brief", &machine.broker).provider_instructions().await.unwrap();
    machine.broker.stop();
}
