//! What another cluster's agent sends reaches the peering, and only between those who have dealt.

use sublet_agent::transport::{Broker as _, Error};
use sublet_crds::RequestPhase;
use sublet_wire::Code;
use sublet_wire::v1::Message;

use super::crashes::restart;
use super::{World, small};
use crate::on_kubernetes::until::until;

fn message(to: &str, slot: &str, content: &str) -> Message {
    let (to, slot, content) = (to.to_owned(), slot.to_owned(), content.to_owned());
    Message { to, slot, content, ttl: Some("1m".to_owned()), ..Message::default() }
}

pub(super) async fn what_the_other_side_sends_is_heard_also_after_a_restart(world: &mut World) {
    world.milan.advertise(16).await;
    let stranger = world.milan.http.send(&message("turin", "a", "x")).await;
    assert!(
        matches!(&stranger, Err(Error::Refused(no)) if no.code == Some(Code::Strangers)),
        "{stranger:?}"
    );
    world.ask("talks", small()).await;
    world.in_phase("talks", RequestPhase::Active).await;
    for (slot, content) in [("a", "one"), ("b", "two")] {
        world.milan.http.send(&message("rome", slot, content)).await.unwrap();
    }
    let peering = world.rome.peering.clone();
    let heard = |count: usize| {
        let peering = peering.clone();
        async move {
            let look = || async { (peering.heard().len() >= count).then(|| peering.heard()) };
            until("what milan sent", look).await
        }
    };
    let first = heard(2).await;
    let said: Vec<_> = first.iter().map(|m| (&*m.from, &*m.to, &*m.content)).collect();
    assert_eq!(said, [("milan", "rome", "one"), ("milan", "rome", "two")]);
    assert!(world.milan.peering.heard().is_empty(), "it is not for its sender");
    // Whoever was away is told again what is still kept.
    restart(&mut world.rome, None).await;
    let again = heard(4).await;
    assert_eq!(again[2..], first[..]);
    world.delete("talks").await;
    world.is_clean().await;
}
