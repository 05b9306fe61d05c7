//! The stream: it resumes where it was cut, and notices when it is dead.

use std::time::Duration;

use sublet_wire::client::{Client, Error, Event, Instructions, Options};
use sublet_wire::limits::LINE_MAX;

use super::authority::Authority;
use super::client;
use super::server::{Reply, Server, json};

const RESET: &str = "{\"type\":\"RESET\",\"cursor\":\"0\"}\n";

fn told(id: &str, cursor: &str) -> String {
    let instruction = format!("{{\"reservationID\":\"{id}\",\"duty\":\"Keep\",\"generation\":1}}");
    format!("{{\"type\":\"INSTRUCTION\",\"cursor\":\"{cursor}\",\"instruction\":{instruction}}}\n")
}

fn bookmark(cursor: &str) -> String {
    format!("{{\"type\":\"BOOKMARK\",\"cursor\":\"{cursor}\"}}\n")
}

/// The next event in a word.
async fn word(stream: &mut Instructions) -> String {
    match stream.next().await {
        Event::Connected => "connected".to_owned(),
        Event::Reset => "reset".to_owned(),
        Event::Instruction(told) => told.reservation_id,
        Event::Message(told) => format!("{} says {}", told.from, told.content),
        Event::Synced => "synced".to_owned(),
        Event::Interrupted(Error::Closed { .. } | Error::Broken { .. }) => "cut".to_owned(),
        Event::Interrupted(Error::Silent { .. }) => "silent".to_owned(),
        Event::Interrupted(Error::Goodbye { .. }) => "goodbye".to_owned(),
        Event::Interrupted(other) => other.to_string(),
    }
}

async fn words(stream: &mut Instructions, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(word(stream).await);
    }
    all
}

fn paths(server: &Server) -> Vec<String> {
    server.seen().into_iter().map(|request| request.path).collect()
}

#[tokio::test]
async fn a_stream_that_is_cut_in_a_line_resumes_after_the_last_whole_one() {
    let authority = Authority::new();
    let server = Server::start(&authority, |count, _| match count {
        0 => Reply::StreamAndCut(format!(
            "{RESET}{}{}{}{}",
            told("a", "3"),
            bookmark("5"),
            told("b", "7"),
            &told("c", "8")[..30]
        )),
        _ => Reply::StreamAndHang(told("c", "8")),
    })
    .await;
    let mut stream = client(&authority, std::slice::from_ref(&server.url)).instructions(None);
    let all = words(&mut stream, 8).await;
    assert_eq!(all, ["connected", "reset", "a", "synced", "b", "cut", "connected", "c"]);
    let after = "/api/v1/instructions?watch=true&after=7";
    assert_eq!(paths(&server), ["/api/v1/instructions?watch=true", after]);
    assert_eq!(stream.cursor().unwrap().as_str(), "8");
}

#[tokio::test]
async fn a_message_comes_as_it_is_and_moves_nothing() {
    let authority = Authority::new();
    let said = r#"{"from":"rome","to":"milan","slot":"a","content":"hello"}"#;
    let line = format!("{{\"type\":\"MESSAGE\",\"message\":{said}}}\n");
    let empty = "{\"type\":\"MESSAGE\"}\n";
    let server = Server::start(&authority, move |count, _| match count {
        0 => Reply::StreamAndCut(format!("{RESET}{line}{}{empty}{line}", bookmark("5"))),
        _ => Reply::StreamAndHang(bookmark("5")),
    })
    .await;
    let mut stream = client(&authority, std::slice::from_ref(&server.url)).instructions(None);
    let all = words(&mut stream, 7).await;
    let told = "rome says hello";
    assert_eq!(all, ["connected", "reset", told, "synced", told, "cut", "connected"]);
    assert_eq!(paths(&server)[1], "/api/v1/instructions?watch=true&after=5");
}

