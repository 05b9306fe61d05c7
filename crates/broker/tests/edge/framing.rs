//! Bytes that are no proper HTTP: each row has its exact answers, nothing is smuggled, and after each
//! the broker still serves.
//!
//! Every row is followed by one good request that asks for the connection to be closed. So the
//! answers always end: with that one's 200 when the connection survived the row, without it when the
//! broker did not trust what came after.

use std::sync::Arc;
use std::time::Duration;

use sublet_broker::limits::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::stage::{Stage, Wish, quick, tls};

const LAST: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// Name, bytes, and what comes back: every status with its code, if it has one.
type Row = (&'static str, Vec<u8>, &'static str);

fn get(what: &'static str, line_and_headers: &str, answers: &'static str) -> Row {
    (what, format!("{line_and_headers}\r\n\r\n").into_bytes(), answers)
}

/// A request for capacity with these headers and this body, byte for byte.
fn post(what: &'static str, headers: &str, body: &str, answers: &'static str) -> Row {
    let text = format!("POST /api/v1/reservations HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{body}");
    (what, text.into_bytes(), answers)
}

#[rustfmt::skip]
fn request_lines() -> Vec<Row> {
    let long = |count| format!("GET /{} HTTP/1.1\r\nHost: x", "a".repeat(count));
    vec![
        get("no HTTP at all",           "rubbish",                                           "400"),
        get("no version",               "GET /healthz",                                      "400"),
        get("a version of the future",  "GET /healthz HTTP/9.9\r\nHost: x",                  "400"),
        get("an older version",         "GET /healthz HTTP/1.0",                             "200"),
        get("the beginning of HTTP/2",  "PRI * HTTP/2.0\r\n\r\nSM",                          ""),
        get("a zero byte",              "GET /\0 HTTP/1.1\r\nHost: x",                       "400"),
        get("a space in the path",      "GET /a b HTTP/1.1\r\nHost: x",                      "400"),
        get("a method that is none",    "G(T /healthz HTTP/1.1\r\nHost: x",                  "400"),
        get("a method in lower case",   "get /healthz HTTP/1.1\r\nHost: x",                  "405 MethodNotAllowed, 200"),
        get("another host",             "GET https://elsewhere/healthz HTTP/1.1\r\nHost: x", "200, 200"),
        get("a tunnel",                 "CONNECT elsewhere:443 HTTP/1.1\r\nHost: x",         "404 NoSuchRoute, 200"),
        get("everything",               "OPTIONS * HTTP/1.1\r\nHost: x",                     "404 NoSuchRoute, 200"),
        get("up, and up",               "GET /api/v1/../../../etc/passwd HTTP/1.1\r\nHost: x", "404 NoSuchRoute, 200"),
        get("up, overlong",             "GET /api/v1/advertisements/%c0%ae%c0%ae HTTP/1.1\r\nHost: x", "400 InvalidParameter, 200"),
        get("a path beyond the limit",  &long(5_000),                                        "414 UriTooLong, 200"),
        get("a path beyond all",        &long(70_000),                                       "431"),
    ]
}

#[rustfmt::skip]
fn headers() -> Vec<Row> {
    let with = |header: &str| format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{header}");
    let many = |count| with(&"X: 1\r\n".repeat(count)).trim_end().to_owned();
    let wide = |count| with(&format!("X: {}", "a".repeat(count)));
    vec![
        get("no host: it decides nothing", "GET /healthz HTTP/1.1",            "200, 200"),
        get("a space in a name",        &with("Bad Header: 1"),                "400"),
        get("a space before the colon", &with("Bad : 1"),                      "400"),
        get("no colon",                 &with("Bad"),                          "400"),
        get("no name",                  &with(": 1"),                          "400"),
        get("a line that goes on",      &with("X: 1\r\n 2"),                   "400"),
        get("a zero byte",              &with("X: \0"),                        "400"),
        get("a lone carriage return",   &with("X: 1\rY: 2"),                   "400"),
        get("more than the limit",      &many(90),                             "431 HeadersTooLarge, 200"),
        get("more than all limits",     &many(200),                            "431"),
        get("wider than the limit",     &wide(20_000),                         "431 HeadersTooLarge, 200"),
        get("wider than all limits",    &wide(70_000),                         "431"),
        get("an upgrade nobody offers", &with("Connection: Upgrade\r\nUpgrade: h2c"), "200, 200"),
        get("a promise nobody knows",   &with("Expect: the-best"),             "200, 200"),
    ]
}

