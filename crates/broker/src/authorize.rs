//! Who may do what: one table, a row per route and a column per role and owner.
//!
//! A cluster is the *requester* or the *provider* of what it asks about, or it is somebody *else's*;
//! on routes about a cluster, one's own is both of the first. An *operator* is a role of its own.
//! What belongs to somebody else is hidden, not forbidden, so that names cannot be probed; whoever
//! has a part in a reservation is told which of the two sides a thing is for. The edge looks at role
//! and cluster before it reads a body, and at whose a reservation is before it hands a command in;
//! what it hands in, the core checks once more by itself. A test tries every cell over TLS.

use sublet_core::reservation::Reservation;
use sublet_wire::Method;

use crate::admission::Lane;
use crate::identity::Caller;

/// What is done for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Allow,
    /// As if it were not there.
    Hide,
    /// It is said that it may not be.
    Forbid,
}

/// What a cluster is to what it asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It borrows, or it is the cluster itself.
    Requester,
    /// It lends.
    Provider,
    /// Neither.
    Other,
}

impl Relation {
    /// Of a caller to the cluster of this name.
    pub fn to_cluster(caller: &Caller, named: &str) -> Self {
        match caller {
            Caller::Cluster(own) if own.as_str() == named => Self::Requester,
            _ => Self::Other,
        }
    }

    /// Of a caller to a reservation.
    pub fn to_reservation(caller: &Caller, reservation: &Reservation) -> Self {
        match caller {
            Caller::Cluster(own) if reservation.requester == *own => Self::Requester,
            Caller::Cluster(own) if reservation.sides().any(|side| side == own) => Self::Provider,
            _ => Self::Other,
        }
    }
}

/// What answers a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the route of that name")]
pub enum Endpoint {
    Health,
    Openapi,
    Advertise,
    GetAdvertisement,
    Reserve,
    ListReservations,
    ReleaseByKey,
    GetReservation,
    Release,
    Explain,
    Renew,
    Resize,
    Activate,
    Acknowledge,
    Fail,
    Instructions,
    SendMessage,
    ListClusters,
    GetCluster,
    Cordon,
    Uncordon,
    Drain,
    Cap,
    DeclareLost,
    Vouch,
    ListRevocations,
    Revoke,
    Reinstate,
    ConfirmClock,
    Candidates,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The route, by its name in the wire's table.
    pub route: &'static str,
    /// What answers it.
    pub endpoint: Endpoint,
    /// Which way its requests go.
    pub lane: Lane,
    requester: Verdict,
    provider: Verdict,
    other: Verdict,
    operator: Verdict,
}

impl Row {
    /// May a caller in this relation do it?
    pub fn verdict(&self, caller: &Caller, relation: Relation) -> Verdict {
        match (caller, relation) {
            (Caller::Operator(_), _) => self.operator,
            (Caller::Cluster(_), Relation::Requester) => self.requester,
            (Caller::Cluster(_), Relation::Provider) => self.provider,
            (Caller::Cluster(_), Relation::Other) => self.other,
        }
    }

    /// May this role do it to anything at all?
    pub fn is_open_to(&self, caller: &Caller) -> bool {
        [Relation::Requester, Relation::Provider, Relation::Other]
            .iter()
            .any(|relation| self.verdict(caller, *relation) == Verdict::Allow)
    }
}

const fn row(
    route: &'static str,
    endpoint: Endpoint,
    lane: Lane,
    [requester, provider, other, operator]: [Verdict; 4],
) -> Row {
    Row { route, endpoint, lane, requester, provider, other, operator }
}

use Endpoint as E;
use Lane::{Message, Ordinary, Urgent};
use Verdict::{Allow as Yes, Forbid as No, Hide};

