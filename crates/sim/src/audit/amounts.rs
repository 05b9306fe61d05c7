//! Amounts as the auditor counts them: in columns, and wide, so that no sum wraps.

use sublet_core::resources::{Kind, Limits, Resources};

use crate::world::FPGA;

/// How many kinds of resources the world knows: cpu, memory, gpu, storage and an extended one.
pub(super) const KINDS: usize = 5;

/// So much of each kind.
pub(crate) type Amounts = [u128; KINDS];

/// Where nothing is limited. Far above all sums, and sums with it do not wrap.
const WIDE: u128 = u128::MAX / 2;

/// The amounts of a request, a grant or an advertisement.
pub(crate) fn amounts(resources: &Resources) -> Amounts {
    let mut extended = resources.extended_iter().filter(|(name, _)| name.as_str() == FPGA);
    let fpga = extended.next().map_or(0, |(_, amount)| amount);
    [resources.cpu, resources.memory, resources.gpu, resources.storage, fpga].map(u128::from)
}

/// The limits of each kind; none where nothing is limited.
pub(super) fn limits(limits: &Limits) -> Option<Amounts> {
    let mut found = [WIDE; KINDS];
    for (kind, limit) in &limits.0 {
        let column = match kind {
            Kind::Cpu => 0,
            Kind::Memory => 1,
            Kind::Gpu => 2,
            Kind::Storage => 3,
            Kind::Extended(_) => 4,
        };
        found[column] = u128::from(*limit);
    }
    (!limits.0.is_empty()).then_some(found)
}

pub(super) fn plus(a: Amounts, b: Amounts) -> Amounts {
    std::array::from_fn(|d| a[d] + b[d])
}

pub(super) fn larger(a: Amounts, b: Amounts) -> Amounts {
    std::array::from_fn(|d| a[d].max(b[d]))
}

pub(super) fn less(a: Amounts, b: Amounts) -> Amounts {
    std::array::from_fn(|d| a[d].saturating_sub(b[d]))
}

/// Is some of `more` taken where the sum is above the limit?
pub(super) fn exceeds(more: Amounts, total: Amounts, limit: Amounts) -> bool {
    (0..KINDS).any(|d| more[d] > 0 && total[d] > limit[d])
}
