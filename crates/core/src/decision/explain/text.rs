//! Explanations in sentences.
//!
//! Amounts are rounded up to hundredths of their unit: asking for a little less than needed, or
//! having a little more free, is still enough, so a rounded proposal stays true. Only to ask for so
//! much less that nothing is left would not be: what comes near to that is told in a finer unit.

use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

use super::{Explanation, Granted, Left, Lift, Nearest, Price, Ranked, Refused};
use crate::decision::filter::Filter;
use crate::resources::{Kind, Resources};

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(granted) => granted.fmt(f),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl Display for Granted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.winner)?;
        if self.runners_up.is_empty() {
            return Ok(());
        }
        f.write_str("; next ")?;
        list(f, &self.runners_up, ", then ")
    }
}

impl Display for Ranked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cluster)?;
        if let Some(Price { micros, currency }) = &self.price {
            write!(f, " for {}.{:06} {currency} an hour", micros / 1_000_000, micros % 1_000_000)?;
        }
        if self.left.is_empty() {
            return Ok(());
        }
        f.write_str(" (")?;
        list(f, &self.left, ", ")?;
        f.write_str(" left)")
    }
}

impl Display for Left {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.hundredths_of_percent / 100, self.hundredths_of_percent % 100);
        write!(f, "{whole}.{rest:02} % {}", self.resource)
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        match self.clusters {
            0 if counts.is_empty() => f.write_str("no cluster is known")?,
            0 => f.write_str("no cluster is known: ")?,
            1 => f.write_str("of 1 cluster ")?,
            many => write!(f, "of {many} clusters ")?,
        }
        list(f, &counts, ", ")?;
        if let Some(span) = &self.held_back {
            write!(f, "; held back for {span}, since it may have been granted before the restore")?;
        }
        if let Some(excess) = &self.allowance {
            write!(f, "; {} more than your allowance", Amounts::of(excess))?;
        }
        if self.nearest.is_empty() && self.lifts.is_empty() {
            return Ok(());
        }
        f.write_str("; enough would be ")?;
        let asked = &self.asked;
        let nearest: Vec<_> = self.nearest.iter().map(|near| Proposal { near, asked }).collect();
        list(f, &nearest, "; or ")?;
        if !self.nearest.is_empty() && !self.lifts.is_empty() {
            f.write_str("; or ")?;
        }
        list(f, &self.lifts, "; or ")
    }
}

impl Refused {
    /// What was counted, in order.
    fn counts(&self) -> Vec<Count> {
        let not_all = self.uncounted > 0;
        let filters = self.refused.iter().map(|(filter, number)| {
            let at_least = not_all && filter.depends_on_request();
            Count { at_least, number: *number, what: filter.as_str() }
        });
        let room = Count { at_least: not_all, number: self.fitting, what: "with room" };
        let rest = Count { at_least: false, number: self.uncounted, what: "not looked at" };
        filters.chain([room, rest].into_iter().filter(|count| count.number > 0)).collect()
    }
}

struct Count {
    at_least: bool,
    number: u64,
    what: &'static str,
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { at_least, number, what } = self;
        write!(f, "{}{number} {what}", if *at_least { "at least " } else { "" })
    }
}

/// What would have been enough, to somebody who asked for so much.
struct Proposal<'a> {
    near: &'a Nearest,
    asked: &'a Resources,
}

impl Display for Proposal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Nearest { cluster, less, more, cap } = self.near;
        if let Some(less) = less {
            write!(f, "{} less", Amounts::below(less, self.asked))?;
        }
        let or = if less.is_some() { ", or " } else { "" };
        match (more, cap) {
            (Some(more), _) => write!(f, "{or}{} more free on {cluster}", Amounts::of(more)),
            (None, Some(cap)) => write!(f, "{or}a cap {} higher on {cluster}", Amounts::of(cap)),
            (None, None) => write!(f, " on {cluster}"),
        }
    }
}

