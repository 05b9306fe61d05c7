//! What a cluster says of itself, for every suite that needs one that lends.

use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_wire::Timestamp;
use sublet_wire::v1::{Advertisement, Capabilities, ResourceMetrics};

/// The word of a cluster that has this much, all of it free.
pub(crate) fn advertisement(cluster: &str, all: &Resources) -> Advertisement {
    Advertisement {
        cluster_id: cluster.into(),
        resources: ResourceMetrics {
            capacity: all.into(),
            allocatable: all.into(),
            allocated: (&Resources::default()).into(),
            ..ResourceMetrics::default()
        },
        timestamp: Some(Timestamp::from(Time::from_millis(1_700_000_000_000))),
        capabilities: Some(Capabilities {
            acknowledge: true,
            activate: true,
            renew: true,
            stream: true,
            backends: Vec::new(),
        }),
        ..Advertisement::default()
    }
}
