//! No broker at all: the cluster is measured, and that is that.

use std::future::{pending, ready};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sublet_core::id::{Generation, Key};
use sublet_wire::v1::{
    Advertisement, Failed, Message, Number, Renewal, ReservationRequest, Resizing,
};

use super::{Answer, Broker, Error, Feed, News, Promise};

/// No broker: everything that would need one is refused with [`Error::NoBroker`], and nothing is
/// ever to be done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

fn nobody<'a, T: Send + 'a>() -> Answer<'a, T> {
    ready(Err(Error::NoBroker)).boxed()
}

impl Broker for Local {
    fn ping(&self) -> Answer<'_, ()> {
        nobody()
    }

    fn publish<'a>(&'a self, _: &'a Advertisement) -> Answer<'a, Option<Number>> {
        nobody()
    }

    fn reserve<'a>(&'a self, _: &'a Key, _: &'a ReservationRequest) -> Answer<'a, Promise> {
        nobody()
    }

    fn reservation<'a>(&'a self, _: &'a str) -> Answer<'a, Option<Promise>> {
        nobody()
    }

    /// A broker that was there before may hold something.
    fn release_key<'a>(&'a self, _: &'a Key) -> Answer<'a, Option<Promise>> {
        nobody()
    }

    fn release<'a>(&'a self, _: &'a str) -> Answer<'a, Option<Promise>> {
        nobody()
    }

    fn renew<'a>(&'a self, _: &'a str, _: &'a Renewal) -> Answer<'a, Option<Promise>> {
        nobody()
    }

    fn resize<'a>(&'a self, _: &'a str, _: &'a Resizing) -> Answer<'a, Option<Promise>> {
        nobody()
    }

    fn activate<'a>(&'a self, _: &'a str) -> Answer<'a, Option<Promise>> {
        nobody()
    }

    fn acknowledge<'a>(&'a self, _: &'a str, _: Generation) -> Answer<'a, ()> {
        nobody()
    }

    fn fail<'a>(&'a self, _: &'a str, _: &'a Failed) -> Answer<'a, ()> {
        nobody()
    }

    fn send<'a>(&'a self, _: &'a Message) -> Answer<'a, ()> {
        nobody()
    }

    fn feed(&self) -> Box<dyn Feed> {
        Box::new(Self)
    }
}

impl Feed for Local {
    fn next(&mut self) -> BoxFuture<'_, News> {
        pending().boxed()
    }
}
