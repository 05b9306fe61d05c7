//! Processes that are killed and come back.

use serde_json::json;
use sublet_testkit::{Cluster, Nodes, Part, Pods, Setup};

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: loaves.example.com}
spec:
  group: example.com
  names: {kind: Loaf, plural: loaves, singular: loaf}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {slices: {type: integer, minimum: 1}}
";

const LOAF: &str =
    "{apiVersion: example.com/v1, kind: Loaf, metadata: {name: rye}, spec: {slices: 12}}";

#[test]
fn what_was_created_survives_kill_9_of_the_api_server_and_of_etcd() {
    let cluster = Cluster::start(Setup::api("rome")).unwrap();
    cluster.apply_crds(CRD).unwrap();
    cluster.apply(LOAF).unwrap();
    for part in [Part::ApiServer, Part::Etcd] {
        let (url, pid) = (cluster.url(), cluster.part(part).pid());
        cluster.part(part).kill();
        assert!(!cluster.runs(part));
        if part == Part::ApiServer {
            assert!(cluster.api().get("/readyz").is_err());
        }
        cluster.start_part(part).unwrap();
        cluster.wait_until_ready(Part::ApiServer).unwrap();
        assert_ne!(cluster.part(part).pid(), pid);
        assert_eq!(cluster.url(), url);
        let loaf = cluster.kubectl_json(&["get", "loaf", "rye"]).unwrap();
        assert_eq!(loaf["spec"], json!({ "slices": 12 }));
    }
}

#[test]
fn every_process_of_a_cluster_can_be_killed_and_does_its_work_again() {
    let cluster = Cluster::start(Setup::whole("rome")).unwrap();
    for part in Part::ALL {
        cluster.part(part).kill();
        assert!(!cluster.runs(part), "{part:?}");
    }
    for part in Part::ALL {
        cluster.start_part(part).unwrap();
    }
    // Made by a controller, placed by the scheduler, and run and ended by KWOK.
    cluster.add_nodes(&Nodes::new("worker", 1)).unwrap();
    cluster.deploy(&Pods::new("web", 3)).unwrap();
    cluster.wait_until_running("default", "web", 3).unwrap();
    cluster.kubectl(&["delete", "deployment", "web"]).unwrap();
    cluster.wait_until_running("default", "web", 0).unwrap();
}

#[test]
fn a_part_that_was_left_out_at_first_can_be_started_later() {
    let cluster = Cluster::start(Setup::api("rome")).unwrap();
    cluster.kubectl(&["create", "namespace", "shop"]).unwrap();
    assert!(!cluster.runs(Part::ControllerManager));
    cluster.start_part(Part::ControllerManager).unwrap();
    // Only its controllers can finish this.
    cluster.kubectl(&["delete", "namespace", "shop", "--timeout=2m"]).unwrap();
    assert_eq!(cluster.api().get("/api/v1/namespaces/shop").unwrap_err().status(), Some(404));
}
