//! Every route: the Go system's and ours. The broker serves exactly these, the client calls them,
//! and `docs/openapi.json` is made from them.

use crate::Shape;

/// The method of a route. `GET` routes answer `HEAD` as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Changes.
    Post,
    /// Ends.
    Delete,
}

impl Method {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// What is in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    None,
    /// Text.
    Text,
    /// One of the types of [`crate::v1`], by name.
    Json(&'static str),
    /// A list of one of them, or `null` when it is empty.
    List(&'static str),
    /// One of them on each line.
    Lines(&'static str),
    /// Some JSON that is not ours to describe.
    Any,
}

/// A parameter of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Which method.
    pub method: Method,
    /// The path, with `{name}` where a part is filled in.
    pub path: &'static str,
    /// What it is called, unique.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What may be in the query.
    pub query: &'static [Parameter],
    /// What is sent.
    pub request: Body,
    /// Whether nothing may be sent instead, which is as good as `{}`.
    pub may_be_empty: bool,
    /// The statuses of success, and what is answered with each.
    pub answers: &'static [(u16, Body)],
    /// How its errors look.
    pub shape: Shape,
}

/// The path templates.
pub mod paths {
    /// Is the broker there?
    pub const HEALTH: &str = "/healthz";
    /// The description of all this.
    pub const OPENAPI: &str = "/openapi.json";
    /// What clusters say of themselves.
    pub const ADVERTISEMENTS: &str = "/api/v1/advertisements";
    /// What one said.
    pub const ADVERTISEMENT: &str = "/api/v1/advertisements/{clusterID}";
    /// All reservations.
    pub const RESERVATIONS: &str = "/api/v1/reservations";
    /// One.
    pub const RESERVATION: &str = "/api/v1/reservations/{id}";
    /// Why it is where it is.
    pub const EXPLAIN: &str = "/api/v1/reservations/{id}/explain";
    /// Let it run longer.
    pub const RENEW: &str = "/api/v1/reservations/{id}/renew";
    /// Change its amounts.
    pub const RESIZE: &str = "/api/v1/reservations/{id}/resize";
    /// The requester confirms use.
    pub const ACTIVATE: &str = "/api/v1/reservations/{id}/activate";
    /// The provider confirms an instruction.
    pub const ACKNOWLEDGE: &str = "/api/v1/reservations/{id}/acknowledge";
    /// The clusters cannot be joined.
    pub const FAIL: &str = "/api/v1/reservations/{id}/fail";
    /// What a cluster must do.
    pub const INSTRUCTIONS: &str = "/api/v1/instructions";
    /// What agents tell each other.
    pub const MESSAGES: &str = "/api/v1/messages";
    /// What the broker knows of clusters.
    pub const CLUSTERS: &str = "/api/v1/clusters";
    /// What it knows of one.
    pub const CLUSTER: &str = "/api/v1/clusters/{clusterID}";
    /// Grant nothing new there.
    pub const CORDON: &str = "/api/v1/operator/clusters/{clusterID}/cordon";
    /// Let it take part again.
    pub const UNCORDON: &str = "/api/v1/operator/clusters/{clusterID}/uncordon";
    /// Take back what it lends.
    pub const DRAIN: &str = "/api/v1/operator/clusters/{clusterID}/drain";
    /// The most that it lends.
    pub const CAP: &str = "/api/v1/operator/clusters/{clusterID}/cap";
    /// Give it up.
    pub const LOST: &str = "/api/v1/operator/clusters/{clusterID}/lost";
    /// Let it lend after a restore.
    pub const VOUCH: &str = "/api/v1/operator/clusters/{clusterID}/vouch";
    /// What is believed no longer.
    pub const REVOCATIONS: &str = "/api/v1/operator/revocations";
    /// What is believed again.
    pub const REINSTATEMENTS: &str = "/api/v1/operator/reinstatements";
    /// The wall clock is right.
    pub const CONFIRM_CLOCK: &str = "/api/v1/operator/clock/confirm";
    /// What every cluster is to a request.
    pub const CANDIDATES: &str = "/api/v1/operator/candidates";
}

const fn parameter(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about }
}

const LIMIT: Parameter = parameter("limit", "How many at most; 100 without it, 1000 at most.");
const AFTER: Parameter = parameter("after", "The `next` of the page before.");
const PAGE: &[Parameter] = &[LIMIT, AFTER];
const DONE: &[(u16, Body)] = &[(204, Body::None)];
const CHANGED: &[(u16, Body)] = &[(200, Body::Json("Reservation"))];

/// A route without parameters and bodies that answers errors as JSON: what the rest begins from.
const fn route(
    method: Method,
    path: &'static str,
    name: &'static str,
    summary: &'static str,
) -> Route {
    let (query, request, answers, shape) = (&[], Body::None, DONE, Shape::Json);
    let may_be_empty = false;
    Route { method, path, name, summary, query, request, may_be_empty, answers, shape }
}

impl Route {
    const fn taking(self, request: &'static str) -> Self {
        Self { request: Body::Json(request), ..self }
    }