#[rustfmt::skip]
fn lengths() -> Vec<Row> {
    let chunked = "Transfer-Encoding: chunked";
    let inner = "GET /api/v1/instructions HTTP/1.1\r\nHost: x\r\n\r\n";
    let huge = format!("{}\r\n{{\r\n0\r\n\r\n", "f".repeat(17));
    vec![
        post("two lengths",              "Content-Length: 1\r\nContent-Length: 2", "{}",    "400"),
        post("the same length twice",    "Content-Length: 1\r\nContent-Length: 1", "{",     "400 InvalidBody, 200"),
        post("a negative length",        "Content-Length: -1",        "{",                  "400"),
        post("a signed length",          "Content-Length: +1",        "{",                  "400"),
        post("a hexadecimal length",     "Content-Length: 0x1",       "{",                  "400"),
        post("a list of lengths",        "Content-Length: 1, 2",      "{",                  "400"),
        post("a length beyond numbers",  "Content-Length: 99999999999999999999999", "{",    "400"),
        post("no length, no body",       "X: 1",                      "",                   "400 InvalidBody, 200"),
        post("compressed",               "Transfer-Encoding: gzip",   "{",                  "400"),
        post("compressed at the end",    "Transfer-Encoding: chunked, gzip", "{",           "400"),
        post("nearly chunked",           "Transfer-Encoding: xchunked", "0\r\n\r\n",        "400"),
        post("chunked with a space",     "Transfer-Encoding : chunked", "0\r\n\r\n",        "400"),
        // Only the outer one is ever answered, and what comes after it is not looked at.
        post("both, length first", &format!("Content-Length: 4\r\n{chunked}"), &format!("0\r\n\r\n{inner}"), "400 InvalidBody"),
        post("both, chunks first", &format!("{chunked}\r\nContent-Length: 4"), &format!("0\r\n\r\n{inner}"), "400 InvalidBody"),
        post("chunks, and more after them", chunked,                  &format!("0\r\n\r\n{inner}"), "400 InvalidBody"),
        post("a chunk of no length",     chunked,                     "\r\n{\r\n0\r\n\r\n", "400 InvalidBody"),
        post("a chunk of a bad length",  chunked,                     "zz\r\n{\r\n0\r\n\r\n", "400 InvalidBody"),
        post("a chunk of a negative length", chunked,                 "-1\r\n{\r\n0\r\n\r\n", "400 InvalidBody"),
        post("a chunk beyond numbers",   chunked,                     &huge,                "400 InvalidBody"),
        post("a chunk longer than said", chunked,                     "1\r\n{{{{\r\n0\r\n\r\n", "400 InvalidBody"),
        post("a body shorter than said", "Content-Length: 1000",      "{",                  "408 RequestTimeout"),
        post("a body much longer than is read", "Content-Length: 4194305", "{",             "413 BodyTooLarge"),
        post("told to go on",            "Content-Length: 1\r\nExpect: 100-continue", "{",  "100, 400 InvalidBody, 200"),
    ]
}

async fn raw(stage: &Stage, protocol: &[u8]) -> TlsStream<TcpStream> {
    let pair = stage.authority.issue(&Wish::client("c1"));
    let mut config = tls(&stage.authority.pem, Some(&pair));
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(stage.http()).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
}

/// Reads until the broker closes; fails when it does not.
async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut read = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut read)).await;
    // A close without TLS's goodbye is a close all the same.
    drop(end.expect("the broker should have closed"));
    read
}

/// Sends a row and the last request, and gives all answers.
async fn answers(stage: &Stage, bytes: &[u8]) -> String {
    let mut stream = raw(stage, b"http/1.1").await;
    let all = [bytes, LAST.as_bytes()].concat();
    // What is refused early may be closed before all of it was sent.
    drop(stream.write_all(&all).await);
    let text = String::from_utf8_lossy(&rest(&mut stream).await).into_owned();
    let mut said: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.to_ascii_lowercase();
        if let Some(status) = line.find("http/1.").map(|at| &line[at + 9..at + 12]) {
            said.push(status.to_owned());
        }
        if let (Some(code), Some(last)) = (line.strip_prefix("x-sublet-code: "), said.last_mut()) {
            let known = sublet_wire::Code::ALL.iter().map(|code| code.as_str());
            let code = known.into_iter().find(|known| known.eq_ignore_ascii_case(code)).unwrap();
            last.push(' ');
            last.push_str(code);
        }
    }
    said.join(", ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_framing_has_its_exact_answers_and_smuggles_nothing() {
    let limits = Limits { body: Duration::from_millis(500), ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let mut wrong = Vec::new();
    for (what, bytes, expected) in [request_lines(), headers(), lengths()].concat() {
        let found = answers(&stage, &bytes).await;
        if found != expected {
            wrong.push(format!("{what}: {found:?}, not {expected:?}"));
        }
        assert_eq!(answers(&stage, b"").await, "200", "after {what} the broker no longer serves");
    }
    assert_eq!(wrong, Vec::<String>::new());
    stage.end().await;
}

/// A frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What the broker says with its frames before it closes: which streams it resets and why, and why
/// it goes away, by the codes of RFC 9113 §7.
fn farewell(mut bytes: &[u8]) -> String {
    const CODES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum * 256 + usize::from(*byte));
    let mut said = Vec::new();
    while bytes.len() >= 9 {
        let (head, rest) = bytes.split_at(9);
        let (payload, rest) = rest.split_at(number(&head[..3]).min(rest.len()));
        match head[3] {
            3 => said.push(format!("RST_STREAM {}", CODES[number(&payload[..4])])),
            7 => said.push(format!("GOAWAY {}", CODES[number(&payload[4..8])])),
            _ => {}
        }
        bytes = rest;
    }
    said.dedup();
    said.join(", ")
}

