//! Which namespaces are to go where, from who wants it and what was begun: pure.
//!
//! A namespace stays with a provider until the reservation for which it went there is taken down, not
//! just until nobody wants it: taking the namespace away ends its pods over there at once, and the
//! slice's own end gives them time.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use sublet_core::id::ClusterId;
use sublet_crds::{RequestPhase, ResourceRequest};

/// For which reservations a namespace goes to which clusters.
pub(super) type Reasons = BTreeMap<String, ClusterId>;

/// A request that holds something, and the namespaces that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The namespace of the request itself, which it speaks for.
    pub(super) home: String,
    pub(super) namespaces: BTreeSet<String>,
    pub(super) reservation: String,
    pub(super) provider: ClusterId,
}

impl Wish {
    /// What a request wants, if it holds something.
    pub(super) fn of(request: &ResourceRequest) -> Option<Self> {
        let status = request.status.as_ref()?;
        let holds = matches!(status.phase, Some(RequestPhase::Reserved | RequestPhase::Active));
        if !holds
            || status.reservation_name.is_empty()
            || request.metadata.deletion_timestamp.is_some()
        {
            return None;
        }
        Some(Self {
            home: request.namespace()?,
            namespaces: request.spec.namespaces.iter().cloned().collect(),
            reservation: status.reservation_name.clone(),
            provider: status.target_cluster_id.parse().ok()?,
        })
    }
}

/// What is to change: for what each namespace is to go where; for nothing, if it is to come home.
pub(super) fn plan(
    wishes: &[Wish],
    instructions: &BTreeSet<String>,
    begun: &BTreeMap<String, Reasons>,
) -> BTreeMap<String, Reasons> {
    let speaks = |reservation: &str| wishes.iter().any(|wish| wish.reservation == reservation);
    let mut wanted: BTreeMap<String, Reasons> = begun.clone();
    for reasons in wanted.values_mut() {
        // Whoever still holds it says himself what he wants of it.
        reasons.retain(|reservation, _| instructions.contains(reservation) && !speaks(reservation));
    }
    for wish in wishes {
        for namespace in &wish.namespaces {
            let reasons = wanted.entry(namespace.clone()).or_default();
            reasons.insert(wish.reservation.clone(), wish.provider.clone());
        }
    }
    wanted.retain(|namespace, reasons| reasons.is_empty() || begun.get(namespace) != Some(reasons));
    wanted
}

/// Takes from a wish the namespaces that it has no say in, and says which. A request speaks for its own
/// namespace; for another, somebody must have said so in that namespace, or whoever may write
/// requests anywhere could send away what is not his.
pub(super) fn permitted(wish: &mut Wish, allowing: &BTreeSet<String>) -> BTreeSet<String> {
    let Wish { home, namespaces, .. } = wish;
    let may = |namespace: &String| namespace == home || allowing.contains(namespace);
    let refused = namespaces.iter().filter(|namespace| !may(namespace)).cloned().collect();
    namespaces.retain(|namespace| !BTreeSet::contains(&refused, namespace));
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> ClusterId {
        name.parse().unwrap()
    }

    fn wish(reservation: &str, provider: &str, namespaces: &[&str]) -> Wish {
        Wish {
            home: "web".to_owned(),
            namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
            reservation: reservation.to_owned(),
            provider: cluster(provider),
        }
    }

    fn reasons(of: &[(&str, &str)]) -> Reasons {
        of.iter().map(|(reservation, at)| ((*reservation).to_owned(), cluster(at))).collect()
    }

    fn named(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn begun(of: &[(&str, &[(&str, &str)])]) -> BTreeMap<String, Reasons> {
        of.iter().map(|(namespace, of)| ((*namespace).to_owned(), reasons(of))).collect()
    }

    #[test]
    fn a_namespace_goes_where_requests_that_name_it_have_something() {
        let wishes = [wish("r1", "milan", &["web", "db"]), wish("r2", "paris", &["web"])];
        let planned = plan(&wishes, &named(&["r1", "r2"]), &BTreeMap::new());
        let wanted: [(&str, &[(&str, &str)]); 2] =
            [("web", &[("r1", "milan"), ("r2", "paris")]), ("db", &[("r1", "milan")])];
        assert_eq!(planned, begun(&wanted));
        assert_eq!(plan(&wishes, &named(&[]), &planned), BTreeMap::new(), "then it is done");
    }

    #[test]
    fn it_stays_there_until_the_reservation_is_taken_down_and_comes_home_with_the_last() {
        let there = begun(&[("web", &[("r1", "milan"), ("r2", "paris")])]);
        assert_eq!(plan(&[], &named(&["r1", "r2"]), &there), BTreeMap::new());
        assert_eq!(plan(&[], &named(&["r2"]), &there), begun(&[("web", &[("r2", "paris")])]));
        assert_eq!(plan(&[], &named(&[]), &there), begun(&[("web", &[])]));
    }

    #[test]
    fn what_is_away_for_no_reason_comes_home() {
        let there = begun(&[("web", &[])]);
        assert_eq!(plan(&[], &named(&["r1"]), &there), there);
    }

    #[test]
    fn a_request_that_no_longer_names_it_lets_it_go_at_once() {
        let there = begun(&[("web", &[("r1", "milan")]), ("db", &[("r1", "milan")])]);
        let wishes = [wish("r1", "milan", &["db"])];
        assert_eq!(plan(&wishes, &named(&["r1"]), &there), begun(&[("web", &[])]));
    }

    #[test]
    fn a_request_speaks_for_its_own_namespace_and_for_those_that_allow_it() {
        let mut one = wish("r1", "milan", &["web", "db", "mail"]);
        assert_eq!(permitted(&mut one, &named(&["mail", "other"])), named(&["db"]));
        assert_eq!(one.namespaces, named(&["web", "mail"]));
    }

    #[test]
    fn whoever_has_no_say_in_a_namespace_neither_holds_it_nor_keeps_it_from_others() {
        let mut foreign = Wish { home: "evil".to_owned(), ..wish("r2", "paris", &["web"]) };
        permitted(&mut foreign, &named(&[]));
        let both = [wish("r1", "milan", &["web"]), foreign.clone()];
        let there = begun(&[("web", &[("r1", "milan")])]);
        assert_eq!(plan(&both, &named(&["r1", "r2"]), &BTreeMap::new()), there);
        assert_eq!(plan(&[foreign], &named(&["r2"]), &there), begun(&[("web", &[])]));
    }

    #[test]
    fn what_is_no_longer_allowed_comes_home() {
        let mut guest = Wish { home: "lab".to_owned(), ..wish("r1", "milan", &["web"]) };
        permitted(&mut guest, &named(&[]));
        let there = begun(&[("web", &[("r1", "milan")])]);
        assert_eq!(plan(&[guest], &named(&["r1"]), &there), begun(&[("web", &[])]));
    }
}
