//! What can be done about a link, one thing at a time.

use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};

use super::LinkState;
use super::seen::{Access, Seen};
use super::talk::Talk;
use super::trouble::{Reason, Trouble};
use crate::peering::Why;
use crate::relay::{LinkId, Nonce, TenantOffer, seal};

/// How long Liqo may take for its part before that is called trouble. It waits 30 s for a certificate.
pub(super) const LIQO_MAX: Span = Span::from_secs(45);
/// How long what a letter says to be wrong is only waited for. A letter that somebody made up is then
/// no reason to give anything up, as long as the right one comes.
pub(super) const GRACE: Span = Span::from_secs(20);

/// How long the replicator may take to let go of what it has copied, once it has no way there any more.
const STRANDED_AFTER: Span = Span::from_secs(3);

/// How often what is ready is looked at, though nothing is known to have changed: keys change, and
/// certificates expire, without anybody being told.
const READY_LOOK: Span = Span::from_secs(300);

/// How often what is in the way, or cannot be seen, is looked at again.
pub(super) const LOOK_AGAIN: Span = Span::from_secs(30);

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Make the namespace of the pair.
    MakeNamespace,
    /// Let the agent into it.
    Bind,
    /// Write down that the link is needed again.
    MarkUsed(Side),
    /// Write down since when it is not.
    MarkUnused(Side, Time),

    /// Have Liqo make a nonce.
    MakeNonce,
    /// Remove the certificate that Liqo keeps for another request.
    DeleteCertificate,
    /// Write the tenant as it was offered.
    WriteTenant(LinkId, TenantOffer),
    /// Remove the tenant.
    DeleteTenant,
    /// Remove what Liqo leaves behind of a tenant, and then the nonce.
    DeleteNonce,

    /// Have Liqo sign a nonce.
    WriteSigned(Nonce),
    /// Have Liqo sign it again.
    Resign,
    /// Write the identity.
    WriteIdentity(LinkId, Access),
    /// Let go of a kubeconfig that would wait for the last slice.
    FreeCredential,
    /// Remove the identity.
    DeleteIdentity,
    /// Let go of what the replicator keeps and can give back to nobody.
    FreeStranded,
    /// Remove the signed nonce.
    DeleteSigned,

    /// Write down that Liqo's word for the other cluster goes with the link.
    MarkForeign,
    /// Remove the namespace of the pair: the one with this UID, and no later one.
    DeleteNamespace(Option<String>),
    /// Remove Liqo's word for the other cluster.
    DeleteForeign,

    /// Tell the other cluster something.
    Say(Say),
}

impl Step {
    /// What it is called.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::MakeNamespace => "make namespace",
            Self::Bind => "bind",
            Self::MarkUsed(_) => "mark used",
            Self::MarkUnused(..) => "mark unused",
            Self::MakeNonce => "make nonce",
            Self::DeleteCertificate => "delete certificate",
            Self::WriteTenant(..) => "write tenant",
            Self::DeleteTenant => "delete tenant",
            Self::DeleteNonce => "delete nonce",
            Self::WriteSigned(_) => "write signed nonce",
            Self::Resign => "sign again",
            Self::WriteIdentity(..) => "write identity",
            Self::FreeCredential => "free kubeconfig",
            Self::DeleteIdentity => "delete identity",
            Self::FreeStranded => "free what is stranded",
            Self::DeleteSigned => "delete signed nonce",
            Self::MarkForeign => "mark foreign cluster",
            Self::DeleteNamespace(_) => "delete namespace",
            Self::DeleteForeign => "delete foreign cluster",
            Self::Say(say) => say.topic().0,
        }
    }
}

/// What there is to tell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Say {
    Call,
    Nonce { nonce: Nonce, link: LinkId },
    TenantOffer { link: LinkId, signature: Vec<u8> },
    IdentityOffer { link: LinkId, access: Access, to: seal::Public },
    Refusal { link: LinkId, trouble: Trouble },
    Unlink { link: LinkId },
    Unlinked { link: LinkId },
}

impl Say {
    pub(super) fn link(&self) -> LinkId {
        match self {
            Self::Call => LinkId::none(),
            Self::Nonce { link, .. }
            | Self::TenantOffer { link, .. }
            | Self::IdentityOffer { link, .. }
            | Self::Refusal { link, .. }
            | Self::Unlink { link }
            | Self::Unlinked { link } => link.clone(),
        }
    }

