//! What is kept, for how long, and how much of it.

use sublet_core::time::{Span, Time};

use super::*;
use crate::identity::Caller;

fn id(name: &str) -> ClusterId {
    name.parse().unwrap()
}

fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn post(to: &str, slot: &str, content: &str) -> Posted {
    let (slot, content) = (slot.to_owned(), content.to_owned());
    Posted { to: id(to), slot, content, ttl: Span::from_secs(60) }
}

fn mail(change: impl FnOnce(&mut Limits)) -> Arc<Mail> {
    let mut limits = Limits::default();
    change(&mut limits);
    Arc::new(Mail::new(limits, Arc::new(Metrics::new())))
}

fn put(mail: &Mail, from: &str, post: Posted, now: Duration) -> Put {
    let caller = Caller::Cluster(id(from));
    let identity = Identity { caller, serial: "1".into(), expires_at: Time::default() };
    mail.put(Arc::new(identity), id(from), post, now)
}

/// What a new reader is told.
fn kept(mail: &Arc<Mail>, cluster: &str, now: Duration) -> Vec<String> {
    let (mut told, mut seen) = (Vec::new(), 0);
    while let Some((number, delivery)) = mail.next(&id(cluster), seen, now) {
        seen = number;
        told.push(format!("{}: {}", delivery.message.from, delivery.message.content));
    }
    told
}

#[test]
fn the_newest_of_a_slot_replaces_the_one_before() {
    let mail = mail(|_| {});
    for (slot, content) in [("a", "one"), ("b", "two"), ("a", "three")] {
        put(&mail, "rome", post("milan", slot, content), second(0)).unwrap();
    }
    put(&mail, "turin", post("milan", "a", "four"), second(0)).unwrap();
    assert_eq!(kept(&mail, "milan", second(0)), ["rome: two", "rome: three", "turin: four"]);
    assert_eq!(kept(&mail, "rome", second(0)), Vec::<String>::new());
}

#[test]
fn a_message_is_not_shown_after_its_time_and_nothing_stays_of_it() {
    let mail = mail(|_| {});
    put(&mail, "rome", post("milan", "a", "x"), second(0)).unwrap();
    put(&mail, "rome", post("milan", "b", "y"), second(30)).unwrap();
    assert_eq!(kept(&mail, "milan", second(60)), ["rome: y"]);
    mail.forget(second(60));
    assert_eq!(mail.boxes().all.messages, 1);
    mail.forget(second(90));
    let boxes = mail.boxes();
    assert_eq!(boxes.all, Weight::default());
    assert!(boxes.inboxes.is_empty() && boxes.senders.is_empty() && boxes.ends.is_empty());
}

#[test]
fn there_is_a_bound_per_pair_per_sender_and_in_all() {
    let pair = mail(|limits| limits.messages_per_pair = 2);
    for slot in ["a", "b"] {
        put(&pair, "rome", post("milan", slot, "x"), second(0)).unwrap();
    }
    let full = put(&pair, "rome", post("milan", "c", "x"), second(0)).unwrap_err();
    assert!(full.to_string().contains("kept for milan"), "{full}");
    put(&pair, "rome", post("milan", "a", "again"), second(0)).unwrap();
    put(&pair, "rome", post("turin", "c", "x"), second(0)).unwrap();
    put(&pair, "turin", post("milan", "c", "x"), second(0)).unwrap();
    put(&pair, "rome", post("milan", "c", "x"), second(60)).unwrap();

    let sender = mail(|limits| limits.messages_per_cluster = 1);
    put(&sender, "rome", post("milan", "a", "x"), second(0)).unwrap();
    assert!(put(&sender, "rome", post("turin", "a", "x"), second(0)).is_err());
    put(&sender, "rome", post("milan", "a", "y"), second(0)).unwrap();
    put(&sender, "turin", post("milan", "a", "x"), second(0)).unwrap();

    let long = "x".repeat(16 << 10);
    let bytes = mail(|limits| limits.message_bytes_per_cluster = 20 << 10);
    put(&bytes, "rome", post("milan", "a", &long), second(0)).unwrap();
    assert!(put(&bytes, "rome", post("turin", "a", &long), second(0)).is_err());
    put(&bytes, "turin", post("milan", "a", &long), second(0)).unwrap();

    let all = mail(|limits| limits.message_bytes = 20 << 10);
    put(&all, "rome", post("milan", "a", &long), second(0)).unwrap();
    assert!(put(&all, "turin", post("milan", "a", &long), second(0)).is_err());
    put(&all, "rome", post("milan", "a", &long), second(0)).unwrap();
}

#[test]
fn when_all_is_full_the_oldest_of_whoever_has_most_goes() {
    // Room for four of them.
    let (long, weight) = ("x".repeat(1000), 1000 + 1 + OVERHEAD);
    let mail = mail(|limits| limits.message_bytes = 4 * weight);
    let send = |from: &str, slot: &str| {
        put(&mail, from, post("milan", slot, &long), second(0)).map_err(drop)
    };
    for slot in ["a", "b", "c"] {
        send("rome", slot).unwrap();
    }
    send("turin", "a").unwrap();
    let (oldest, newer) = (1, 2);
    send("venice", "a").unwrap();
    {
        let boxes = mail.boxes();
        let kept = &boxes.inboxes[&id("milan")].kept;
        assert!(!kept.contains_key(&oldest) && kept.contains_key(&newer));
        assert_eq!(boxes.all, Weight { messages: 4, bytes: 4 * weight });
        assert_eq!(boxes.senders[&id("rome")].weight.messages, 2);
        assert_eq!(boxes.senders[&id("rome")].sent.len(), 2);
        assert_eq!(boxes.ends.len(), 4);
    }
    assert!(send("rome", "d").is_err(), "whoever has most takes from nobody");
    assert!(send("turin", "b").is_err(), "nor whoever would have as much");
    send("rome", "b").unwrap();
    send("genoa", "a").unwrap();
    let senders: Vec<_> = kept(&mail, "milan", second(0));
    let of = |name: &str| senders.iter().filter(|told| told.starts_with(name)).count();
    assert_eq!(["rome", "turin", "venice", "genoa"].map(of), [1; 4]);
    assert!(send("pisa", "a").is_err(), "all have the same");
    assert_eq!(kept(&mail, "milan", second(0)), senders, "what is refused changes nothing");
}

#[test]
fn what_is_refused_changes_nothing() {
    let mail = mail(|limits| limits.message_bytes_per_cluster = 1 << 10);
    put(&mail, "rome", post("milan", "a", "x"), second(0)).unwrap();
    assert!(put(&mail, "rome", post("milan", "a", &"y".repeat(1 << 10)), second(0)).is_err());
    assert_eq!(kept(&mail, "milan", second(0)), ["rome: x"]);
}

#[tokio::test]
async fn a_reader_waits_for_what_comes_and_its_inbox_goes_with_it() {
    let mail = mail(|_| {});
    let mut reader = mail.reader(id("milan"));
    let now = || second(0);
    let comes = async {
        tokio::task::yield_now().await;
        put(&mail, "rome", post("milan", "a", "one"), second(0)).unwrap();
    };
    let (told, ()) = tokio::join!(reader.next(now), comes);
    assert_eq!(told.message.content, "one");
    mail.forget(second(60));
    assert_eq!(mail.boxes().inboxes.len(), 1, "it is read");
    put(&mail, "rome", post("milan", "a", "two"), second(60)).unwrap();
    assert_eq!(reader.next(|| second(60)).await.message.content, "two");
    mail.forget(second(120));
    drop(reader);
    assert!(mail.boxes().inboxes.is_empty());
}
