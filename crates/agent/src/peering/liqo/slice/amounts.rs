//! Amounts as a slice has them: what is reserved, and the two that no node can do without.

use std::collections::BTreeMap;

use sublet_core::quantity::Round;
use sublet_core::resources::{Kind, Resources};
use sublet_crds::Quantity;

/// Amounts by the name that Kubernetes has for the resource.
pub(crate) type List = BTreeMap<String, Quantity>;

const PODS: &str = "pods";
const STORAGE: &str = "ephemeral-storage";

/// What a virtual node has beyond what is reserved: without places for pods nothing runs there, and
/// without storage nothing that asks for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extras {
    /// Places for pods.
    pub pods: u64,
    /// Bytes of ephemeral storage, where none is reserved.
    pub storage: u64,
}

/// What a slice asks for.
pub(crate) fn asked(amounts: &Resources, extras: Extras) -> List {
    let mut list: List = amounts.iter().map(|(kind, amount)| written(&kind, amount)).collect();
    for (name, quantity) in extras.list() {
        list.entry(name).or_insert(quantity);
    }
    list
}

/// What a slice is granted: what is reserved whatever it asks for, and of the extras what it asks for
/// up to what we give. What was granted before and is not any more is granted as zero, because a node
/// keeps what is only left out.
pub(crate) fn granted(amounts: &Resources, asked: &List, before: &List, extras: Extras) -> List {
    let mut list: List = amounts.iter().map(|(kind, amount)| written(&kind, amount)).collect();
    for (name, most) in extras.list() {
        let wanted = asked.get(&name).filter(|wanted| is_less(wanted, &most));
        list.entry(name).or_insert_with(|| wanted.cloned().unwrap_or(most));
    }
    for name in before.keys() {
        list.entry(name.clone()).or_insert_with(|| Quantity("0".to_owned()));
    }
    list
}

/// No more of anything than was granted before.
pub(crate) fn no_more(list: List, before: &List) -> List {
    let zero = Quantity("0".to_owned());
    let lesser = |(name, amount): (String, Quantity)| {
        let had = before.get(&name).unwrap_or(&zero);
        let least = if is_less(had, &amount) { had.clone() } else { amount };
        (name, least)
    };
    list.into_iter().map(lesser).collect()
}

/// What is asked for beyond what is reserved, or cannot be counted. Extras are ours to cut, and no
/// matter.
pub(crate) fn excess(asked: &List, amounts: &Resources) -> List {
    let reserved: List = amounts.iter().map(|(kind, amount)| written(&kind, amount)).collect();
    let is_extra = |name: &str| name == PODS || name == STORAGE && amounts.storage == 0;
    let zero = Quantity("0".to_owned());
    let is_more = |(name, wanted): &(&String, &Quantity)| {
        let most = reserved.get(*name).unwrap_or(&zero);
        !is_extra(name) && value(wanted) != value(most) && !is_less(wanted, most)
    };
    asked.iter().filter(is_more).map(|(name, wanted)| (name.clone(), wanted.clone())).collect()
}

/// Are these the same amounts, however they are written? What is not named is zero.
pub(crate) fn is_same(one: &List, other: &List) -> bool {
    let in_both = |(name, quantity): (&String, &Quantity)| {
        let zero = Quantity("0".to_owned());
        value(quantity) == value(other.get(name).unwrap_or(&zero))
    };
    let only_other = other.iter().filter(|(name, _)| !one.contains_key(*name));
    one.iter().all(in_both)
        && only_other.into_iter().all(|(_, quantity)| units(quantity) == Some(0))
}

/// Is this what is reserved, no less and no more? Extras do not matter, unless they are reserved.
pub(crate) fn is_exactly(list: &List, amounts: &Resources) -> bool {
    let reserved: List = amounts.iter().map(|(kind, amount)| written(&kind, amount)).collect();
    let is_extra = |name: &str| name == PODS || name == STORAGE && amounts.storage == 0;
    let rest = list.iter().filter(|(name, _)| !is_extra(name));
    is_same(&rest.map(|(name, quantity)| (name.clone(), quantity.clone())).collect(), &reserved)
}

/// For people: `cpu 2, memory 4Gi`.
pub(crate) fn text(list: &List) -> String {
    let parts: Vec<_> = list.iter().map(|(name, amount)| format!("{name} {}", amount.0)).collect();
    parts.join(", ")
}

impl Extras {
    fn list(self) -> [(String, Quantity); 2] {
        let pods = Quantity(self.pods.to_string());
        [(PODS.to_owned(), pods), written(&Kind::Storage, self.storage)]
    }
}

fn written(kind: &Kind, amount: u64) -> (String, Quantity) {
    let name = match kind {
        Kind::Gpu => "nvidia.com/gpu",
        Kind::Storage => STORAGE,
        other => other.as_str(),
    };
    (name.to_owned(), Quantity(kind.quantity(amount).to_string()))
}

