//! A provider that Liqo is told to give up, and one that is back.
//!
//! That a reservation is gone is said by the broker when its provider has confirmed it, and also when the
//! provider was declared lost. The two are told apart by Liqo: a provider that it has just not reached is
//! waited for, one that it has not reached for as long as anybody is given time is lost.

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use sublet_core::id::ClusterId;

use super::ground::{Answer, Ground, merge};
use crate::peering::liqo::kinds::ForeignCluster;
use crate::peering::liqo::names::{GIVEN_UP, UNREACHABLE};

impl Ground {
    /// Is a provider lost of which nothing is to be kept any more?
    pub(in crate::peering) fn is_lost(&self, cluster: &ForeignCluster) -> bool {
        let since = cluster.out_of_reach_since();
        since.is_some_and(|since| self.now().since(since) >= self.settings.patience)
    }

    /// Tells Liqo not to wait for a provider. That is about everything that is there.
    pub(in crate::peering) async fn give_up(&self, cluster: &ForeignCluster) -> Answer<()> {
        if cluster.annotations().contains_key(UNREACHABLE) {
            return Ok(());
        }
        let name = cluster.name_any();
        tracing::warn!(provider = name, "the provider is lost: Liqo is told to give it up");
        let marks = json!({ UNREACHABLE: "true", GIVEN_UP: "true" });
        let change = json!({ "metadata": { "annotations": marks } });
        merge(&self.all::<ForeignCluster>(), &name, &change).await
    }

    /// A provider that we gave up once is expected back when something is asked of it. What somebody else
    /// gave up is his.
    pub(in crate::peering) async fn expect_back(&self, peer: &ClusterId) -> Answer<()> {
        let found = self.all::<ForeignCluster>().get_opt(peer.as_str()).await?;
        match found.filter(|found| found.annotations().contains_key(GIVEN_UP)) {
            Some(found) => self.forgive(&found).await,
            None => Ok(()),
        }
    }

    /// Those that Liqo reaches again are not given up any more: else the next time that it does not, it would
    /// not wait at all. What somebody else gave up is his.
    pub(in crate::peering) async fn welcome_back(&self) -> Answer<()> {
        let all = self.all::<ForeignCluster>().list(&ListParams::default()).await?.items;
        for cluster in all.iter().filter(|cluster| is_back(cluster)) {
            tracing::info!(provider = cluster.name_any(), "a provider that was given up is back");
            self.forgive(cluster).await?;
        }
        Ok(())
    }

    /// The same of one of them.
    pub(in crate::peering) async fn welcome(&self, peer: &ClusterId) -> Answer<()> {
        let found = self.all::<ForeignCluster>().get_opt(peer.as_str()).await?;
        match found.filter(is_back) {
            Some(found) => self.forgive(&found).await,
            None => Ok(()),
        }
    }

    async fn forgive(&self, cluster: &ForeignCluster) -> Answer<()> {
        let marks = json!({ UNREACHABLE: null, GIVEN_UP: null });
        let change = json!({ "metadata": { "annotations": marks } });
        merge(&self.all::<ForeignCluster>(), &cluster.name_any(), &change).await
    }
}

fn is_back(cluster: &ForeignCluster) -> bool {
    cluster.annotations().contains_key(GIVEN_UP) && cluster.is_reached()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use sublet_core::time::Time;

    fn cluster(annotations: &Value, status: &str) -> ForeignCluster {
        serde_json::from_value(json!({
            "apiVersion": "core.liqo.io/v1beta1", "kind": "ForeignCluster",
            "metadata": { "name": "milan", "annotations": annotations },
            "spec": {},
            "status": { "conditions": [{ "type": "APIServerStatus", "status": status,
                                         "lastTransitionTime": "1970-01-01T00:01:00Z" }] },
        }))
        .unwrap()
    }

    #[test]
    fn a_provider_is_back_when_it_is_reached_and_was_given_up_by_us() {
        let ours = json!({ GIVEN_UP: "true", UNREACHABLE: "true" });
        assert!(is_back(&cluster(&ours, "Established")));
        assert!(!is_back(&cluster(&ours, "Error")));
        assert!(!is_back(&cluster(&json!({ UNREACHABLE: "true" }), "Established")));
        assert!(!is_back(&cluster(&json!({}), "Established")));
    }

    #[test]
    fn since_when_a_provider_is_not_reached_is_what_liqo_says() {
        let since = |status: &str| cluster(&json!({}), status).out_of_reach_since();
        assert_eq!(since("Error"), Some(Time::from_millis(60_000)));
        assert_eq!(since("Established"), None);
    }
}
