//! Service accounts under RBAC.

use sublet_testkit::{Cluster, Setup};

const READER: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [''], resources: [nodes], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
";

#[test]
fn a_service_account_may_do_what_its_role_allows_and_nothing_else() {
    let cluster = Cluster::start(Setup::api("rome")).unwrap();
    cluster.apply(READER).unwrap();
    let reader = cluster.account("default", "reader").unwrap();
    cluster.kubectl_as(&reader, &["get", "nodes"]).unwrap();
    let forbidden: [&[&str]; 3] =
        [&["get", "pods"], &["create", "configmap", "note"], &["delete", "clusterrole", "reader"]];
    for words in forbidden {
        let error = cluster.kubectl_as(&reader, words).unwrap_err().to_string();
        let who = "system:serviceaccount:default:reader";
        assert!(error.contains("forbidden") && error.contains(who), "{error}");
    }
    assert!(cluster.account("default", "nobody").is_err());
}
