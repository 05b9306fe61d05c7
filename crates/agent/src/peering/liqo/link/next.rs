//! What to do next about a pair when both of its directions are gone: pure.

use sublet_core::time::Span;

use super::seen::Seen;
use super::step::{For, Next, Scene, Step};

/// How often slices that nobody can replicate are looked at.
const LOOK_AGAIN: Span = Span::from_secs(30);

/// What to do next. [`Next::gone`] means that nothing is left at all.
pub(super) fn end(scene: &Scene<'_>) -> Next {
    let Seen { namespace, foreign, lent, borrowed, .. } = scene.seen;
    match (namespace, foreign) {
        (Some(place), _) if place.is_deleting => scene.wait(For::NamespaceGone),
        (Some(place), _) if !place.is_ours => Next::gone(),
        (Some(_), _) if lent.slices + borrowed.slices > 0 => Next::rest(Some(LOOK_AGAIN)),
        // Marked first: once the namespace is gone, nothing else says that it was ours.
        (Some(_), Some(foreign)) if !foreign.is_marked => Next::step(Step::MarkForeign),
        (Some(_), _) => Next::step(Step::DeleteNamespace),
        (None, Some(foreign)) if foreign.is_marked => Next::step(Step::DeleteForeign),
        (None, _) => Next::gone(),
    }
}
