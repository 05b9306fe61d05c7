//! What the broker says, and the sweep of what it does not want any more.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{Desk, Done, Key};
use crate::controllers::Contact;
use crate::transport::{News, Order, Reach};

/// An old broker's list comes every few seconds: what is in force is looked at closely this often.
const CLOSELY_EVERY: Duration = Duration::from_mins(1);

/// What Liqo leaves behind may come late: it is swept away this often, also when no list comes.
pub(super) const SWEEP_EVERY: Duration = Duration::from_mins(10);

impl Desk {
    pub(super) fn overhear(&mut self, order: Order) {
        let key = Key::Instruction(order.side, order.reservation.clone());
        self.wanted.overhear(order);
        self.queue.push(key);
    }

    /// What the broker says; after a whole list, the sweep of what is not in it.
    pub(super) fn hear(&mut self, news: News) -> Option<BoxFuture<'static, Done>> {
        match news {
            News::Connected => {
                self.wanted.reached();
                self.heard += 1;
                self.context.contact.send_replace(Contact::Heard(self.heard));
                self.queue.retry_all();
            }
            News::Interrupted(error) => {
                tracing::info!(%error, "the broker is not heard");
                self.wanted.cut();
                self.context.contact.send_replace(Contact::Lost(error.to_string()));
            }
            News::Reset(reach) => self.wanted.reset(reach),
            News::Order(order) => {
                let key = Key::Instruction(order.side, order.reservation.clone());
                self.wanted.hear(order);
                self.queue.push(key);
            }
            News::Unread => self.wanted.doubt(),
            News::Message(message) => self.context.peering.hear(message),
            News::Synced => return self.wanted.complete().map(|reach| self.listed(reach)),
        }
        None
    }

    /// A whole list is known: everything is compared with it.
    fn listed(&mut self, reach: Reach) -> BoxFuture<'static, Done> {
        let now = Instant::now();
        let is_due = self.last_closely.is_none_or(|last| now >= last + CLOSELY_EVERY);
        let is_close = reach == Reach::Both || is_due;
        if is_close {
            self.last_closely = Some(now);
        }
        self.look_at_instructions(is_close);
        self.sweep(reach)
    }

    /// The sweep of what came since the last one, if it is known what is wanted.
    pub(super) fn sweep_again(&mut self) -> Option<BoxFuture<'static, Done>> {
        self.sweep_at = Instant::now() + SWEEP_EVERY;
        self.wanted.whole().map(|reach| self.sweep(reach))
    }

    fn sweep(&mut self, reach: Reach) -> BoxFuture<'static, Done> {
        self.sweep_at = Instant::now() + SWEEP_EVERY;
        let (live, peering) = (self.wanted.live(), self.context.peering.clone());
        async move {
            peering.sweep(reach.sides(), &move |side, name| live.holds(side, name)).await;
            Done::Swept
        }
        .boxed()
    }
}