/// What is no amount, below zero, or beyond all numbers is never less.
fn is_less(one: &Quantity, other: &Quantity) -> bool {
    matches!((units(one), units(other)), (Some(one), Some(other)) if one < other)
}

fn value(quantity: &Quantity) -> Option<sublet_core::quantity::Quantity> {
    quantity.0.parse().ok()
}

fn units(quantity: &Quantity) -> Option<u64> {
    value(quantity)?.to_units(Round::Up).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTRAS: Extras = Extras { pods: 110, storage: 20 << 30 };

    fn list(all: &[(&str, &str)]) -> List {
        all.iter().map(|(name, text)| ((*name).to_owned(), Quantity((*text).to_owned()))).collect()
    }

    fn reserved() -> Resources {
        Resources::new(1500, 4 << 30).with(Kind::Gpu, 1).unwrap()
    }

    #[test]
    fn a_slice_asks_for_what_is_reserved_and_for_the_extras() {
        let all = list(&[
            ("cpu", "1500m"),
            ("memory", "4Gi"),
            ("nvidia.com/gpu", "1"),
            ("pods", "110"),
            ("ephemeral-storage", "20Gi"),
        ]);
        assert_eq!(asked(&reserved(), EXTRAS), all);
        let with_storage = reserved().with(Kind::Storage, 1 << 30).unwrap();
        assert_eq!(asked(&with_storage, EXTRAS)["ephemeral-storage"].0, "1Gi");
    }

    #[test]
    fn whoever_asks_for_more_gets_what_is_reserved() {
        let greedy = list(&[("cpu", "64"), ("memory", "1Ti"), ("pods", "9999"), ("x.y/z", "5")]);
        let grant = granted(&reserved(), &greedy, &List::new(), EXTRAS);
        assert_eq!(grant, asked(&reserved(), EXTRAS));
        let modest = list(&[("pods", "5"), ("ephemeral-storage", "1Gi")]);
        let grant = granted(&reserved(), &modest, &List::new(), EXTRAS);
        assert_eq!((&*grant["pods"].0, &*grant["ephemeral-storage"].0), ("5", "1Gi"));
        assert_eq!(grant["cpu"].0, "1500m");
    }

    #[test]
    fn what_is_asked_for_beyond_what_is_reserved_is_known() {
        let reserved = reserved();
        assert_eq!(excess(&asked(&reserved, EXTRAS), &reserved), List::new());
        let modest = list(&[("cpu", "1"), ("memory", "1Gi"), ("pods", "9999"), ("x.y/z", "0")]);
        assert_eq!(excess(&modest, &reserved), List::new());
        let greedy = list(&[("cpu", "1501m"), ("memory", "-1"), ("x.y/z", "1"), ("pods", "1")]);
        let more = list(&[("cpu", "1501m"), ("memory", "-1"), ("x.y/z", "1")]);
        assert_eq!(excess(&greedy, &reserved), more);
    }

    #[test]
    fn what_cannot_be_counted_is_not_granted_as_it_was_asked() {
        for rubbish in ["100E", "-1", "-100E", "many", "", "1e30"] {
            let odd = list(&[("pods", rubbish), ("ephemeral-storage", rubbish)]);
            let grant = granted(&reserved(), &odd, &List::new(), EXTRAS);
            assert_eq!(grant, asked(&reserved(), EXTRAS), "{rubbish}");
        }
    }

    #[test]
    fn what_is_not_granted_any_more_is_granted_as_zero() {
        let before = asked(&reserved(), EXTRAS);
        let smaller = Resources::new(1000, 1 << 30);
        let grant = granted(&smaller, &before, &before, EXTRAS);
        assert_eq!(grant["nvidia.com/gpu"].0, "0");
        assert!(is_exactly(&grant, &smaller) && !is_exactly(&before, &smaller));
    }

    #[test]
    fn amounts_are_compared_by_value() {
        let one = list(&[("cpu", "2"), ("memory", "4Gi"), ("x.y/z", "0")]);
        assert!(is_same(&one, &list(&[("cpu", "2000m"), ("memory", "4096Mi")])));
        assert!(is_same(&list(&[("cpu", "2"), ("memory", "4Gi")]), &one));
        assert!(!is_same(&one, &list(&[("cpu", "2"), ("memory", "4Gi"), ("x.y/z", "1")])));
        assert!(!is_same(&one, &list(&[("cpu", "2001m"), ("memory", "4Gi")])));
        assert!(!is_same(&list(&[("cpu", "rubbish")]), &list(&[("cpu", "2")])));
    }

    #[test]
    fn exactly_is_neither_less_nor_more() {
        let exact = asked(&reserved(), EXTRAS);
        assert!(is_exactly(&exact, &reserved()));
        for (name, amount) in [("cpu", "1"), ("cpu", "2"), ("x.y/z", "1"), ("nvidia.com/gpu", "0")]
        {
            let mut other = exact.clone();
            other.insert(name.to_owned(), Quantity(amount.to_owned()));
            assert!(!is_exactly(&other, &reserved()), "{name} {amount}");
        }
    }
}
