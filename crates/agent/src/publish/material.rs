//! What cannot wait for the grid.

use sublet_core::resources::Resources;

use crate::collect::Measured;

/// A change of what pods take is news when it is at least one part in so many of what there is.
const PARTS: u128 = 50;

/// Should the broker hear of this soon? A node that came or went, a grant that was carried out or is
/// over, or pods that take much more or much less.
pub(super) fn is_material(before: &Measured, after: &Measured) -> bool {
    let grants = |measured: &Measured| {
        measured.grants.iter().map(|(grant, _)| grant.clone()).collect::<Vec<_>>()
    };
    before.allocatable != after.allocatable
        || before.capacity != after.capacity
        || grants(before) != grants(after)
        || differs_much(&before.allocated, &after.allocated, &after.allocatable)
}

fn differs_much(before: &Resources, after: &Resources, all: &Resources) -> bool {
    all.iter().any(|(kind, all)| {
        let difference = before.get(&kind).abs_diff(after.get(&kind));
        difference > 0 && u128::from(difference) * PARTS >= u128::from(all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(cpu: u64, allocated: u64) -> Measured {
        let all = Resources::new(cpu, 1 << 30);
        Measured {
            capacity: all.clone(),
            allocatable: all,
            allocated: Resources::new(allocated, 0),
            ..Measured::default()
        }
    }

    #[test]
    fn a_small_pod_can_wait_and_a_large_one_or_a_node_cannot() {
        let before = measured(100_000, 5_000);
        assert!(!is_material(&before, &before));
        assert!(!is_material(&before, &measured(100_000, 6_999)));
        assert!(is_material(&before, &measured(100_000, 7_000)));
        assert!(is_material(&before, &measured(100_000, 3_000)));
        assert!(is_material(&before, &measured(92_000, 5_000)));
    }
}
