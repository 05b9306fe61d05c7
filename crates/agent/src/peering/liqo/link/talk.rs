//! What was said about one direction of a pair: heard from the other cluster, and told to it. All of
//! it may be lost with the process: what matters is asked for again.

use sublet_core::id::ClusterId;
use sublet_core::time::{Span, Time};

use super::request;
use super::seen::{Access, Seen};
use super::step::{For, Say};
use super::trouble::{Reason, Trouble};
use crate::relay::{Content, Error, LinkId, Nonce, Opened, TenantOffer, seal};

/// The first pause before a letter is sent again, and the longest; each is twice the one before.
const PAUSE_FIRST: Span = Span::from_secs(2);
const PAUSE_MAX: Span = Span::from_secs(30);
/// How long a letter may be on its way.
const CROSSING: Span = Span::from_secs(1);
/// The longest while the broker does not take letters: it may be back any moment.
const UNSENT_PAUSE_MAX: Span = Span::from_secs(10);

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// When the newest letter that was read expires: whatever expires earlier was sent before it.
    newest: Option<Time>,

    // As the provider.
    /// The requester has no nonce, or one of an earlier link.
    pub(super) called: bool,
    pub(super) offer: Option<(LinkId, TenantOffer)>,
    /// What is wrong with a letter: another key than the pinned one, or an unfit request.
    pub(super) objection: Option<(LinkId, Trouble)>,
    /// The requester has taken this link down.
    pub(super) unlink: Option<LinkId>,

    // As the requester.
    /// The provider wants this to be signed.
    pub(super) asked: Option<Nonce>,
    /// How to get in; not written down yet.
    pub(super) access: Option<Access>,
    /// The provider has taken this link down.
    pub(super) unlinked: Option<LinkId>,
    /// What the answer to our offer is sealed to.
    pub(super) key: Option<(LinkId, seal::Key)>,

    /// What is wrong with the letters that come or go, and since when.
    trouble: Option<(Time, Trouble)>,
    /// What the provider refused, and since when.
    refused: Option<(Time, Trouble)>,
    said: Option<Said>,
    /// That letters cannot even be given to the broker.
    unsent: Option<Unsent>,
    waiting: Option<(For, Time)>,
    /// The expiry of the letter that was sent last: each is later than the one before.
    last_expiry: Option<Time>,
}

#[derive(Debug)]
struct Said {
    what: (&'static str, LinkId),
    at: Time,
    times: u32,
}

/// That letters cannot be sent: since the so many-th try, and why.
#[derive(Debug)]
struct Unsent {
    at: Time,
    times: u32,
    why: String,
}

impl Talk {
    /// Is it news? A letter that was sent before one that was read is old, whatever it says.
    pub(super) fn is_news(&self, expires_at: Time) -> bool {
        self.newest.is_none_or(|newest| expires_at > newest)
    }

    /// Is it to be read? It may have waited for long, and when it came nobody could ask whether it is
    /// news if others were being read just then.
    pub(super) fn admit(&self, opened: &Opened, now: Time) -> Result<(), Error> {
        opened.in_time(now)?;
        if self.is_news(opened.letter.header.expires_at) { Ok(()) } else { Err(Error::Stale) }
    }

    /// Takes in a letter of the pinned key.
    pub(super) fn read(&mut self, opened: Opened, me: &ClusterId, now: Time) -> Result<(), Error> {
        self.admit(&opened, now)?;
        let Opened { letter, .. } = opened;
        let (header, content) = (letter.header, letter.content);
        self.newest = Some(header.expires_at);
        let from = header.from.clone();
        let is_requester = header.requester == *me;
        match content {
            // Who wants a link is not done with it.
            Content::Call => (self.called, self.unlink) = (true, None),
            Content::TenantOffer(offer) => {
                (self.called, self.unlink) = (false, None);
                if let Err(unfit) = request::check(&offer, &from) {
                    let why = format!("the request for a certificate is refused: {unfit}");
                    self.object(header.link, Trouble::new(Reason::CsrRefused, why), now);
                    return Err(Error::Request(unfit.to_string()));
                }
                (self.trouble, self.objection) = (None, None);
                self.offer = Some((header.link, offer));
            }
            Content::Unlink => self.unlink = Some(header.link),
            Content::Nonce { nonce } => {
                self.trouble = None;
                self.asked = Some(nonce);
            }
            Content::IdentityOffer { sealed } => {
                let (link, key) = self.key.as_ref().ok_or(Error::Seal)?;
                if *link != header.link {
                    return Err(Error::OtherLink { found: header.link, expected: link.clone() });
                }
                // The key opens once, and is kept for the answer to the offer that it was made for: an
                // answer to an earlier one comes late.
                if !key.may_open(&sealed) {
                    return Err(Error::Seal);
                }
                let (_, key) = self.key.take().ok_or(Error::Seal)?;
                let plain = key.open(&sealed, &header)?;
                let read = serde_json::from_slice(&plain);
                self.access = Some(read.map_err(|error| Error::Unreadable(error.to_string()))?);
                self.asked = None;
                self.calm();
            }
            Content::Refusal { reason, message } => {
                since(&mut self.refused, Trouble::refused(&from, reason, &message), now);
            }
            Content::Unlinked if is_requester => self.unlinked = Some(header.link),
            Content::Unlinked => {}
        }
        Ok(())
    }

