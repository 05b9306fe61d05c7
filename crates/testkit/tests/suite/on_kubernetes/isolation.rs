//! Clusters side by side.

use std::fs;

use sublet_testkit::{Cluster, Error, Part, Setup};

const NOTE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {of: rome}}";

#[test]
fn three_clusters_start_at_once_and_know_nothing_of_each_other() {
    let clusters = Cluster::start_all(["rome", "milan", "turin"].map(Setup::api)).unwrap();
    let [rome, milan, turin] = &clusters[..] else { panic!("three clusters") };
    rome.apply(NOTE).unwrap();
    assert_eq!(rome.kubectl_json(&["get", "configmap", "note"]).unwrap()["data"]["of"], "rome");
    for other in [milan, turin] {
        let error = other.kubectl(&["get", "configmap", "note"]).unwrap_err().to_string();
        assert!(error.contains("NotFound"), "{error}");
    }
    // Nor does the server of one believe what proves who one is to another, or the reverse.
    let astray = ["--server", &milan.url(), "get", "namespaces"];
    let error = rome.kubectl(&astray).unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    let blindly =
        [&["--insecure-skip-tls-verify", "--certificate-authority="], &astray[..]].concat();
    let error = rome.kubectl(&blindly).unwrap_err().to_string();
    assert!(error.contains("Unauthorized") || error.contains("logged in"), "{error}");
}

#[test]
fn a_cluster_that_does_not_start_says_why() {
    let setup = Setup::api("broken").flag(Part::ApiServer, "--no-such-flag");
    let error = Cluster::start(setup).unwrap_err();
    let said = error.to_string();
    let Error::Ended { log, .. } = error else { panic!("{said}") };
    assert!(said.contains("kube-apiserver ended with"), "{said}");
    assert!(said.contains("unknown flag: --no-such-flag"), "{said}");
    // It is there to be read, and nobody will.
    assert!(log.is_file());
    fs::remove_dir_all(log.parent().unwrap()).unwrap();
}