    /// What it is about: while that is the same, it is a repetition.
    pub(super) fn topic(&self) -> (&'static str, LinkId) {
        let kind = match self {
            Self::Call => "call",
            Self::Nonce { .. } => "nonce",
            Self::TenantOffer { .. } => "tenant offer",
            Self::IdentityOffer { .. } => "identity offer",
            Self::Refusal { .. } => "refusal",
            Self::Unlink { .. } => "unlink",
            Self::Unlinked { .. } => "unlinked",
        };
        (kind, self.link())
    }
}

/// What is waited for, in this cluster or in the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    NamespaceGone,
    Permission,
    Nonce,
    Grant,
    TenantGone,
    Signature,
    Kubeconfig,
    IdentityGone,
    CredentialGone,
    StrandedGone,
    Unlinked,
}

impl For {
    fn words(self) -> &'static str {
        match self {
            Self::NamespaceGone => "for the namespace of the pair to go, which is being deleted",
            Self::Permission => "to be let into the namespace of the pair",
            Self::Nonce => "for Liqo to make a nonce",
            Self::Grant => "for Liqo to accept the tenant",
            Self::TenantGone => "for the tenant to go, which is being deleted",
            Self::Signature => "for Liqo to sign the nonce",
            Self::Kubeconfig => "for Liqo to make a kubeconfig of the identity",
            Self::IdentityGone => "for the identity to go, which is being deleted",
            Self::CredentialGone => {
                "for the kubeconfig of the identity to go, which is being deleted"
            }
            Self::StrandedGone => "for Liqo to let go of what it has copied to the provider",
            Self::Unlinked => "for the provider to take the link down",
        }
    }

    /// Is it this cluster's Liqo that should do it soon?
    fn is_liqos(self) -> bool {
        matches!(self, Self::Nonce | Self::Grant | Self::Signature | Self::Kubeconfig)
    }
}

/// What is to be done now, and how it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Next {
    pub(super) todo: Todo,
    pub(super) state: LinkState,
    pub(super) waiting: Option<For>,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Todo {
    /// This, and then look again.
    Step(Step),
    /// Look again soon.
    Poll,
    /// Look again after that, or when something changes.
    Rest(Option<Span>),
    /// There is nothing of this direction, and nobody wants it.
    Gone,
}

/// Whether a link is needed, as far as anybody has said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nobody has said anything since the start.
    #[default]
    Unknown,
    /// It is needed.
    Wanted,
    /// The last that needed it went.
    Unused,
}

/// All that is known about one direction of a pair.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) me: &'a ClusterId,
    pub(super) peer: &'a ClusterId,
    pub(super) seen: &'a Seen,
    pub(super) talk: &'a Talk,
    pub(super) wish: Wish,
    pub(super) idle: Span,
    /// How long this agent has been at it: after a start, needs are not known at once.
    pub(super) up: Span,
    /// How long that takes at most.
    pub(super) settling: Span,
    pub(super) now: Time,
}

