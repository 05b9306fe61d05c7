//! What is remembered of a pair from one round to the next, and for how long.

use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};

use super::talk::Talk;
use crate::relay::{Error, Opened};

/// How long a pair is remembered of which there is nothing, for what was heard too early.
const REMEMBERED: Span = Span::from_secs(120);

/// Something of either direction.
#[derive(Debug, Default)]
pub(super) struct Both<T> {
    pub(super) provider: T,
    pub(super) requester: T,
}

impl<T> Both<T> {
    pub(super) fn of(&self, side: Side) -> &T {
        match side {
            Side::Provider => &self.provider,
            Side::Requester => &self.requester,
        }
    }

    pub(super) fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Provider => &mut self.provider,
            Side::Requester => &mut self.requester,
        }
    }
}

/// What is remembered of a pair from round to round.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) talks: Both<Talk>,
    pub(super) mail: Both<Option<Opened>>,
    /// When the last letter came.
    heard_at: Option<Time>,
    /// How often in a row nothing had happened yet.
    pub(super) polls: u32,
    /// Whether it is known that there is no link yet: then nobody minds a look that is a moment old. One
    /// that was there is not said to be gone by such a look.
    pub(super) is_missing: Both<bool>,
}

impl Memory {
    /// A letter came. What waits here to be read is not heard again by waiting, and gives way to what
    /// was sent later alone.
    pub(super) fn hear(&mut self, side: Side, opened: Opened, now: Time) -> Result<(), Error> {
        let expires_at = opened.letter.header.expires_at;
        let waiting = self.mail.of_mut(side);
        if waiting.as_ref().is_some_and(|known| known.letter.header.expires_at >= expires_at) {
            return Err(Error::Stale);
        }
        *waiting = Some(opened);
        self.heard_at = Some(now);
        Ok(())
    }

    /// For how long a pair of which there is nothing is still remembered; none if it is not.
    pub(super) fn left(&self, now: Time) -> Option<Span> {
        let heard = now.since(self.heard_at?).as_millis();
        let left = REMEMBERED.as_millis().saturating_sub(heard);
        (left > 0).then_some(Span::from_millis(left))
    }
}

#[cfg(test)]
mod tests {
    use sublet_core::id::ClusterId;

    use super::*;
    use crate::relay::{Content, Header, LinkId, SKEW};

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn call(expires_at: Time) -> Opened {
        let cluster = |name: &str| name.parse::<ClusterId>().unwrap();
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let header = Header {
            from: cluster("rome"),
            to: cluster("milan"),
            requester: cluster("rome"),
            link: LinkId::none(),
            expires_at,
        };
        let liqo_key = pair.public_key_pem().parse().unwrap();
        Opened { letter: header.letter(Content::Call), liqo_key }
    }

    #[test]
    fn a_stranger_is_forgotten_some_time_after_its_last_letter_though_it_is_looked_at() {
        let mut memory = Memory::default();
        assert_eq!(memory.left(at(0)), None);
        memory.hear(Side::Provider, call(at(130)), at(10)).unwrap();
        for (now, left) in [(10, 120), (70, 60), (129, 1)] {
            assert_eq!(memory.left(at(now)), Some(Span::from_secs(left)));
        }
        assert_eq!(memory.left(at(130)), None);
        memory.hear(Side::Provider, call(at(250)), at(131)).unwrap();
        assert_eq!(memory.left(at(131)), Some(REMEMBERED));
    }

    #[test]
    fn of_two_letters_that_nobody_has_read_the_later_one_stays() {
        let mut memory = Memory::default();
        memory.hear(Side::Provider, call(at(130)), at(10)).unwrap();
        for again in [130, 129] {
            let replayed = memory.hear(Side::Provider, call(at(again)), at(20));
            assert_eq!(replayed.unwrap_err().reason().0, "stale");
        }
        let expiry = |memory: &Memory| {
            memory.mail.provider.as_ref().map(|waiting| waiting.letter.header.expires_at)
        };
        assert_eq!(expiry(&memory), Some(at(130)));
        assert_eq!(memory.left(at(20)), Some(Span::from_secs(110)), "that was not heard");
        memory.hear(Side::Provider, call(at(131)), at(21)).unwrap();
        assert_eq!(expiry(&memory), Some(at(131)));
        memory.hear(Side::Requester, call(at(60)), at(22)).unwrap();
    }

    #[test]
    fn a_letter_that_waited_beyond_its_time_is_not_read() {
        let letter = call(at(130));
        letter.in_time(at(130).checked_add(SKEW).unwrap()).unwrap();
        let late = at(131).checked_add(SKEW).unwrap();
        assert_eq!(letter.in_time(late).unwrap_err().reason().0, "expired");
    }
}
