//! What of the spare capacity is offered to others: all of it, a share, all but something that stays
//! at home, or at most something; resource by resource.
//!
//! ```
//! use sublet_agent::offer::Offer;
//! use sublet_core::resources::Resources;
//!
//! let offer: Offer = "50%,memory=all-4Gi,gpu=none".parse()?;
//! let spare = Resources::new(3001, 16 << 30);
//! assert_eq!(offer.of(&spare), Resources::new(1500, 12 << 30));
//! # Ok::<(), sublet_agent::offer::Error>(())
//! ```
//!
//! *Spare* is what the cluster's own pods leave free, whether it is lent already or not; so what is
//! offered does not shrink because it is taken. It rounds down.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use sublet_core::quantity::{self, Quantity, Round};
use sublet_core::resources::{self, Kind, Resources};

/// What of each resource is offered. Read from, and printed as, terms with commas between them: a
/// share for everything (`all`, `none` or `50%`), and `RESOURCE=TERM` for those that differ, where the
/// term may also be `all-4Gi` (all but that) or `4Gi` (at most that).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    rest: Term,
    named: BTreeMap<Kind, Term>,
}

/// What of one resource is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    /// A share in hundredths; at most a hundred of them.
    Percent(u8),
    /// All but this, which stays at home.
    AllBut(u64),
    /// At most this.
    AtMost(u64),
}

/// Why a text is not an offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More than there is, or no number.
    #[error("{0:?} is not a share: write a whole number of percent from 0% to 100%")]
    Percent(String),
    /// An amount means nothing without a resource.
    #[error("{0:?} needs a resource: write one such as cpu={0}, or a share such as 50%")]
    NeedsResource(String),
    /// The same resource twice.
    #[error("{0} is given twice: leave one out")]
    Twice(String),
    /// Not an amount.
    #[error(
        "{text:?} is neither all, none, a share such as 50%, all but an amount such as all-4Gi, nor an amount"
    )]
    Amount {
        /// What was written.
        text: String,
        /// Why that is no amount.
        source: quantity::Error,
    },
    /// Not a resource.
    #[error(transparent)]
    Resource(#[from] resources::Error),
}

impl Default for Offer {
    /// Everything.
    fn default() -> Self {
        Self { rest: Term::Percent(100), named: BTreeMap::new() }
    }
}

impl Offer {
    /// What is offered of this spare capacity.
    pub fn of(&self, spare: &Resources) -> Resources {
        spare.iter().fold(Resources::default(), |sum, (kind, amount)| {
            let offered = self.named.get(&kind).unwrap_or(&self.rest).of(amount);
            // No more kinds than `spare` has.
            sum.clone().with(kind, offered).unwrap_or(sum)
        })
    }
}

impl Term {
    fn of(self, free: u64) -> u64 {
        match self {
            Self::Percent(hundredths) => {
                let part = u128::from(free) * u128::from(hundredths) / 100;
                u64::try_from(part).map_or(free, |part| part.min(free))
            }
            Self::AllBut(floor) => free.saturating_sub(floor),
            Self::AtMost(most) => free.min(most),
        }
    }

    /// A share, which needs no resource; none if it is not meant as one.
    fn share(text: &str) -> Option<Result<Self, Error>> {
        match (text, text.strip_suffix('%')) {
            ("all", _) => Some(Ok(Self::Percent(100))),
            ("none", _) => Some(Ok(Self::Percent(0))),
            (_, Some(number)) => {
                let share = number.parse().ok().filter(|share| *share <= 100);
                Some(share.map(Self::Percent).ok_or_else(|| Error::Percent(text.to_owned())))
            }
            _ => None,
        }
    }

    fn read(text: &str, kind: &Kind) -> Result<Self, Error> {
        if let Some(share) = Self::share(text) {
            return share;
        }
        let amount = |part: &str, round| {
            let quantity: Result<Quantity, _> = part.trim().parse();
            let amount = quantity.and_then(|quantity| kind.amount(&quantity, round));
            amount.map_err(|source| Error::Amount { text: text.to_owned(), source })
        };
        match text.strip_prefix("all-") {
            // What stays at home is used, not offered: it rounds up.
            Some(floor) => Ok(Self::AllBut(amount(floor, Round::Up)?)),
            None => Ok(Self::AtMost(amount(text, Round::Down)?)),
        }
    }

