//! What to do next about a pair when both of its directions are gone: pure.

use super::seen::Seen;
use super::step::{For, LOOK_AGAIN, Next, Scene, Step};

/// What to do next. [`Next::gone`] means that nothing is left at all.
pub(super) fn end(scene: &Scene<'_>) -> Next {
    if let Some(rest) = scene.blind() {
        return rest;
    }
    let Seen { namespace, foreign, lent, borrowed, networks, .. } = scene.seen;
    match (namespace, foreign) {
        (Some(place), _) if place.is_deleting => scene.wait(For::NamespaceGone),
        (Some(place), _) if !place.is_ours => Next::gone(),
        (Some(_), _) if lent.slices + borrowed.slices + networks > 0 => {
            Next::rest(Some(LOOK_AGAIN))
        }
        (Some(_), _) if scene.fresh().is_some() => Next::rest(scene.fresh()),
        // Marked first: once the namespace is gone, nothing else says that it was ours.
        (Some(_), Some(foreign)) if !foreign.is_marked => Next::step(Step::MarkForeign),
        (Some(place), _) => Next::step(Step::DeleteNamespace(place.uid.clone())),
        (None, Some(foreign)) if foreign.is_marked => Next::step(Step::DeleteForeign),
        (None, _) => Next::gone(),
    }
}
