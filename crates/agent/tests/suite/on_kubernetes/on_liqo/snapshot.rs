//! Everything that a reservation could leave behind, by name.

use std::collections::BTreeSet;

use sublet_testkit::Api;

use super::world::{World, until};

const COLLECTIONS: [&str; 20] = [
    "/apis/authentication.liqo.io/v1beta1/resourceslices",
    "/apis/authentication.liqo.io/v1beta1/identities",
    "/apis/authentication.liqo.io/v1beta1/tenants",
    "/apis/authentication.liqo.io/v1beta1/renews",
    "/apis/offloading.liqo.io/v1beta1/quotas",
    "/apis/offloading.liqo.io/v1beta1/virtualnodes",
    "/apis/offloading.liqo.io/v1beta1/shadowpods",
    "/apis/offloading.liqo.io/v1beta1/namespacemaps",
    "/apis/offloading.liqo.io/v1beta1/namespaceoffloadings",
    "/apis/core.liqo.io/v1beta1/foreignclusters",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/apps/v1/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/api/v1/secrets",
    "/api/v1/serviceaccounts",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/pods",
];

/// What there is in a cluster.
fn objects(api: &Api) -> BTreeSet<String> {
    let each = COLLECTIONS.iter().flat_map(|collection| {
        let list = api.get(collection).unwrap();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().map(move |item| {
            let metadata = &item["metadata"];
            let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
            format!("{collection} {}/{}", text("namespace"), text("name"))
        })
    });
    each.collect()
}

/// What there was in both clusters.
#[derive(Debug)]
pub(super) struct Snapshot([BTreeSet<String>; 2]);

impl Snapshot {
    pub(super) fn of(world: &World) -> Self {
        Self([&world.rome, &world.milan].map(|town| objects(&town.api)))
    }

    /// Waits until everything is as it was, by name; says what is not.
    pub(super) async fn is_back(&self, world: &World<'_>) {
        let differences = std::sync::Mutex::new(Vec::new());
        let looked = tokio::time::timeout(
            std::time::Duration::from_secs(30),
            until("as before", || async {
                let now = Self::of(world);
                let found = self.0.iter().zip(&now.0).flat_map(|(was, is)| {
                    is.symmetric_difference(was).cloned().collect::<Vec<_>>()
                });
                let found = found.collect::<Vec<_>>();
                differences.lock().unwrap().clone_from(&found);
                found.is_empty().then_some(())
            }),
        );
        if looked.await.is_err() {
            panic!("not as before: {:#?}", differences.lock().unwrap());
        }
    }
}