impl Scene<'_> {
    /// What comes before anything else where a link is wanted; none if all of that is there.
    pub(super) fn prepare(&self, side: Side) -> Option<Next> {
        let Some(place) = &self.seen.namespace else {
            return Some(Next::step(Step::MakeNamespace));
        };
        if place.is_deleting {
            return Some(self.wait(For::NamespaceGone));
        }
        if self.seen.is_barred {
            let waited = self.talk.waited(For::Permission, self.now);
            let why = "the agent may not look into the namespace of the pair";
            return Some(match self.talk.waited(For::Permission, self.now) {
                Span::ZERO => Next::step(Step::Bind).waiting(For::Permission),
                _ if waited > GRACE => Next::failed(Trouble::new(Reason::Forbidden, why)),
                _ => self.wait(For::Permission),
            });
        }
        place.unused(side).is_some().then(|| Next::step(Step::MarkUsed(side)))
    }

    /// Where the agent may not look, nothing is taken down: what it does not see may be there all the
    /// same. In a namespace that goes, its role goes too, and that is no reason to wait.
    pub(super) fn blind(&self) -> Option<Next> {
        let stays = self.seen.namespace.as_ref().is_some_and(|place| !place.is_deleting);
        (self.seen.is_barred && stays).then(|| Next::rest(Some(LOOK_AGAIN)))
    }

    /// What the replicator keeps without a way to the provider: it was killed just when the identity went.
    /// A replicator that lives lets go of it by itself.
    pub(super) fn stranded(&self) -> Option<Next> {
        if self.seen.borrowed.stranded == 0 {
            return None;
        }
        let waited = self.talk.waited(For::StrandedGone, self.now);
        Some(if waited > STRANDED_AFTER {
            Next::step(Step::FreeStranded).waiting(For::StrandedGone)
        } else {
            self.wait(For::StrandedGone)
        })
    }

    /// Waits for something that will be there soon.
    pub(super) fn wait(&self, what: For) -> Next {
        let text = format!("waiting {}", what.words());
        let is_late = self.talk.waited(what, self.now) > LIQO_MAX;
        let state = match what {
            _ if !is_late => LinkState::Pending(text.into()),
            what if what.is_liqos() => LinkState::Failed(Trouble::new(Reason::LiqoSilent, text)),
            // It may still go, and then the rest comes by itself.
            _ => LinkState::Pending(Why::hindered(Reason::StillDeleting, text)),
        };
        Next { todo: Todo::Poll, state, waiting: Some(what) }
    }

    /// Says something, for the first time or again if it is time, and waits for the answer.
    pub(super) fn say(&self, say: Say, state: LinkState) -> Next {
        let pause = self.talk.pause(&say, self.now);
        Next { todo: said_after(pause, say), state, waiting: None }
    }

    /// Says again what was asked for again.
    pub(super) fn repeat(&self, say: Say, state: LinkState) -> Next {
        let pause = self.talk.crossing(&say, self.now);
        Next { todo: said_after(pause, say), state, waiting: None }
    }

    /// Answers a letter, however often that was answered before.
    pub(super) fn answer(&self, say: Say, state: LinkState) -> Next {
        let pause = self.talk.hold(self.now);
        Next { todo: said_after(pause, say), state, waiting: None }
    }

    /// How much is left of the idle time; none if it is over.
    pub(super) fn left(&self, since: Time) -> Option<Span> {
        self.left_of(self.idle, since)
    }

    /// How much is left of a time that began then; none if it is over.
    pub(super) fn left_of(&self, time: Span, since: Time) -> Option<Span> {
        let passed = self.now.since(since).as_millis();
        let left = Span::from_millis(time.as_millis().saturating_sub(passed));
        Some(left).filter(|left| !left.is_zero()).or_else(|| self.fresh())
    }

    /// How long it takes until silence means that nobody needs the link: after a start, what is needed
    /// is said one after the other. None if it does.
    pub(super) fn fresh(&self) -> Option<Span> {
        let left = self.settling.as_millis().saturating_sub(self.up.as_millis());
        (self.wish == Wish::Unknown && left > 0).then_some(Span::from_millis(left))
    }

    /// From now on it is unused, if that is certain.
    pub(super) fn begin_idling(&self, side: Side) -> Next {
        match self.fresh() {
            Some(rest) => Next::rest(Some(rest)),
            None => Next::step(Step::MarkUnused(side, self.now)),
        }
    }

    /// What is in the way, if anything is: at first only said, and then a failure.
    pub(super) fn pending(&self, text: String) -> LinkState {
        match self.talk.trouble() {
            Some((since, trouble)) if self.now.since(*since) > GRACE => {
                LinkState::Failed(trouble.clone())
            }
            Some((_, trouble)) => LinkState::Pending(trouble.clone().into()),
            None => LinkState::Pending(match self.talk.unsent() {
                Some(why) => format!("the broker does not take a letter: {why}").into(),
                None => Why::suspected(Reason::PeerSilent, text),
            }),
        }
    }
}

fn said_after(pause: Span, say: Say) -> Todo {
    if pause.is_zero() { Todo::Step(Step::Say(say)) } else { Todo::Rest(Some(pause)) }
}

impl Next {
    pub(super) fn step(step: Step) -> Self {
        let state = LinkState::Pending("the link is being made".into());
        Self { todo: Todo::Step(step), state, waiting: None }
    }

    pub(super) fn ready() -> Self {
        let again = Some(READY_LOOK);
        Self { todo: Todo::Rest(again), state: LinkState::Ready, waiting: None }
    }

    pub(super) fn failed(trouble: Trouble) -> Self {
        // What somebody repairs without anybody being told is found by looking.
        let again = Some(GRACE);
        Self { todo: Todo::Rest(again), state: LinkState::Failed(trouble), waiting: None }
    }

    pub(super) fn gone() -> Self {
        let state = LinkState::Pending("there is no link".into());
        Self { todo: Todo::Gone, state, waiting: None }
    }

    /// Nothing to do until then.
    pub(super) fn rest(after: Option<Span>) -> Self {
        let state = LinkState::Pending("the link is unused".into());
        Self { todo: Todo::Rest(after), state, waiting: None }
    }

    pub(super) fn waiting(self, what: For) -> Self {
        Self { waiting: Some(what), ..self }
    }

    pub(super) fn with_state(self, state: LinkState) -> Self {
        Self { state, ..self }
    }
}
