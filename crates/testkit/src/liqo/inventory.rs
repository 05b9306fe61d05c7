//! Everything that joined clusters could leave behind, by name.

use std::collections::BTreeSet;

use super::PATIENCE;
use crate::api::Api;
use crate::error::Error;
use crate::wait::wait_for;

const COLLECTIONS: [&str; 24] = [
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
    "/apis/rear.fluidos.eu/v1alpha1/resourcerequests",
    "/apis/rear.fluidos.eu/v1alpha1/reservationinstructions",
    "/apis/rear.fluidos.eu/v1alpha1/providerinstructions",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/apps/v1/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/pods",
];

/// What there is in a cluster of Liqo's objects, of ours, and of those of Kubernetes that come with
/// them: collection, namespace and name of each. Ours are to be installed there.
pub fn inventory(api: &Api) -> Result<BTreeSet<String>, Error> {
    let mut all = BTreeSet::new();
    for collection in COLLECTIONS {
        // A kind that was just installed is not served at once.
        let list = wait_for(collection, PATIENCE, || api.get(collection).ok())?;
        for item in list["items"].as_array().into_iter().flatten() {
            let text = |key: &str| item["metadata"][key].as_str().unwrap_or_default().to_owned();
            all.insert(format!("{collection} {}/{}", text("namespace"), text("name")));
        }
    }
    Ok(all)
}
