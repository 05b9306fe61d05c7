//! Labels and annotations of a pair.

/// The label of a tenant namespace that an agent made, and its value: another one is never removed.
pub(super) const PEERED_BY: (&str, &str) = ("sublet.io/peered-by", "liqoctl");
/// The label of a tenant namespace from before liqoctl first peers for us until it has unpeered, and its
/// value: what somebody peered by hand is his.
pub(super) const BORROWS_BY: (&str, &str) = ("sublet.io/borrows-by", "liqoctl");
/// The annotation of a slice that says of which reservations it is the sum.
pub(super) const RESERVATIONS: &str = "sublet.io/reservations";
