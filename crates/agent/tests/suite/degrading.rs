//! The way to an old broker: what it cannot do is done without, and nothing fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sublet_agent::transport::{Broker as _, Error, Feed, Http, News, Reach};
use sublet_core::id::{Generation, ReservationId};
use sublet_wire::v1::{Advertisement, Failed, Message, Quantities, Renewal, ReservationRequest};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::authority::Authority;
use crate::old_broker::{OldBroker, reservation};

const ID: &str = "rsv-rome-1794780677613";

async fn next(feed: &mut dyn Feed) -> News {
    tokio::time::timeout(Duration::from_mins(1), feed.next()).await.expect("some news")
}

fn way(broker: &OldBroker, poll: Option<Duration>) -> Http {
    Http::new(broker.authority.options("rome", broker.address), poll).unwrap()
}

fn request() -> ReservationRequest {
    let requested_resources =
        Quantities { cpu: "500m".into(), memory: "256Mi".into(), ..Quantities::default() };
    ReservationRequest { requested_resources, ..ReservationRequest::default() }
}

#[tokio::test]
async fn an_old_brokers_list_is_polled_and_what_leaves_it_is_gone() {
    let broker = OldBroker::new().await;
    let http = way(&broker, Some(Duration::from_millis(20)));
    let mut feed = http.feed();
    assert!(matches!(next(&mut *feed).await, News::Connected));
    assert!(matches!(next(&mut *feed).await, News::Reset(Reach::Lent)));
    assert!(matches!(next(&mut *feed).await, News::Synced));
    broker.change(|script| script.instructions = Some(reservation(ID, "turin", "rome")));
    let order = loop {
        if let News::Order(order) = next(&mut *feed).await {
            break order;
        }
    };
    assert_eq!((order.reservation.as_str(), order.peer.as_str()), (ID, "turin"));
    assert_eq!(order.generation, None);
    assert!(matches!(next(&mut *feed).await, News::Synced));
}

#[tokio::test]
async fn an_old_brokers_list_with_something_unreadable_in_it_is_not_taken_for_whole() {
    let broker = OldBroker::new().await;
    let odd = reservation("rsv-odd", "turin", "rome").replace("500m", "much");
    let list = format!("{odd},{}", reservation(ID, "turin", "rome"));
    broker.change(|script| script.instructions = Some(list));
    let http = way(&broker, Some(Duration::from_millis(20)));
    let mut feed = http.feed();
    while !matches!(next(&mut *feed).await, News::Reset(Reach::Lent)) {}
    assert!(matches!(next(&mut *feed).await, News::Order(order) if order.reservation == ID));
    assert!(matches!(next(&mut *feed).await, News::Unread));
    assert!(matches!(next(&mut *feed).await, News::Synced));
}

#[tokio::test]
async fn a_call_is_tried_once_at_each_broker_and_its_caller_is_not_kept_waiting() {
    let authority = Authority::new();
    let mut options = authority.options("rome", ([127, 0, 0, 1], 1).into());
    options.urls.clear();
    options.attempts = 5;
    let (mut doors, counts) = (JoinSet::new(), [0, 1].map(|_| Arc::new(AtomicUsize::new(0))));
    for count in &counts {
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        options.urls.push(format!("https://localhost:{}", door.local_addr().unwrap().port()));
        let count = Arc::clone(count);
        doors.spawn(async move {
            while let Ok((visitor, _)) = door.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                drop(visitor);
            }
        });
    }
    let http = Http::new(options, None).unwrap();
    let id = ReservationId::FIRST.to_string();
    assert!(http.reservation(&id).await.unwrap_err().is_transient());
    let tried = counts.map(|count| count.load(Ordering::Relaxed));
    assert_eq!(tried, [1, 1]);
}

#[tokio::test]
async fn a_broker_that_is_replaced_by_an_old_one_is_polled_from_then_on() {
    let broker = OldBroker::new().await;
    let stream = "{\"type\":\"RESET\"}\n{\"type\":\"BOOKMARK\",\"cursor\":\"1\"}\n";
    broker.change(|script| script.stream = Some(stream));
    let http = way(&broker, Some(Duration::from_millis(20)));
    let mut feed = http.feed();
    while !matches!(next(&mut *feed).await, News::Synced) {}
    broker.change(|script| script.stream = None);
    while !matches!(next(&mut *feed).await, News::Reset(Reach::Lent)) {}
}