/// The table.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    //                                                                  requester provider other operator
    row("health",           E::Health,           Urgent,   [Yes,  Yes,  Yes,  Yes]),
    row("openapi",          E::Openapi,          Ordinary, [Yes,  Yes,  Yes,  Yes]),
    row("advertise",        E::Advertise,        Urgent,   [Yes,  Yes,  No,   No]),
    row("getAdvertisement", E::GetAdvertisement, Urgent,   [Yes,  Yes,  Hide, Yes]),
    row("reserve",          E::Reserve,          Ordinary, [Yes,  Yes,  Yes,  No]),
    row("listReservations", E::ListReservations, Ordinary, [Yes,  Yes,  No,   Yes]),
    row("releaseByKey",     E::ReleaseByKey,     Urgent,   [Yes,  Yes,  Yes,  No]),
    row("getReservation",   E::GetReservation,   Ordinary, [Yes,  Yes,  Hide, Yes]),
    row("release",          E::Release,          Urgent,   [Yes,  Yes,  Hide, Yes]),
    row("explain",          E::Explain,          Ordinary, [Yes,  No,   Hide, Yes]),
    row("renew",            E::Renew,            Urgent,   [Yes,  No,   Hide, Yes]),
    row("resize",           E::Resize,           Ordinary, [Yes,  No,   Hide, Yes]),
    row("activate",         E::Activate,         Urgent,   [Yes,  No,   Hide, No]),
    row("acknowledge",      E::Acknowledge,      Urgent,   [No,   Yes,  Hide, No]),
    row("fail",             E::Fail,             Urgent,   [Yes,  Yes,  Hide, No]),
    row("instructions",     E::Instructions,     Urgent,   [Yes,  Yes,  Yes,  No]),
    row("sendMessage",      E::SendMessage,      Message,  [Yes,  Yes,  No,   No]),
    row("listClusters",     E::ListClusters,     Ordinary, [Yes,  Yes,  Yes,  Yes]),
    row("getCluster",       E::GetCluster,       Ordinary, [Yes,  Yes,  Hide, Yes]),
    row("cordon",           E::Cordon,           Urgent,   [No,   No,   No,   Yes]),
    row("uncordon",         E::Uncordon,         Urgent,   [No,   No,   No,   Yes]),
    row("drain",            E::Drain,            Urgent,   [No,   No,   No,   Yes]),
    row("cap",              E::Cap,              Urgent,   [No,   No,   No,   Yes]),
    row("declareLost",      E::DeclareLost,      Urgent,   [No,   No,   No,   Yes]),
    row("vouch",            E::Vouch,            Urgent,   [No,   No,   No,   Yes]),
    row("listRevocations",  E::ListRevocations,  Urgent,   [No,   No,   No,   Yes]),
    row("revoke",           E::Revoke,           Urgent,   [No,   No,   No,   Yes]),
    row("reinstate",        E::Reinstate,        Urgent,   [No,   No,   No,   Yes]),
    row("confirmClock",     E::ConfirmClock,     Urgent,   [No,   No,   No,   Yes]),
    row("candidates",       E::Candidates,       Ordinary, [No,   No,   No,   Yes]),
];

/// The row of a route.
pub fn row_of(route: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.route == route)
}

/// The route of a path template and a method; `HEAD` is `GET` without a body.
pub fn route_of(path: &str, method: &str) -> Option<&'static sublet_wire::Route> {
    let method = if method == "HEAD" { Method::Get.as_str() } else { method };
    sublet_wire::ROUTES.iter().find(|route| route.path == path && route.method.as_str() == method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_has_one_row_and_every_row_a_route() {
        let routes: Vec<_> = sublet_wire::ROUTES.iter().map(|route| route.name).collect();
        let rows: Vec<_> = TABLE.iter().map(|row| row.route).collect();
        assert_eq!(routes, rows);
        let endpoints: BTreeSet<_> = TABLE.iter().map(|row| row.endpoint).collect();
        assert_eq!(endpoints.len(), TABLE.len());
    }

    /// By hand, so that a slip in the table shows.
    #[test]
    fn what_operators_and_clusters_may_both_change_are_reservations_and_nothing_else() {
        let [cluster, operator] =
            [Caller::Cluster("c1".parse().unwrap()), Caller::Operator("ada".into())];
        let changes = TABLE.iter().filter(|row| {
            let route = sublet_wire::ROUTES.iter().find(|route| route.name == row.route).unwrap();
            route.method != Method::Get
        });
        let (mut both, mut operators) = (Vec::new(), Vec::new());
        for row in changes {
            match (row.is_open_to(&cluster), row.is_open_to(&operator)) {
                (true, true) => both.push(row.route),
                (false, true) => operators.push(row.route),
                (true, false) => {}
                (false, false) => panic!("nobody may {}", row.route),
            }
        }
        assert_eq!(both, ["release", "renew", "resize"]);
        let only = ["cordon", "uncordon", "drain", "cap", "declareLost", "vouch", "revoke"];
        assert_eq!(operators, [&only[..], &["reinstate", "confirmClock", "candidates"]].concat());
    }

    #[test]
    fn whoever_is_somebody_else_changes_nothing_of_others() {
        let cluster = Caller::Cluster("c1".parse().unwrap());
        for row in TABLE {
            let route = sublet_wire::ROUTES.iter().find(|route| route.name == row.route).unwrap();
            let allowed = row.verdict(&cluster, Relation::Other) == Verdict::Allow;
            assert!(!(allowed && route.path.contains('{')), "{}", row.route);
        }
    }
}
