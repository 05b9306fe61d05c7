//! The client against a small server over real TLS, which answers, stalls and breaks as told.

mod authority;
mod server;
mod calls;
mod reserving;
mod streaming;
mod second;
mod renewing;

use std::time::Duration;

use authority::Authority;
use sublet_wire::client::{Client, Options};

/// A client that gives up soon.
fn client(authority: &Authority, urls: &[String]) -> Client {
    let mut options = Options::new(urls.to_vec(), authority.credentials("c1"));
    options.request_timeout = Duration::from_secs(5);
    options.patience = Duration::from_secs(20);
    options.attempts = 3;
    options.pause_first = Duration::from_millis(5);
    options.pause_max = Duration::from_millis(20);
    options.silence = Duration::from_secs(5);
    Client::new(options).expect("a client")
}
