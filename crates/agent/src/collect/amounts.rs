//! Lists of amounts, read into our integers; what cannot be read is noted and left out.

use sublet_core::quantity::{self, Round};
use sublet_core::resources::{Kind, Resources};
use sublet_crds::{Cause, Invalid, Quantity};

use super::seen::ResourceList;

/// Reads the amounts of one object, and remembers what was wrong with them.
#[derive(Default)]
pub(super) struct Reader {
    problems: Vec<Invalid>,
}

impl Reader {
    /// As many problems of one object as are kept; one already makes somebody look.
    const PROBLEMS_MAX: usize = 8;

    /// The amounts of a list; `at` says where it stands in the object.
    pub(super) fn list(&mut self, at: &str, list: &ResourceList, round: Round) -> Resources {
        self.replaced(at, Resources::default(), list.iter(), round)
    }

    /// The sum with those amounts in it that the list has.
    pub(super) fn replaced<'a>(
        &mut self,
        at: &str,
        sum: Resources,
        list: impl Iterator<Item = (&'a String, &'a Quantity)>,
        round: Round,
    ) -> Resources {
        list.fold(sum, |sum, (name, quantity)| {
            let Some(kind) = kind(name) else { return sum };
            let amount = amount(&kind, &quantity.0, round).map_err(Cause::from);
            let read = amount.and_then(|amount| Ok(sum.clone().with(kind, amount)?));
            self.taken(read.map_err(|cause| Invalid::new(format!("{at}.{name}"), cause)), sum)
        })
    }

    /// The sum, or where it cannot be held, what there was.
    pub(super) fn sum(&mut self, at: &str, left: &Resources, right: &Resources) -> Resources {
        let sum = left.checked_add(right).map_err(|error| Invalid::new(at, error));
        self.taken(sum, left.max(right))
    }

    fn taken(&mut self, read: Result<Resources, Invalid>, otherwise: Resources) -> Resources {
        read.unwrap_or_else(|problem| {
            if self.problems.len() < Self::PROBLEMS_MAX {
                self.problems.push(problem);
            }
            otherwise
        })
    }

    /// What was wrong.
    pub(super) fn problems(self) -> Box<[Invalid]> {
        self.problems.into_boxed_slice()
    }
}

fn amount(kind: &Kind, text: &str, round: Round) -> Result<u64, quantity::Error> {
    kind.amount(&text.parse()?, round)
}

/// The resource of that name, if it is one that can be lent: what every node has, huge pages, and
/// extended resources. Kubernetes keeps the other names for itself: slots for pods and volumes.
pub(super) fn kind(name: &str) -> Option<Kind> {
    let basic = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let (domain, _) = name.split_once('/').unwrap_or_default();
    let of_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    let extended = !domain.is_empty() && !of_kubernetes;
    let lent = basic || extended || name.starts_with("hugepages-");
    lent.then(|| name.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(amounts: &[(&str, &str)]) -> ResourceList {
        let quantity = |text: &str| sublet_crds::Quantity(text.to_owned());
        amounts.iter().map(|(name, text)| ((*name).to_owned(), quantity(text))).collect()
    }

    #[test]
    fn what_kubernetes_keeps_for_itself_is_not_lent() {
        let names = ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "amd.com/gpu"];
        for name in names.into_iter().chain(["hugepages-2Mi", "example.com/fpga"]) {
            assert!(kind(name).is_some(), "{name}");
        }
        for name in ["pods", "storage", "gpu", "attachable-volumes-ebs", "kubernetes.io/batch-cpu"]
        {
            assert!(kind(name).is_none(), "{name}");
        }
    }

    #[test]
    fn what_is_offered_rounds_down_and_what_is_used_rounds_up() {
        let mut reader = Reader::default();
        let odd = list(&[("cpu", "1500u"), ("memory", "1500m")]);
        assert_eq!(reader.list("x", &odd, Round::Down), Resources::new(1, 1));
        assert_eq!(reader.list("x", &odd, Round::Up), Resources::new(2, 2));
        assert!(reader.problems().is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_noted_and_the_rest_counts() {
        let mut reader = Reader::default();
        let odd = list(&[("cpu", "two"), ("memory", "1Gi"), ("nvidia.com/gpu", "-1")]);
        assert_eq!(reader.list("status.capacity", &odd, Round::Down), Resources::new(0, 1 << 30));
        let fields: Vec<_> = reader.problems().iter().map(|one| one.field.clone()).collect();
        assert_eq!(fields, ["status.capacity.cpu", "status.capacity.nvidia.com/gpu"]);
    }

    #[test]
    fn a_sum_beyond_64_bits_is_noted_and_the_larger_one_stays() {
        let mut reader = Reader::default();
        let (much, little) = (Resources::new(u64::MAX, 1), Resources::new(1, 2));
        assert_eq!(reader.sum("spec", &much, &little), Resources::new(u64::MAX, 2));
        assert_eq!(reader.problems().len(), 1);
    }
}