#[tokio::test]
async fn half_a_list_is_no_list() {
    let authority = Authority::new();
    let server = Server::start(&authority, |count, _| match count {
        0 => Reply::StreamAndCut(format!("{RESET}{}", told("a", "3"))),
        _ => Reply::StreamAndHang(format!("{RESET}{}{}", told("a", "3"), bookmark("3"))),
    })
    .await;
    let old = Some("1".parse().unwrap());
    let mut stream = client(&authority, std::slice::from_ref(&server.url)).instructions(old);
    let all = words(&mut stream, 8).await;
    assert_eq!(all, ["connected", "reset", "a", "cut", "connected", "reset", "a", "synced"]);
    let whole = "/api/v1/instructions?watch=true";
    assert_eq!(paths(&server), [&format!("{whole}&after=1"), whole]);
}

#[tokio::test]
async fn a_stream_without_keep_alives_is_dead() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| Reply::StreamAndHang(bookmark("9"))).await;
    let mut options = Options::new(vec![server.url.clone()], authority.credentials("c1"));
    options.silence = Duration::from_millis(100);
    options.pause_first = Duration::from_millis(1);
    let mut stream = Client::new(options).expect("a client").instructions(None);
    let all = words(&mut stream, 5).await;
    assert_eq!(all, ["connected", "synced", "silent", "connected", "synced"]);
    assert_eq!(paths(&server)[1], "/api/v1/instructions?watch=true&after=9");
}

#[tokio::test]
async fn after_a_goodbye_another_broker_is_asked() {
    let authority = Authority::new();
    let goodbye = "{\"type\":\"GOODBYE\",\"cursor\":\"4\"}\n";
    let first = Server::start(&authority, move |_, _| Reply::StreamAndHang(goodbye.into())).await;
    let second = Server::start(&authority, |_, _| Reply::StreamAndHang(told("d", "5"))).await;
    let urls = [first.url.clone(), second.url.clone()];
    let mut stream = client(&authority, &urls).instructions(None);
    assert_eq!(words(&mut stream, 4).await, ["connected", "goodbye", "connected", "d"]);
    assert_eq!(paths(&second), ["/api/v1/instructions?watch=true&after=4"]);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_not_kept() {
    let authority = Authority::new();
    let server = Server::start(&authority, |count, _| match count {
        0 => Reply::StreamAndHang("x".repeat(LINE_MAX + 1)),
        _ => Reply::StreamAndHang(bookmark("1")),
    })
    .await;
    let mut stream = client(&authority, std::slice::from_ref(&server.url)).instructions(None);
    let all = words(&mut stream, 4).await;
    assert!(all[1].ends_with("more than is read"), "{all:?}");
    assert_eq!(all[2..], ["connected", "synced"]);
}

#[tokio::test]
async fn a_refused_stream_is_told_and_tried_again() {
    let authority = Authority::new();
    let revoked = r#"{"error":"revoked","code":"CertificateRevoked"}"#;
    let server = Server::start(&authority, move |count, _| match count {
        0 => json(403, revoked),
        _ => Reply::StreamAndHang(format!("{{\"type\":\"NEWS\",\"x\":1}}\n{}", bookmark("2"))),
    })
    .await;
    let mut stream = client(&authority, std::slice::from_ref(&server.url)).instructions(None);
    assert_eq!(words(&mut stream, 3).await, ["revoked", "connected", "synced"]);
}

#[tokio::test]
async fn an_event_is_not_lost_when_its_future_is_dropped() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| {
        Reply::StreamAndHang(format!("{}{}", told("a", "1"), told("b", "2")))
    })
    .await;
    let mut stream = client(&authority, std::slice::from_ref(&server.url)).instructions(None);
    let mut seen = Vec::new();
    // Each future is polled once and dropped, until something comes.
    while seen.len() < 3 {
        tokio::select! {
            biased;
            event = word(&mut stream) => seen.push(event),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    assert_eq!(seen, ["connected", "a", "b"]);
}
