//! Lists, and what operators decide.

use sublet_core::id::ClusterId;

use super::call::{at, query};
use super::{Client, Error, Page};
use crate::limits::PAGE_DEFAULT;
use crate::paths;
use crate::v1::{
    CandidateList, CandidateRequest, Cap, Cluster, ClusterDecision, ClusterList, ReservationList,
    Revocation, RevocationList, Why,
};

/// Which reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationQuery {
    /// Only those of this cluster.
    pub cluster: Option<ClusterId>,
    /// Only those with the cluster as `requester` or as `provider`.
    pub role: Option<String>,
    /// Only those in this phase.
    pub phase: Option<String>,
    /// Which part of the list.
    pub page: Page,
}

impl Client {
    /// A page of reservations.
    pub async fn reservations(&self, which: &ReservationQuery) -> Result<ReservationList, Error> {
        let ReservationQuery { cluster, role, phase, page } = which;
        let parameters = [
            ("clusterID", cluster.as_ref().map(ToString::to_string)),
            ("role", role.clone()),
            ("phase", phase.clone()),
            // Always: without it, a role and a name are what the older Go agents ask.
            ("limit", Some(page.limit.unwrap_or(PAGE_DEFAULT).to_string())),
            ("after", page.after.clone()),
        ];
        self.get(query(paths::RESERVATIONS, &parameters)).await
    }

    /// A page of clusters.
    pub async fn clusters(&self, page: &Page) -> Result<ClusterList, Error> {
        self.get(paged(paths::CLUSTERS, page)).await
    }

    /// What the broker knows of a cluster.
    pub async fn cluster(&self, cluster: &ClusterId) -> Result<Cluster, Error> {
        self.get(at(paths::CLUSTER, cluster)).await
    }

    /// Grant nothing new there.
    pub async fn cordon(&self, cluster: &ClusterId, what: &ClusterDecision) -> Result<(), Error> {
        self.tell(at(paths::CORDON, cluster), what).await
    }

    /// Let it take part again.
    pub async fn uncordon(&self, cluster: &ClusterId, what: &ClusterDecision) -> Result<(), Error> {
        self.tell(at(paths::UNCORDON, cluster), what).await
    }

    /// Grant nothing new there, and take back what it lends.
    pub async fn drain(&self, cluster: &ClusterId, what: &ClusterDecision) -> Result<(), Error> {
        self.tell(at(paths::DRAIN, cluster), what).await
    }

    /// The most that it lends in all.
    pub async fn cap(&self, cluster: &ClusterId, cap: &Cap) -> Result<(), Error> {
        self.tell(at(paths::CAP, cluster), cap).await
    }

    /// Give it up.
    pub async fn declare_lost(
        &self,
        cluster: &ClusterId,
        what: &ClusterDecision,
    ) -> Result<(), Error> {
        self.tell(at(paths::LOST, cluster), what).await
    }

    /// Let it lend after a restore although it has not reported.
    pub async fn vouch(&self, cluster: &ClusterId, what: &ClusterDecision) -> Result<(), Error> {
        self.tell(at(paths::VOUCH, cluster), what).await
    }

    /// What is revoked.
    pub async fn revocations(&self) -> Result<RevocationList, Error> {
        self.get(paths::REVOCATIONS.to_owned()).await
    }

    /// Believe a cluster, or one certificate, no longer.
    pub async fn revoke(&self, which: &Revocation) -> Result<(), Error> {
        self.tell(paths::REVOCATIONS.to_owned(), which).await
    }

    /// Believe a cluster, or one certificate, again.
    pub async fn reinstate(&self, which: &Revocation) -> Result<(), Error> {
        self.tell(paths::REINSTATEMENTS.to_owned(), which).await
    }

    /// The wall clock that is far ahead is right.
    pub async fn confirm_clock(&self, why: &str) -> Result<(), Error> {
        let why = Why { why: why.to_owned() };
        self.tell(paths::CONFIRM_CLOCK.to_owned(), &why).await
    }

    /// What every cluster is to a request, a page of them.
    pub async fn candidates(
        &self,
        request: &CandidateRequest,
        page: &Page,
    ) -> Result<CandidateList, Error> {
        self.post(paged(paths::CANDIDATES, page), request).await
    }
}

fn paged(path: &str, page: &Page) -> String {
    let limit = page.limit.map(|limit| limit.to_string());
    query(path, &[("limit", limit), ("after", page.after.clone())])
}
