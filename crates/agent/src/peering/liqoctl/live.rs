//! Which reservations of a pair live, and what they add up to.
//!
//! The truth is in the instructions, which are written down before anybody acts on them, so that an
//! agent which has just started knows all of them. In memory is only what is not written there: which
//! of them are being taken down already, and which are kept although somebody deleted their object.

use std::collections::BTreeMap;

use kube::api::ListParams;
use kube::{Api, Client};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Duty;
use sublet_core::quantity::{Quantity, Round};
use sublet_core::resources::{self, Resources};

use super::board::Board;
use crate::controllers::Record;
use crate::peering::liqo::{Extras, List, asked};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct One {
    pub(super) amounts: Resources,
    /// Whether it is known to be usable in these amounts.
    pub(super) in_force: bool,
}

/// Those of one pair, on one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Live(pub(super) BTreeMap<String, One>);

impl Live {
    /// Those that are written down, and those that are kept all the same.
    pub(super) async fn of<K: Record>(
        client: &Client,
        namespace: &str,
        board: &Board,
        peer: &ClusterId,
    ) -> Result<Self, kube::Error> {
        let records: Api<K> = Api::namespaced(client.clone(), namespace);
        let mut all = board.kept(K::SIDE, peer);
        for record in records.list(&ListParams::default()).await?.items {
            if board.is_leaving(K::SIDE, record.reservation()) {
                all.remove(record.reservation());
                continue;
            }
            // One that cannot be read is not none: it may be of this pair.
            let order = record.order().map_err(|error| kube::Error::Service(error.into()))?;
            if order.peer != *peer {
                continue;
            }
            let (standing, number) = (record.standing(), order.generation.map(|it| it.0));
            let in_force = standing.in_force && standing.applied == number;
            if order.duty == Duty::Keep {
                all.insert(order.reservation, One { amounts: order.amounts, in_force });
            } else {
                all.remove(&order.reservation);
            }
        }
        Ok(Self(all))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// What all of them add up to.
    pub(super) fn total(&self) -> Result<Resources, resources::Error> {
        sum(self.0.values().map(|one| &one.amounts))
    }

    /// What must be there for this one to be usable: its amounts, beside those that are in use. One that
    /// is still coming, or growing, takes nothing from those that are there.
    pub(super) fn needed_for(
        &self,
        name: &str,
        amounts: &Resources,
    ) -> Result<Resources, resources::Error> {
        let others = self.0.iter().filter(|(other, one)| *other != name && one.in_force);
        sum(others.map(|(_, one)| &one.amounts).chain([amounts]))
    }
}

fn sum<'a>(mut all: impl Iterator<Item = &'a Resources>) -> Result<Resources, resources::Error> {
    all.try_fold(Resources::default(), |sum, one| sum.checked_add(one))
}

/// Does a list have at least these amounts?
pub(super) fn covers(list: &List, amounts: &Resources) -> bool {
    reserved(amounts).iter().all(|(name, wanted)| {
        let has = list.get(name).and_then(|has| units(name, &has.0, Round::Down));
        has.is_some_and(|has| Some(has) >= units(name, &wanted.0, Round::Up))
    })
}

/// Does a list have at most these amounts? Places for pods do not count, nor does storage where none
/// is reserved: there is always some of both.
pub(super) fn fits(list: &List, amounts: &Resources) -> bool {
    let most = reserved(amounts);
    let is_extra =
        |name: &str| name == "pods" || name == "ephemeral-storage" && amounts.storage == 0;
    list.iter().filter(|(name, _)| !is_extra(name)).all(|(name, has)| {
        let most = most.get(name).map_or("0", |most| &*most.0);
        let has = units(name, &has.0, Round::Up);
        has.is_some_and(|has| Some(has) <= units(name, most, Round::Down))
    })
}

/// What is reserved and nothing else, by the names that Kubernetes has.
fn reserved(amounts: &Resources) -> List {
    let mut list = asked(amounts, Extras { pods: 0, storage: 0 });
    list.retain(|name, amount| units(name, &amount.0, Round::Up) != Some(0));
    list
}

/// As fine as it is counted.
fn units(name: &str, text: &str, round: Round) -> Option<u64> {
    let quantity: Quantity = text.parse().ok()?;
    match name {
        "cpu" => quantity.to_milli(round).ok(),
        _ => quantity.to_units(round).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet_core::resources::Kind;
    use sublet_crds::Quantity;

    fn live(all: &[(&str, u64, bool)]) -> Live {
        let one = |cpu, in_force| One { amounts: Resources::new(cpu, cpu << 20), in_force };
        Live(
            all.iter()
                .map(|(name, cpu, in_force)| ((*name).to_owned(), one(*cpu, *in_force)))
                .collect(),
        )
    }

    fn list(all: &[(&str, &str)]) -> List {
        all.iter().map(|(name, text)| ((*name).to_owned(), Quantity((*text).to_owned()))).collect()
    }

    #[test]
    fn a_slice_is_the_sum_of_all_that_live() {
        assert_eq!(
            live(&[("a", 500, true), ("b", 700, false)]).total().unwrap(),
            Resources::new(1200, 1200 << 20)
        );
        assert!(Live::default().total().unwrap().is_zero());
        let much = One { amounts: Resources::new(u64::MAX, 1), in_force: true };
        let too_much = Live([("a".to_owned(), much.clone()), ("b".to_owned(), much)].into());
        assert!(too_much.total().is_err());
    }

    #[test]
    fn one_that_is_coming_takes_nothing_from_those_that_are_there() {
        let both = live(&[("a", 500, true), ("b", 700, false)]);
        let needed = |name: &str, cpu| both.needed_for(name, &Resources::new(cpu, 1)).unwrap().cpu;
        assert_eq!(needed("a", 500), 500, "it is there, whatever becomes of b");
        assert_eq!(needed("b", 700), 1200, "not before there is enough for both");
        assert_eq!(needed("a", 900), 900, "it grows");
    }

    #[test]
    fn amounts_are_compared_by_value_and_extras_do_not_count() {
        let amounts = Resources::new(1500, 4 << 30).with(Kind::Gpu, 1).unwrap();
        let exact =
            [("cpu", "1500m"), ("memory", "4096Mi"), ("nvidia.com/gpu", "1"), ("pods", "110")];
        let more = [
            ("cpu", "2"),
            ("memory", "4Gi"),
            ("nvidia.com/gpu", "1"),
            ("ephemeral-storage", "20Gi"),
        ];
        let less = [("cpu", "1499m"), ("memory", "4Gi"), ("nvidia.com/gpu", "1")];
        let told =
            |all: &[(&str, &str)]| (covers(&list(all), &amounts), fits(&list(all), &amounts));
        assert_eq!(told(&exact), (true, true));
        assert_eq!(told(&more), (true, false));
        assert_eq!(told(&less), (false, true));
        assert_eq!(told(&[("x.y/z", "1")]), (false, false));
        assert_eq!(told(&[("cpu", "rubbish")]), (false, false));
        assert_eq!(told(&[]), (false, true));
        let stored = Resources::new(1, 1).with(Kind::Storage, 1 << 30).unwrap();
        assert!(!fits(&list(&[("ephemeral-storage", "2Gi")]), &stored));
    }
}
