//! The moments in which a crash is worst: around a snapshot, and right after it.

use std::time::Duration;

use sublet_log::Log;
use sublet_log::embedded::Embedded;
use tokio::time::Instant;

use super::{Siege, below};

/// Longer than it takes the load to fill a log for a snapshot, and the broker to look at it.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(4);

impl Siege {
    /// The broker looks at the length of its log a second after it has started, and every second
    /// from then on: it is killed while it does, or a little before or after.
    pub(super) fn wait_for_the_look(&self) {
        let moment = Duration::from_millis(950 + below(600));
        std::thread::sleep(moment.saturating_sub(self.since.elapsed()));
    }

    /// Waits until there is another snapshot, and not a moment longer: what comes next is that the
    /// records before it go.
    pub(super) fn wait_for_a_snapshot(&mut self) {
        let log = Embedded::look(&self.fleet.data()).unwrap();
        let latest = || {
            log.look_again().unwrap();
            log.snapshot().unwrap().map(|found| found.revision())
        };
        let (before, until) = (latest(), Instant::now() + SNAPSHOT_PATIENCE);
        while Instant::now() < until {
            if latest() != before {
                self.at_a_snapshot += 1;
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
