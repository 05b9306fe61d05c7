//! What is to be done: a stream from our broker, a list every few seconds from an old one.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sublet_wire::client::{self, Event, Instructions};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::{Shared, old};
use crate::transport::{Feed, News, Order, Reach};

/// How often an old broker is asked whether it is a new one by now.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

pub(super) struct HttpFeed {
    shared: Arc<Shared>,
    stream: Instructions,
    /// Set while the broker is an old one.
    polling: Option<Polling>,
}

struct Polling {
    due: Instant,
    look_again: Instant,
    is_reached: bool,
    piggy_back: watch::Receiver<Vec<Order>>,
    /// What was got and not told yet.
    news: VecDeque<News>,
}

impl HttpFeed {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let stream = shared.client.instructions(None);
        Self { shared, stream, polling: None }
    }

    async fn news(&mut self) -> News {
        loop {
            let news = match &mut self.polling {
                Some(polling) => polling.news(&self.shared).await,
                None => match self.stream.next().await {
                    Event::Interrupted(error @ client::Error::NoStream { .. }) => {
                        self.doubt(error).await
                    }
                    event => Some(self.streamed(event)),
                },
            };
            match news {
                Some(news) => return news,
                None => self.turn(),
            }
        }
    }

    /// No stream where there was one may be somebody's in between; or the broker was replaced by an old
    /// one, which does what the old ones do: then none.
    async fn doubt(&self, error: client::Error) -> Option<News> {
        let shared = &self.shared;
        let is_old =
            !shared.era.is_ours() || shared.era.ask(&shared.client).await.is_ok_and(|old| old);
        (!is_old).then(|| News::Interrupted(error.into()))
    }

    /// From streaming to polling, or back.
    fn turn(&mut self) {
        let shared = &self.shared;
        if self.polling.take().is_some() {
            self.stream = shared.client.instructions(None);
        } else {
            shared.era.set(true);
            let is_listed = shared.poll_every.is_some();
            self.polling = Some(Polling::new(shared.piggy_back.subscribe(), is_listed));
        }
    }

    fn streamed(&self, event: Event) -> News {
        match event {
            Event::Connected => {
                self.shared.era.set(false);
                News::Connected
            }
            Event::Reset => News::Reset(Reach::Both),
            Event::Synced => News::Synced,
            Event::Message(message) => News::Message(message),
            Event::Interrupted(error) => News::Interrupted(error.into()),
            Event::Instruction(told) => match Order::try_from(&told) {
                Ok(order) => News::Order(order),
                Err(error) => {
                    let reservation = told.reservation_id;
                    warn!(reservation, %error, "an instruction is not understood");
                    News::Unread
                }
            },
        }
    }
}

impl Feed for HttpFeed {
    fn next(&mut self) -> BoxFuture<'_, News> {
        self.news().boxed()
    }
}

impl Polling {
    fn new(piggy_back: watch::Receiver<Vec<Order>>, is_listed: bool) -> Self {
        let now = Instant::now();
        let mut news = VecDeque::new();
        if !is_listed {
            news.extend([News::Connected, News::Reset(Reach::Nothing), News::Synced]);
        }
        Self { due: now, look_again: now + LOOK_AGAIN, is_reached: false, piggy_back, news }
    }

    /// What happens next; none when the broker is not an old one any more.
    async fn news(&mut self, shared: &Shared) -> Option<News> {
        loop {
            if let Some(news) = self.news.pop_front() {
                return Some(news);
            }
            if Instant::now() >= self.look_again {
                let asked = shared.era.ask(&shared.client).await;
                self.look_again = Instant::now() + LOOK_AGAIN;
                if let Ok(false) = asked {
                    return None;
                }
            }
            tokio::select! {
                Ok(()) = self.piggy_back.changed() => {
                    let orders = self.piggy_back.borrow_and_update().clone();
                    self.news.extend(orders.into_iter().map(News::Order));
                }
                () = wait(shared.poll_every.map(|_| self.due)) => self.poll(shared).await,
                () = sleep_until(self.look_again) => {}
            }
        }
    }

    async fn poll(&mut self, shared: &Shared) {
        let got = shared.client.provider_instructions().await;
        self.due = Instant::now() + shared.poll_every.unwrap_or_default();
        match got {
            Ok(list) => {
                if !self.is_reached {
                    self.news.push_back(News::Connected);
                }
                self.is_reached = true;
                self.news.push_back(News::Reset(Reach::Lent));
                let listed = old::listed(&list);
                self.news.extend(listed.orders.into_iter().map(News::Order));
                self.news.extend(listed.is_unread.then_some(News::Unread));
                self.news.push_back(News::Synced);
            }
            Err(error) => {
                self.is_reached = false;
                self.news.push_back(News::Interrupted(error.into()));
            }
        }
    }
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}
