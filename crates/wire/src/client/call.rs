//! One call: tried again at this broker or another until it is answered, or patience is over.

use bytes::Bytes;
use http::Method;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::transport::{Answer, Call, Transport};
use super::{Client, Error, pause};
use crate::decode::{Fill, decode};
use crate::encode;

/// Why a call failed, and whether the broker may have done it all the same.
pub(super) struct Failed {
    pub(super) error: Error,
    pub(super) doubt: bool,
}

impl Transport {
    /// Tries until there is an answer. Whatever is asked is safe to repeat.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<Answer, Failed> {
        let until = Instant::now() + self.options.patience;
        let mut broker = self.preferred();
        let (mut failures, mut doubt) = (0_u32, false);
        loop {
            let error = match self.attempt(broker, call).await {
                Ok(answer) => {
                    self.prefer(broker);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            failures += 1;
            doubt |= error.leaves_doubt();
            let wait = self.pause(&error, failures);
            let too_long = wait > self.options.wait_max || Instant::now() + wait >= until;
            let over = failures >= self.tries() || too_long;
            // Where one broker is not trusted, or does not trust us, another may: each is tried.
            let has_hope = error.is_retryable() || error.is_tls() && self.is_untried(failures);
            if over || !has_hope {
                return Err(Failed { error, doubt });
            }
            if error.moves_on() {
                broker += 1;
            }
            sleep(wait).await;
        }
    }

    /// Every broker is tried once, however few tries there are.
    fn tries(&self) -> u32 {
        self.options.attempts.max(u32::try_from(self.count()).unwrap_or(u32::MAX))
    }

    /// Is there a broker that was not tried yet?
    fn is_untried(&self, failures: u32) -> bool {
        failures < u32::try_from(self.count()).unwrap_or(u32::MAX)
    }

    /// What the broker asked for; else nothing while another broker was not tried yet.
    fn pause(&self, error: &Error, failures: u32) -> std::time::Duration {
        let rounds = failures / u32::try_from(self.count()).unwrap_or(u32::MAX);
        let is_next_untried = rounds == 0 && error.moves_on();
        match error.retry_after() {
            _ if is_next_untried => std::time::Duration::ZERO,
            Some(wanted) => pause::asked(wanted),
            None => {
                let Self { options, .. } = self;
                pause::after(rounds.saturating_sub(1), options.pause_first, options.pause_max)
            }
        }
    }
}

impl Client {
    pub(super) async fn get<T: Fill + Default>(&self, path: String) -> Result<T, Error> {
        self.answered(&Call::new(Method::GET, path)).await
    }

    pub(super) async fn post<T: Fill + Default>(
        &self,
        path: String,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let body = Bytes::from(encode(body));
        self.answered(&Call { body, ..Call::new(Method::POST, path) }).await
    }

    /// A change whose success says nothing more.
    pub(super) async fn tell(&self, path: String, body: &impl Serialize) -> Result<(), Error> {
        let body = Bytes::from(encode(body));
        let call = Call { body, ..Call::new(Method::POST, path) };
        self.transport.call(&call).await.map(drop).map_err(|failed| failed.error)
    }

    pub(super) async fn answered<T: Fill + Default>(&self, call: &Call<'_>) -> Result<T, Error> {
        let answer = self.transport.call(call).await.map_err(|failed| failed.error)?;
        read(&answer)
    }
}

pub(super) fn read<T: Fill + Default>(answer: &Answer) -> Result<T, Error> {
    decode(&answer.body).map_err(|source| Error::Answer { url: answer.url.clone(), source })
}

/// The path with `{…}` filled in; every template has one place.
pub(super) fn at(template: &str, part: impl std::fmt::Display) -> String {
    match (template.find('{'), template.find('}')) {
        (Some(begin), Some(end)) => {
            format!("{}{part}{}", &template[..begin], &template[end + 1..])
        }
        _ => template.to_owned(),
    }
}

/// A path with these parameters, of those that are given.
pub(super) fn query(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let pairs: Vec<_> = given.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Everything but what RFC 3986 calls unreserved, as `%XX`.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_path_is_filled_in() {
        assert_eq!(at(crate::paths::RENEW, "rsv-a"), "/api/v1/reservations/rsv-a/renew");
        assert_eq!(at(crate::paths::HEALTH, "x"), "/healthz");
    }

    #[test]
    fn parameters_are_escaped_and_left_out_when_not_given() {
        let path = query("/p", &[("key", Some("a&b=ü/".to_owned())), ("limit", None)]);
        assert_eq!(path, "/p?key=a%26b%3D%C3%BC%2F");
        assert_eq!(query("/p", &[("limit", None)]), "/p");
    }
}