    fn text(self, kind: &Kind) -> String {
        match self {
            Self::Percent(100) => "all".to_owned(),
            Self::Percent(0) => "none".to_owned(),
            Self::Percent(share) => format!("{share}%"),
            Self::AllBut(floor) => format!("all-{}", kind.quantity(floor)),
            Self::AtMost(most) => kind.quantity(most).to_string(),
        }
    }
}

impl FromStr for Offer {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut rest = None;
        let mut named = BTreeMap::new();
        for term in text.split(',').map(str::trim).filter(|term| !term.is_empty()) {
            let again = if let Some((name, term)) = term.split_once('=') {
                let kind: Kind = name.trim().parse()?;
                let term = Term::read(term.trim(), &kind)?;
                named.insert(kind, term).is_some()
            } else {
                let share = Term::share(term);
                let share = share.ok_or_else(|| Error::NeedsResource(term.to_owned()))??;
                rest.replace(share).is_some()
            };
            if again {
                return Err(Error::Twice(term.to_owned()));
            }
        }
        Ok(Self { rest: rest.unwrap_or(Term::Percent(100)), named })
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rest.text(&Kind::Cpu))?;
        self.named.iter().try_for_each(|(kind, term)| write!(f, ",{kind}={}", term.text(kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offered(offer: &str, kind: &str, spare: u64) -> u64 {
        let offer: Offer = offer.parse().unwrap();
        let kind: Kind = kind.parse().unwrap();
        offer.of(&Resources::default().with(kind.clone(), spare).unwrap()).get(&kind)
    }

    #[test]
    fn each_resource_is_offered_by_its_term() {
        for (offer, kind, spare, expected) in [
            ("", "cpu", 1000, 1000),
            ("all", "cpu", 1000, 1000),
            ("none", "cpu", 1000, 0),
            ("50%", "cpu", 1001, 500),
            ("33%", "gpu", 2, 0),
            ("100%", "memory", u64::MAX, u64::MAX),
            ("99%", "memory", u64::MAX, u64::MAX / 100 * 99 + 14),
            ("cpu=all-4", "cpu", 6000, 2000),
            ("cpu=all-4", "cpu", 3000, 0),
            ("cpu=all-4", "memory", 3000, 3000),
            ("cpu=2", "cpu", 6000, 2000),
            ("cpu=2", "cpu", 1000, 1000),
            ("none,gpu=all", "gpu", 4, 4),
            ("none,nvidia.com/gpu=all", "gpu", 4, 4),
            ("none,example.com/fpga=50%", "example.com/fpga", 5, 2),
            (" 10% , memory = all-1Gi ", "memory", 3 << 30, 2 << 30),
            ("storage=all-1.5", "storage", 10, 8),
        ] {
            assert_eq!(offered(offer, kind, spare), expected, "{offer} of {spare} {kind}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        for (offer, said) in [
            ("101%", "from 0% to 100%"),
            ("-1%", "from 0% to 100%"),
            ("1.5%", "from 0% to 100%"),
            ("4Gi", "needs a resource"),
            ("all-4Gi", "needs a resource"),
            ("some", "needs a resource"),
            ("50%,60%", "given twice"),
            ("cpu=1,cpu=2", "given twice"),
            ("gpu=1,nvidia.com/gpu=2", "given twice"),
            ("cpu=lots", "neither all, none"),
            ("cpu=all-", "neither all, none"),
            ("cpu=all--1", "neither all, none"),
            ("cpu=", "neither all, none"),
            ("a b=1", "not a resource name"),
        ] {
            let error = offer.parse::<Offer>().unwrap_err().to_string();
            assert!(error.contains(said), "{offer}: {error}");
        }
    }

    proptest! {
        #[test]
        fn never_more_than_there_is_and_printed_it_reads_back(
            share in 0..=100_u8, floor in any::<u32>(), most in any::<u32>(), spare in any::<u64>(),
        ) {
            let text = format!("{share}%,cpu=all-{floor}m,memory={most}");
            let offer: Offer = text.parse().unwrap();
            let all = Resources::new(spare, spare).with(Kind::Gpu, spare).unwrap();
            prop_assert!(offer.of(&all).fits_in(&all));
            prop_assert_eq!(offer.to_string().parse::<Offer>().unwrap(), offer);
        }
    }
}