/// Frames that are wrong, and what is said before the connection ends. Of settings of an odd length
/// and of headers that cannot be unpacked, RFC 9113 would have a more particular code; the connection
/// ends all the same.
#[rustfmt::skip]
fn frames() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat();
    let after = |frame: Vec<u8>| [begin.clone(), frame].concat();
    let resets = |number: u32| {
        let stream = 2 * number + 1;
        [frame(1, 5, stream, &[0x82, 0x87, 0x84]), frame(3, 0, stream, &[0, 0, 0, 8])].concat()
    };
    vec![
        ("another protocol", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n\r\n\r\n".to_vec(), ""),
        ("settings of a stream",            after(frame(4, 0, 1, &[])),                         "GOAWAY PROTOCOL_ERROR"),
        ("settings of an odd length",       after(frame(4, 0, 0, &[1, 2, 3])),                  "GOAWAY PROTOCOL_ERROR"),
        ("data before headers",             after(frame(0, 0, 1, b"{}")),                       "GOAWAY PROTOCOL_ERROR"),
        ("an even stream",                  after(frame(1, 5, 2, &[0x82])),                     "GOAWAY PROTOCOL_ERROR"),
        ("headers that cannot be unpacked", after(frame(1, 5, 1, &[0xff; 64])),                 "GOAWAY PROTOCOL_ERROR"),
        ("a window of nothing",             after(frame(8, 0, 0, &[0, 0, 0, 0])),               "GOAWAY PROTOCOL_ERROR"),
        ("a window beyond numbers",         after(frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),   "GOAWAY FLOW_CONTROL_ERROR"),
        ("a frame longer than allowed",     after(frame(0, 0, 1, &[0; 1 << 17])),               "GOAWAY FRAME_SIZE_ERROR"),
        ("headers that never begin",        after(frame(9, 0, 1, &[0; 100])),                   "GOAWAY PROTOCOL_ERROR"),
        ("streams made and reset, again and again", after((0..2000).flat_map(resets).collect()), "GOAWAY ENHANCE_YOUR_CALM"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_frames_of_http_2_end_their_connection_with_the_right_code_and_nothing_else() {
    let stage = Stage::new().await;
    let mut wrong = Vec::new();
    for (what, bytes, expected) in frames() {
        let mut stream = raw(&stage, b"h2").await;
        drop(stream.write_all(&bytes).await);
        let said = farewell(&rest(&mut stream).await);
        if said != expected {
            wrong.push(format!("{what}: {said:?}, not {expected:?}"));
        }
        assert_eq!(answers(&stage, b"").await, "200", "after {what} the broker no longer serves");
    }
    assert_eq!(wrong, Vec::<String>::new());
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_drips_is_not_waited_for() {
    let soon = Duration::from_millis(300);
    let limits = Limits { head: soon, body: soon, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let rows = [
        ("headers", "GET /healthz HTTP/1.1\r\nHost: x\r\nX: ".to_owned(), ""),
        ("a body", "POST /api/v1/reservations HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n".into(), "408"),
        ("chunks", "POST /api/v1/reservations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n".into(), "408"),
    ];
    for (what, head, status) in rows {
        let (mut read, mut write) = tokio::io::split(raw(&stage, b"http/1.1").await);
        write.write_all(head.as_bytes()).await.unwrap();
        let drip = async {
            while write.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            std::future::pending::<()>().await;
        };
        let read = tokio::select! {
            read = rest(&mut read) => read,
            () = drip => unreachable!("it drips for ever"),
        };
        let text = String::from_utf8_lossy(&read).into_owned();
        assert_eq!(text.get(9..12).unwrap_or_default(), status, "{what}: {text}");
        assert_eq!(text.contains("RequestTimeout"), status == "408", "{what}: {text}");
        assert_eq!(answers(&stage, b"").await, "200", "after {what} the broker no longer serves");
    }
    stage.end().await;
}