    /// Something is wrong; since when, matters.
    pub(super) fn stumble(&mut self, trouble: Trouble, now: Time) {
        since(&mut self.trouble, trouble, now);
    }

    /// Something is wrong with what the requester offers: it is told.
    pub(super) fn object(&mut self, link: LinkId, trouble: Trouble, now: Time) {
        self.stumble(trouble.clone(), now);
        self.objection = Some((link, trouble));
    }

    /// Nothing is wrong any more, or nobody cares.
    pub(super) fn calm(&mut self) {
        (self.trouble, self.refused) = (None, None);
    }

    /// What is wrong, and since when.
    pub(super) fn trouble(&self) -> Option<&(Time, Trouble)> {
        self.refused.as_ref().or(self.trouble.as_ref())
    }

    /// Forgets what is written down, so that it is not written again over what comes later.
    pub(super) fn settle(&mut self, seen: &Seen) {
        let identity = seen.borrowed.identity.as_ref();
        if self.access.is_some() && self.access.as_ref() == identity.map(|there| &there.access) {
            self.access = None;
        }
    }

    /// How long until this is to be said, for the first time or again.
    pub(super) fn pause(&self, say: &Say, now: Time) -> Span {
        let repeated = self.said.as_ref().filter(|said| said.what == say.topic());
        let own = repeated.map_or(Span::ZERO, |said| left(said.at, pace(said.times), now));
        own.max(self.hold(now))
    }

    /// How long until this is to be said because it was asked for. Letters cross: what was said just
    /// before is on its way, and is the answer.
    pub(super) fn crossing(&self, say: &Say, now: Time) -> Span {
        let repeated = self.said.as_ref().filter(|said| said.what == say.topic());
        repeated.map_or(Span::ZERO, |said| left(said.at, CROSSING, now)).max(self.hold(now))
    }

    /// How long until anything is to be said: a broker that is not reached is not pestered.
    pub(super) fn hold(&self, now: Time) -> Span {
        let pause = |unsent: &Unsent| pace(unsent.times).min(UNSENT_PAUSE_MAX);
        self.unsent.as_ref().map_or(Span::ZERO, |unsent| left(unsent.at, pause(unsent), now))
    }

    /// Why letters cannot be sent, if they cannot.
    pub(super) fn unsent(&self) -> Option<&str> {
        self.unsent.as_ref().map(|unsent| unsent.why.as_str())
    }

    /// Something could not be said.
    pub(super) fn not_said(&mut self, why: String, now: Time) {
        let times = self.unsent.as_ref().map_or(0, |unsent| unsent.times).saturating_add(1);
        self.unsent = Some(Unsent { at: now, times, why });
    }

    /// It was said; whether it arrives is another matter.
    pub(super) fn said(&mut self, say: &Say, now: Time) {
        let what = say.topic();
        let before = self.said.as_ref().filter(|said| said.what == what);
        let times = before.map_or(0, |said| said.times);
        self.unsent = None;
        self.said = Some(Said { what, at: now, times: times.saturating_add(1) });
        match say {
            Say::Nonce { .. } => self.called = false,
            Say::TenantOffer { .. } => self.asked = None,
            Say::IdentityOffer { .. } => self.offer = None,
            Say::Refusal { .. } => (self.offer, self.objection) = (None, None),
            Say::Unlinked { .. } => self.unlink = None,
            _ => {}
        }
    }

