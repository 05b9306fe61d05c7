//! No peering: the instruction is carried out as soon as it is recorded.

use std::future::{pending, ready};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sublet_core::advertisement::Backend;
use sublet_core::instruction::Side;

use super::{Change, IsLive, Peering, Progress, Removal};
use crate::transport::Order;

/// The clusters are not joined, or somebody else does it; as the Go agent without a folder of
/// kubeconfigs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeering;

impl Peering for NoPeering {
    fn backend(&self) -> Backend {
        Backend::None
    }

    fn establish<'a>(&'a self, _: &'a Order) -> BoxFuture<'a, Progress> {
        ready(Progress::Ready).boxed()
    }

    fn withdraw<'a>(&'a self, _: &'a Order) -> BoxFuture<'a, Removal> {
        ready(Removal::Gone).boxed()
    }

    fn sweep<'a>(&'a self, _: &'a [Side], _: &'a IsLive) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }

    fn changed(&self) -> BoxFuture<'_, Change> {
        pending().boxed()
    }
}