impl Display for Lift {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cluster = &self.cluster;
        match (self.filter, &self.constraint) {
            (Filter::Target, _) => write!(f, "another target: {cluster} has room"),
            (Filter::Labels, Some(constraint)) => {
                write!(f, "no constraint on '{}': {cluster} has room", constraint.label)
            }
            (Filter::Backend, _) => write!(f, "a peering backend that {cluster} has"),
            (Filter::Suspect | Filter::Stale, _) => write!(f, "an advertisement from {cluster}"),
            (Filter::AwaitingReport, _) => write!(f, "a report from {cluster} since the restore"),
            (Filter::NotLending, _) => write!(f, "{cluster} lending again"),
            (Filter::Cordoned, _) => write!(f, "{cluster} uncordoned"),
            (Filter::Crowded, _) => write!(f, "one grant fewer on {cluster}"),
            (Filter::Policy, _) => write!(f, "a policy that lets you borrow from {cluster}"),
            (Filter::Revoked, _) => write!(f, "{cluster} reinstated"),
            (Filter::Lost, _) => write!(f, "{cluster} back"),
            (filter, _) => write!(f, "{cluster} not {filter}"),
        }
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T], between: &str) -> fmt::Result {
    for (number, item) in items.iter().enumerate() {
        let before = if number == 0 { "" } else { between };
        write!(f, "{before}{item}")?;
    }
    Ok(())
}

/// Amounts as people say them: `1.5 cores and 2 GiB of memory`.
struct Amounts<'a> {
    amounts: &'a Resources,
    /// Rounded up they stay below these.
    below: Option<&'a Resources>,
}

impl<'a> Amounts<'a> {
    fn of(amounts: &'a Resources) -> Self {
        Self { amounts, below: None }
    }

    fn below(amounts: &'a Resources, most: &'a Resources) -> Self {
        Self { amounts, below: Some(most) }
    }
}

impl Display for Amounts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let amounts = self.amounts.iter().map(|(kind, amount)| {
            let below = self.below.map_or(u64::MAX, |below| below.get(&kind));
            Amount { kind, many: amount, below }
        });
        list(f, &amounts.collect::<Vec<_>>(), " and ")
    }
}

struct Amount {
    kind: Kind,
    many: u64,
    below: u64,
}

impl Display for Amount {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { kind, many, below } = self;
        match kind {
            Kind::Cpu => {
                let unit = if *many == 1000 { "core" } else { "cores" };
                decimal(f, many / 1000, many % 1000, 3)?;
                write!(f, " {unit}")
            }
            Kind::Memory => bytes(f, *many, *below),
            Kind::Storage => {
                bytes(f, *many, *below)?;
                f.write_str(" of storage")
            }
            Kind::Gpu => write!(f, "{many} GPU{}", if *many == 1 { "" } else { "s" }),
            Kind::Extended(name) => write!(f, "{many} {}", name.as_str()),
        }
    }
}

/// In the largest unit of which there is one, rounded up to hundredths; in a smaller one where that
/// would not be less than `below`.
fn bytes(f: &mut Formatter<'_>, amount: u64, below: u64) -> fmt::Result {
    const UNITS: [(u32, &str); 5] =
        [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let large = UNITS.into_iter().filter(|(bits, _)| amount.wrapping_shr(*bits) > 0);
    let mut rounded = large.map(|(bits, name)| {
        let unit = 1_u128.wrapping_shl(bits);
        (u128::from(amount).saturating_mul(100).div_ceil(unit), unit, name)
    });
    let limit = u128::from(below).saturating_mul(100);
    let fine = rounded.find(|(hundredths, unit, _)| hundredths.saturating_mul(*unit) < limit);
    let Some((hundredths, _, name)) = fine else { return write!(f, "{amount} B") };
    let hundredths = u64::try_from(hundredths).unwrap_or(u64::MAX);
    decimal(f, hundredths / 100, hundredths % 100, 2)?;
    write!(f, " {name}")
}

/// A number with `digits` after the point, without the zeros at its end.
fn decimal(f: &mut Formatter<'_>, whole: u64, rest: u64, digits: usize) -> fmt::Result {
    write!(f, "{whole}")?;
    if rest == 0 {
        return Ok(());
    }
    let text = alloc::format!("{rest:0digits$}");
    write!(f, ".{}", text.trim_end_matches('0'))
}