#[tokio::test]
async fn what_comes_with_the_answer_to_an_advertisement_reaches_the_feed() {
    let broker = OldBroker::new().await;
    let http = way(&broker, Some(Duration::from_hours(1)));
    let mut feed = http.feed();
    while !matches!(next(&mut *feed).await, News::Synced) {}
    broker.change(|script| script.piggy_back = Some(reservation(ID, "turin", "rome")));
    http.publish(&Advertisement::default()).await.unwrap();
    assert!(matches!(next(&mut *feed).await, News::Order(order) if order.reservation == ID));
}

#[tokio::test]
async fn what_an_old_broker_has_no_route_for_is_done_without() {
    let broker = OldBroker::new().await;
    let http = way(&broker, None);
    let key = "a-key".parse().unwrap();
    http.ping().await.unwrap();
    let promise = http.reserve(&key, &request()).await.unwrap();
    assert_eq!((promise.id.as_str(), promise.generation), (ID, None));
    assert_eq!(http.reservation(ID).await.unwrap(), None);
    assert_eq!(http.renew(ID, &Renewal::default()).await.unwrap(), None);
    assert_eq!(http.activate(ID).await.unwrap(), None);
    http.acknowledge(ID, Generation(1)).await.unwrap();
    http.fail(ID, &Failed::default()).await.unwrap();
    assert_eq!(http.release(ID).await.unwrap(), None);
    assert!(!http.takes_keys().await.unwrap());
    assert_eq!(http.release_key(&key).await.unwrap(), None);
    let message = Message { to: "turin".into(), ..Message::default() };
    assert!(matches!(http.send(&message).await, Err(Error::NoMessages)));
    assert_eq!(broker.count("POST /api/v1/messages"), 0, "it is not asked for what it cannot do");
}

#[tokio::test]
async fn what_something_in_between_says_is_not_the_brokers_word() {
    let broker = OldBroker::new().await;
    broker.change(|script| script.hidden = true);
    let http = way(&broker, None);
    let key = "a-key".parse().unwrap();
    let ours = ReservationId::FIRST.to_string();
    assert!(http.takes_keys().await.unwrap_err().is_transient(), "nobody knows which it is");
    assert!(http.reserve(&key, &request()).await.unwrap_err().is_transient());
    assert!(http.reservation(&ours).await.unwrap_err().is_transient());
    assert!(http.release_key(&key).await.unwrap_err().is_transient());
    broker.change(|script| script.hidden = false);
    assert!(!http.takes_keys().await.unwrap());
    assert_eq!(http.reservation(&ours).await.unwrap(), None);
    assert_eq!(http.release_key(&key).await.unwrap(), None);
}

#[tokio::test]
async fn one_old_broker_of_several_is_asked() {
    let (first, second) = (OldBroker::new().await, OldBroker::new().await);
    first.change(|script| script.cuts = true);
    let mut options = first.authority.options("rome", first.address);
    options.urls.push(format!("https://localhost:{}", second.address.port()));
    let http = Http::new(options, None).unwrap();
    let error = http.reserve(&"a-key".parse().unwrap(), &request()).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    assert_eq!(second.count("POST /api/v1/reservations"), 0);
}

#[tokio::test]
async fn an_old_broker_that_is_not_polled_says_that_it_lists_nothing() {
    let broker = OldBroker::new().await;
    let http = way(&broker, None);
    let mut feed = http.feed();
    assert!(matches!(next(&mut *feed).await, News::Connected));
    assert!(matches!(next(&mut *feed).await, News::Reset(Reach::Nothing)));
    assert!(matches!(next(&mut *feed).await, News::Synced));
    broker.change(|script| script.piggy_back = Some(reservation(ID, "turin", "rome")));
    http.publish(&Advertisement::default()).await.unwrap();
    assert!(matches!(next(&mut *feed).await, News::Order(order) if order.reservation == ID));
}

#[tokio::test]
async fn an_old_broker_is_never_asked_twice_for_one_reservation() {
    let broker = OldBroker::new().await;
    broker.change(|script| script.cuts = true);
    let http = way(&broker, None);
    let error = http.reserve(&"a-key".parse().unwrap(), &request()).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    assert_eq!(broker.count("POST /api/v1/reservations"), 1);
}