    const fn perhaps_taking(self, request: &'static str) -> Self {
        Self { may_be_empty: true, ..self.taking(request) }
    }

    const fn asking(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn giving(self, answers: &'static [(u16, Body)]) -> Self {
        Self { answers, ..self }
    }

    const fn plain(self) -> Self {
        Self { shape: Shape::Plain, ..self }
    }
}

/// All of them.
pub const ROUTES: &[Route] = &[
    route(Method::Get, paths::HEALTH, "health", "Is the broker there?")
        .plain()
        .giving(&[(200, Body::Text)]),
    route(Method::Get, paths::OPENAPI, "openapi", "This description.").giving(&[(200, Body::Any)]),
    route(
        Method::Post,
        paths::ADVERTISEMENTS,
        "advertise",
        "A cluster says what it has; the answer says what it must do as a provider.",
    )
    .plain()
    .taking("Advertisement")
    .giving(&[(200, Body::Json("AdvertisementResponse"))]),
    route(Method::Get, paths::ADVERTISEMENT, "getAdvertisement", "What a cluster said of itself.")
        .plain()
        .giving(&[(200, Body::Json("Advertisement"))]),
    route(
        Method::Post,
        paths::RESERVATIONS,
        "reserve",
        "Asks for capacity. With the header `Idempotency-Key`, a repeat is harmless.",
    )
    .taking("ReservationRequest")
    .asking(&[parameter("dryRun", "`true`: says what would happen, and reserves nothing.")])
    .giving(&[
        (200, Body::Json("Decision")),
        (201, Body::Json("Reservation")),
        (202, Body::Json("Reservation")),
    ]),
    route(
        Method::Get,
        paths::RESERVATIONS,
        "listReservations",
        "One's own reservations, on either side; an operator sees all.",
    )
    .asking(&[
        parameter("clusterID", "Only those of this cluster; a cluster may name itself alone."),
        parameter(
            "role",
            "Only those with the cluster as `requester` or as `provider`. With `clusterID` and this \
             alone a cluster asks as older Go agents do: it gets what is live, in one list of at most \
             20 000, and no `next`.",
        ),
        parameter("phase", "Only those in this phase."),
        LIMIT,
        AFTER,
    ])
    .giving(&[(200, Body::Json("ReservationList"))]),
    route(
        Method::Delete,
        paths::RESERVATIONS,
        "releaseByKey",
        "Ends what was asked for under a key, also a request that is still on its way.",
    )
    .asking(&[parameter("key", "The idempotency key; required.")])
    .giving(&[(200, Body::Json("Reservation")), (204, Body::None)]),
    route(Method::Get, paths::RESERVATION, "getReservation", "One reservation.").giving(CHANGED),
    route(
        Method::Delete,
        paths::RESERVATION,
        "release",
        "Ends a reservation. As a requester: no longer needed. As a provider: taken back.",
    )
    .giving(CHANGED),
    route(
        Method::Get,
        paths::EXPLAIN,
        "explain",
        "Why a reservation is where it is, or why it waits, on what is known now.",
    )
    .giving(&[(200, Body::Json("Explanation"))]),
    route(Method::Post, paths::RENEW, "renew", "Lets a reservation run for so long from now.")
        .perhaps_taking("Renewal")
        .giving(CHANGED),
    route(
        Method::Post,
        paths::RESIZE,
        "resize",
        "Changes the amounts: growth is held first, a shrink comes back when it is confirmed.",
    )
    .taking("Resizing")
    .giving(CHANGED),
    route(
        Method::Post,
        paths::ACTIVATE,
        "activate",
        "The requester confirms that the capacity is usable.",
    )
    .giving(CHANGED),
    route(
        Method::Post,
        paths::ACKNOWLEDGE,
        "acknowledge",
        "The provider confirms that it carried out an instruction.",
    )
    .taking("Acknowledgement")
    .giving(CHANGED),
    route(Method::Post, paths::FAIL, "fail", "One side says that the clusters cannot be joined.")
        .perhaps_taking("Failed")
        .giving(CHANGED),
    route(
        Method::Get,
        paths::INSTRUCTIONS,
        "instructions",
        "What a provider must hold, as the Go agents poll it; or, with `watch`, everything that \
         either side must do, as a stream.",
    )
    .asking(&[
        parameter("watch", "`true`: a stream of lines that stays open."),
        parameter("after", "The cursor of the last line that was seen; without it, all."),
    ])
    .giving(&[(200, Body::List("Reservation")), (200, Body::Lines("WatchEvent"))]),
    route(
        Method::Post,
        paths::MESSAGES,
        "sendMessage",
        "Has something brought to another cluster's agent by its stream of instructions. It is kept \
         for a little while, in memory alone.",
    )
    .taking("Message")
    .giving(&[(202, Body::None)]),
    route(
        Method::Get,
        paths::CLUSTERS,
        "listClusters",
        "What the broker knows of oneself; an operator sees all.",
    )
    .asking(PAGE)
    .giving(&[(200, Body::Json("ClusterList"))]),
    route(Method::Get, paths::CLUSTER, "getCluster", "What the broker knows of a cluster.")
        .giving(&[(200, Body::Json("Cluster"))]),
    route(Method::Post, paths::CORDON, "cordon", "Operators: grant nothing new there.")
        .taking("ClusterDecision"),
    route(Method::Post, paths::UNCORDON, "uncordon", "Operators: let it take part again.")
        .taking("ClusterDecision"),
    route(
        Method::Post,
        paths::DRAIN,
        "drain",
        "Operators: grant nothing new there, and take back what it lends.",
    )
    .taking("ClusterDecision"),
    route(Method::Post, paths::CAP, "cap", "Operators: the most that it lends in all.")
        .taking("Cap"),
    route(
        Method::Post,
        paths::LOST,
        "declareLost",
        "Operators: give it up; what it lent ends without its word.",
    )
    .taking("ClusterDecision"),
    route(
        Method::Post,
        paths::VOUCH,
        "vouch",
        "Operators: let it lend after a restore although it has not reported.",
    )
    .taking("ClusterDecision"),
    route(Method::Get, paths::REVOCATIONS, "listRevocations", "Operators: what is revoked.")
        .giving(&[(200, Body::Json("RevocationList"))]),
    route(
        Method::Post,
        paths::REVOCATIONS,
        "revoke",
        "Operators: believe a cluster, or one certificate, no longer.",
    )
    .taking("Revocation"),
    route(
        Method::Post,
        paths::REINSTATEMENTS,
        "reinstate",
        "Operators: believe a cluster, or one certificate, again.",
    )
    .taking("Revocation"),
    route(
        Method::Post,
        paths::CONFIRM_CLOCK,
        "confirmClock",
        "Operators: the wall clock that is far ahead is right.",
    )
    .taking("Why"),
    route(
        Method::Post,
        paths::CANDIDATES,
        "candidates",
        "Operators: what every cluster is to a request.",
    )
    .taking("CandidateRequest")
    .asking(PAGE)
    .giving(&[(200, Body::Json("CandidateList"))]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_route_and_no_name_is_there_twice() {
        let places: BTreeSet<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
        let names: BTreeSet<_> = ROUTES.iter().map(|route| route.name).collect();
        assert_eq!((places.len(), names.len()), (ROUTES.len(), ROUTES.len()));
    }
}
