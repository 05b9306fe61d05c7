//! Everything in a cluster that a link could leave behind.

use std::collections::BTreeSet;

use sublet_testkit::{Api, described};

/// What is compared, cluster-wide.
const PATHS: [&str; 17] = [
    "/api/v1/namespaces",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/authentication.liqo.io/v1beta1/tenants",
    "/apis/authentication.liqo.io/v1beta1/identities",
    "/apis/authentication.liqo.io/v1beta1/resourceslices",
    "/apis/authentication.liqo.io/v1beta1/renews",
    "/apis/core.liqo.io/v1beta1/foreignclusters",
    "/apis/offloading.liqo.io/v1beta1/quotas",
    "/apis/offloading.liqo.io/v1beta1/virtualnodes",
    "/apis/offloading.liqo.io/v1beta1/namespacemaps",
    "/apis/coordination.k8s.io/v1/leases",
];

/// Everything, and in which state. What is pinned stays, on purpose, and is not looked at.
pub(super) fn of(api: &Api) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for path in PATHS {
        let list = api.get(path).unwrap();
        for item in list["items"].as_array().unwrap() {
            if item["metadata"]["name"] != "sublet-liqo-keys" {
                all.insert(described(path, item));
            }
        }
    }
    all
}
