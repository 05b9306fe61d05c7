//! The broker between two agents, as good or as bad as a test wants it: it keeps the newest letter of a
//! sender, a receiver and a slot, and hands it to whoever begins to listen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use sublet_agent::peering::liqo::link::{Keeper, Links, Post};
use sublet_agent::transport::Error;
use sublet_wire::v1::Message;

/// What becomes of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Arrives,
    IsLost,
    ArrivesTwice,
    /// With the next one of the same slot, and after it.
    IsLate,
}

type Judge = Box<dyn FnMut(&Message) -> Fate + Send>;

#[derive(Default)]
struct State {
    listeners: BTreeMap<String, Arc<Keeper>>,
    kept: BTreeMap<(String, String, String), Message>,
    late: Vec<Message>,
    sent: Vec<Message>,
    judge: Option<Judge>,
}

/// The relay.
#[derive(Clone, Default)]
pub(in super::super) struct Relay(Arc<Mutex<State>>);

impl Relay {
    /// The way of one cluster to the others.
    pub(in super::super) fn post_of(&self, cluster: &str) -> Arc<dyn Post> {
        Arc::new(Door { relay: self.clone(), from: cluster.to_owned() })
    }

    /// Somebody listens from now on, in place of whoever did.
    pub(in super::super) fn listen(&self, cluster: &str, keeper: &Arc<Keeper>) {
        let mut state = self.0.lock().unwrap();
        state.listeners.insert(cluster.to_owned(), Arc::clone(keeper));
        for ((_, to, _), message) in &state.kept {
            if to == cluster {
                keeper.hear(message.clone());
            }
        }
    }

    /// What becomes of letters from now on.
    pub(super) fn judge(&self, judge: impl FnMut(&Message) -> Fate + Send + 'static) {
        self.0.lock().unwrap().judge = Some(Box::new(judge));
    }

    /// They all arrive from now on.
    pub(super) fn be_good(&self) {
        self.0.lock().unwrap().judge = None;
    }

    /// Forgets what it keeps, as after a restart, and what was sent.
    pub(super) fn forget(&self) {
        let mut state = self.0.lock().unwrap();
        (state.kept, state.late, state.sent) = Default::default();
    }

    /// Everything that was sent.
    pub(super) fn sent(&self) -> Vec<Message> {
        self.0.lock().unwrap().sent.clone()
    }

    /// Hands something over, whoever made it.
    pub(super) fn inject(&self, message: Message) {
        let listener = self.0.lock().unwrap().listeners.get(&message.to).cloned();
        listener.unwrap().hear(message);
    }

    fn carry(&self, message: Message) {
        let mut state = self.0.lock().unwrap();
        state.sent.push(message.clone());
        let fate = state.judge.as_mut().map_or(Fate::Arrives, |judge| judge(&message));
        let late: Vec<_> = match fate {
            Fate::IsLost => return,
            Fate::IsLate => {
                state.late.push(message);
                return;
            }
            Fate::Arrives | Fate::ArrivesTwice => {
                let (now, later): (Vec<_>, _) = std::mem::take(&mut state.late)
                    .into_iter()
                    .partition(|late| late.to == message.to && late.slot == message.slot);
                state.late = later;
                now
            }
        };
        let key = (message.from.clone(), message.to.clone(), message.slot.clone());
        state.kept.insert(key, message.clone());
        let Some(listener) = state.listeners.get(&message.to).cloned() else { return };
        if fate == Fate::ArrivesTwice {
            listener.hear(message.clone());
        }
        listener.hear(message);
        for late in late {
            listener.hear(late);
        }
    }
}

struct Door {
    relay: Relay,
    from: String,
}

impl Post for Door {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), Error>> {
        // The broker says who sent it.
        self.relay.carry(Message { from: self.from.clone(), ..message.clone() });
        std::future::ready(Ok(())).boxed()
    }
}

/// What is in an envelope, for whoever looks into other people's letters.
pub(super) fn inside(message: &Message) -> Value {
    let envelope: Value = serde_json::from_str(&message.content).unwrap();
    let signed = BASE64.decode(envelope["signed"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&signed).unwrap()
}

/// What kind of letter it is.
pub(super) fn kind(message: &Message) -> String {
    inside(message)["content"]["kind"].as_str().unwrap().to_owned()
}