    /// Until when the next letter is good: later than the one before, by which the other cluster
    /// knows which of two is the newer.
    pub(super) fn expiry(&mut self, now: Time, life: Span) -> Time {
        let wanted = now.checked_add(life).unwrap_or(now);
        let least = self.last_expiry.and_then(|last| last.checked_add(Span::from_millis(1)));
        let expiry = least.map_or(wanted, |least| least.max(wanted));
        self.last_expiry = Some(expiry);
        expiry
    }

    /// What is waited for now, if anything.
    pub(super) fn wait(&mut self, what: Option<For>, now: Time) {
        self.waiting = match (what, self.waiting) {
            (Some(what), Some((known, since))) if known == what => Some((what, since)),
            (what, _) => what.map(|what| (what, now)),
        };
    }

    /// For how long this was waited for.
    pub(super) fn waited(&self, what: For, now: Time) -> Span {
        match self.waiting {
            Some((known, since)) if known == what => now.since(since),
            _ => Span::ZERO,
        }
    }
}

/// Something is wrong from now on, or still.
fn since(what: &mut Option<(Time, Trouble)>, trouble: Trouble, now: Time) {
    let begun = what.as_ref().map_or(now, |(begun, _)| *begun);
    *what = Some((begun, trouble));
}

/// What is left of a pause.
fn left(since: Time, pause: Span, now: Time) -> Span {
    Span::from_millis(pause.as_millis().saturating_sub(now.since(since).as_millis()))
}

fn pace(times: u32) -> Span {
    let times = 1_u64.checked_shl(times.saturating_sub(1)).unwrap_or(u64::MAX);
    PAUSE_FIRST.checked_mul(times).unwrap_or(PAUSE_MAX).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::*;
    use crate::relay::Header;

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn what_is_not_answered_is_said_again_ever_less_often() {
        let (mut talk, mut now, mut pauses) = (Talk::default(), at(0), Vec::new());
        for _ in 0..7 {
            assert_eq!(talk.pause(&Say::Call, now), Span::ZERO);
            talk.said(&Say::Call, now);
            let pause = talk.pause(&Say::Call, now);
            pauses.push(pause.as_millis() / 1000);
            now = now.checked_add(pause).unwrap();
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn while_the_broker_is_not_reached_it_is_tried_often() {
        let mut talk = Talk::default();
        talk.not_said("no".to_owned(), at(0));
        assert_eq!(talk.pause(&Say::Call, at(0)), PAUSE_FIRST);
        (1..20).for_each(|second| talk.not_said("no".to_owned(), at(second)));
        assert_eq!(talk.pause(&Say::Call, at(19)), UNSENT_PAUSE_MAX);
        assert_eq!((talk.hold(at(29)), talk.unsent()), (Span::ZERO, Some("no")));
        talk.said(&Say::Call, at(29));
        assert_eq!((talk.hold(at(29)), talk.unsent()), (Span::ZERO, None));
    }

    #[test]
    fn something_else_is_said_at_once() {
        let mut talk = Talk::default();
        talk.said(&Say::Call, at(0));
        let nonce: Nonce = "bm9uY2Vub25jZW5vbmNl".parse().unwrap();
        let say = Say::Nonce { nonce, link: LinkId::none() };
        assert_eq!(talk.pause(&say, at(0)), Span::ZERO);
        assert_eq!(talk.pause(&Say::Call, at(1)), Span::from_secs(1));
    }

    #[test]
    fn what_is_asked_for_again_while_the_answer_is_on_its_way_waits_for_a_moment() {
        let mut talk = Talk::default();
        talk.said(&Say::Call, at(10));
        assert_eq!(talk.crossing(&Say::Call, at(10)), CROSSING);
        assert_eq!(talk.crossing(&Say::Call, at(11)), Span::ZERO);
    }

    #[test]
    fn each_letter_expires_later_than_the_one_before() {
        let mut talk = Talk::default();
        let first = talk.expiry(at(10), Span::from_secs(60));
        assert!(talk.expiry(at(10), Span::from_secs(60)) > first);
        assert!(talk.expiry(at(9), Span::from_secs(60)) > first);
    }

    fn opened(content: Content, expires_at: Time) -> Opened {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let (rome, milan): (ClusterId, ClusterId) =
            ("rome".parse().unwrap(), "milan".parse().unwrap());
        let nonce: Nonce = "bm9uY2Vub25jZW5vbmNl".parse().unwrap();
        let link = LinkId::derive(&rome, &milan, &nonce);
        let header = Header { from: rome.clone(), to: milan, requester: rome, link, expires_at };
        Opened { letter: header.letter(content), liqo_key: pair.public_key_pem().parse().unwrap() }
    }

    #[test]
    fn an_unfit_request_is_objected_to_and_offers_nothing() {
        let (mut talk, milan) = (Talk::default(), "milan".parse().unwrap());
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let keys = Keys::read(pair.serialize_pem().as_bytes()).unwrap();
        let offer = |name: &str| TenantOffer {
            public_key: keys.public().clone(),
            csr: keys.csr(&name.parse().unwrap()).unwrap(),
            signature: Vec::new(),
            seal_key: seal::Key::generate().unwrap().public(),
        };
        let bad = opened(Content::TenantOffer(offer("venice")), at(60));
        let refused = talk.read(bad, &milan, at(0)).unwrap_err();
        assert_eq!(refused.reason().0, "csr");
        assert!(talk.offer.is_none() && !talk.is_news(at(60)));
        assert_eq!(talk.objection.as_ref().unwrap().1.reason, Reason::CsrRefused);
        let good = opened(Content::TenantOffer(offer("rome")), at(61));
        talk.read(good, &milan, at(1)).unwrap();
        assert!(talk.offer.is_some() && talk.objection.is_none() && talk.trouble().is_none());
    }

    #[test]
    fn who_wants_a_link_again_is_not_done_with_it() {
        let (mut talk, milan) = (Talk::default(), "milan".parse().unwrap());
        talk.read(opened(Content::Unlink, at(60)), &milan, at(0)).unwrap();
        assert!(talk.unlink.is_some());
        talk.read(opened(Content::Call, at(61)), &milan, at(1)).unwrap();
        assert!(talk.unlink.is_none() && talk.called);
    }

    #[test]
    fn a_letter_that_is_not_newer_than_one_that_was_read_says_nothing() {
        let (mut talk, milan) = (Talk::default(), "milan".parse().unwrap());
        talk.read(opened(Content::Call, at(60)), &milan, at(0)).unwrap();
        for again in [60, 59] {
            let replayed = talk.read(opened(Content::Unlink, at(again)), &milan, at(1));
            assert_eq!(replayed.unwrap_err().reason().0, "stale");
            assert!(talk.unlink.is_none() && talk.called);
        }
        assert!(!talk.is_news(at(60)), "what was read stays read");
        talk.read(opened(Content::Unlink, at(61)), &milan, at(1)).unwrap();
        assert!(talk.unlink.is_some());
    }

    #[test]
    fn a_late_answer_leaves_the_key_for_the_one_that_is_waited_for() {
        let (mut talk, rome) = (Talk::default(), "rome".parse().unwrap());
        let answer = |to: seal::Public, expires_at: Time| {
            let mut opened = opened(Content::Unlinked, expires_at);
            let header = &mut opened.letter.header;
            std::mem::swap(&mut header.from, &mut header.to);
            let plain = serde_json::to_vec(&Access::default()).unwrap();
            let sealed = seal::Lock(to).seal(&plain, header).unwrap();
            opened.letter.content = Content::IdentityOffer { sealed };
            opened
        };
        let (earlier, key) = (seal::Key::generate().unwrap(), seal::Key::generate().unwrap());
        let (late, right) = (answer(earlier.public(), at(60)), answer(key.public(), at(62)));
        talk.key = Some((right.letter.header.link.clone(), key));
        let mut another = answer(earlier.public(), at(61));
        another.letter.header.link = LinkId::none();
        for (late, why) in [(late, "seal"), (another, "other_link")] {
            assert_eq!(talk.read(late, &rome, at(0)).unwrap_err().reason().0, why);
        }
        talk.read(right, &rome, at(0)).unwrap();
        assert_eq!(talk.access, Some(Access::default()));
        assert!(talk.key.is_none(), "it opens once");
    }

    #[test]
    fn waiting_for_something_else_begins_anew() {
        let mut talk = Talk::default();
        talk.wait(Some(For::Nonce), at(0));
        talk.wait(Some(For::Nonce), at(5));
        assert_eq!(talk.waited(For::Nonce, at(9)), Span::from_secs(9));
        assert_eq!(talk.waited(For::Signature, at(9)), Span::ZERO);
        talk.wait(None, at(10));
        talk.wait(Some(For::Nonce), at(11));
        assert_eq!(talk.waited(For::Nonce, at(12)), Span::from_secs(1));
    }
}
