//! What is typed, and what is meant by it.

use std::ffi::OsString;

use clap::FromArgMatches;
use sublet_process::dashes;

use super::*;

fn resolve(arguments: &[&str]) -> Result<Config, String> {
    let typed = ["agent"].iter().chain(arguments).map(OsString::from);
    let matches = command()
        .try_get_matches_from(dashes::doubled(typed, &[command()]))
        .map_err(|error| error.to_string())?;
    let flags = Flags::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    Config::resolve(&flags).map_err(|error| error.to_string())
}

#[test]
fn the_defaults_are_those_of_the_go_agent() {
    let config = resolve(&[]).unwrap();
    assert_eq!(config.broker, None);
    assert_eq!(config.cluster_id, None);
    assert_eq!(config.advertisement_name, "cluster-advertisement");
    assert_eq!(config.advertisement_namespace, "default");
    assert_eq!(config.instruction_namespace, "default");
    assert_eq!(config.interval, Span::from_secs(30));
    assert_eq!(config.poll_every, Some(Span::from_secs(5)));
    assert_eq!(config.health_probe_address, Some(Address::new(None, 8081)));
    assert_eq!(config.metrics_address, None);
    assert!(!config.leader_elect);
}

#[test]
fn every_flag_of_the_go_agent_is_taken() {
    let go = [
        "broker-transport=",
        "broker-url=https://b:8443",
        "broker-cert-path=/x",
        "broker-kubeconfig=",
        "broker-namespace=n",
        "cluster-id=c1",
        "advertisement-name=a",
        "advertisement-namespace=n",
        "instruction-namespace=n",
        "advertisement-requeue-interval=1m30s",
        "instruction-poll-interval=0",
        "kubeconfigs-dir=/x",
        "health-probe-bind-address=:1",
        "metrics-bind-address=0",
        "metrics-secure",
        "metrics-cert-path=/x",
        "metrics-cert-name=a",
        "metrics-cert-key=b",
        "webhook-cert-path=/x",
        "webhook-cert-name=a",
        "webhook-cert-key=b",
        "enable-http2",
        "leader-elect",
        "leader-elect=true",
        "leader-elect=T",
        "metrics-secure=0",
        "health-probe-bind-address=localhost:0",
        "kubeconfig=/x",
        "zap-devel=false",
        "zap-encoder=console",
        "zap-log-level=info",
        "zap-log-level=42",
        "zap-stacktrace-level=error",
        "zap-time-encoding=epoch",
    ];
    for flag in go {
        for dashes in ["-", "--"] {
            let resolved = resolve(&[&format!("{dashes}{flag}")]);
            assert!(resolved.is_ok(), "{dashes}{flag}: {resolved:?}");
        }
    }
}

#[test]
fn what_is_typed_is_what_is_meant() {
    let config = resolve(&[
        "-broker-transport=http",
        "-broker-url=https://a:8443, https://b:8443/",
        "--broker-cert-path=/certs",
        "--advertisement-namespace=sublet",
        "--advertisement-requeue-interval=0",
        "--instruction-poll-interval=0",
        "--advertisement-spread=0s",
        "--offer=50%,gpu=none",
        "--labels=tier=gold",
        "--cpu-cost=0.1",
        "--memory-cost=0.2",
        "--currency=EUR",
        "--lend=false",
        "--peering=liqo",
        "--kubeconfigs-dir=/k",
    ])
    .unwrap();
    let broker = config.broker.unwrap();
    assert_eq!(broker.urls, ["https://a:8443", "https://b:8443/"]);
    assert_eq!(config.instruction_namespace, "sublet");
    assert_eq!(config.interval, Span::from_secs(60));
    assert_eq!((config.poll_every, config.spread), (None, Span::ZERO));
    assert_eq!(config.offer.to_string(), "50%,gpu=none");
    assert_eq!(config.labels["tier"], "gold");
    assert_eq!(config.cost.unwrap().currency, "EUR");
    assert!(!config.lend);
    assert_eq!(config.without_effect, ["kubeconfigs-dir"]);
}

#[test]
fn metrics_are_served_over_tls_unless_that_is_turned_off() {
    let with = |more: &[&str]| {
        let typed = ["--metrics-bind-address=:8443", "--metrics-cert-path=/certs"];
        resolve(&[&typed, more].concat()).unwrap().metrics_cert_path
    };
    assert_eq!(with(&[]), Some(Places::in_folder("/certs".as_ref())));
    let named =
        with(&["--metrics-secure", "--metrics-cert-name=a", "--metrics-cert-key=b"]).unwrap();
    assert_eq!((named.certificate, named.key), ("/certs/a".into(), "/certs/b".into()));
    assert_eq!(with(&["--metrics-secure=false"]), None);
}

/// The Go agent that is told to use HTTP does not look at the kubeconfig of its other way either.
#[test]
fn what_belongs_to_the_other_transport_is_named_as_without_effect() {
    let http = ["--broker-transport=http", "--broker-url=https://b:8443", "--broker-cert-path=/c"];
    let other = ["--broker-kubeconfig=/k", "--broker-namespace=n", "--webhook-cert-path=/w"];
    let config = resolve(&[http, other].concat()).unwrap();
    let named = ["broker-kubeconfig", "broker-namespace", "webhook-cert-path"];
    assert_eq!(config.without_effect, named);
    let empty = resolve(&[&http[..], &["--broker-kubeconfig=", "--broker-namespace="]].concat());
    assert!(empty.unwrap().without_effect.is_empty());
    assert!(resolve(&other).unwrap_err().contains("--broker-kubeconfig"));
}

/// As the Go system's overlay has it, which says nothing of certificates.
#[test]
fn metrics_without_certificates_of_their_own_are_served_with_that_of_the_broker() {
    let with = |more: &[&str]| {
        let typed = ["--metrics-bind-address=:8443", "--broker-cert-path=/broker"];
        resolve(&[&typed, more].concat()).unwrap().metrics_cert_path
    };
    let brokers = Some(Places::in_folder("/broker".as_ref()));
    assert_eq!(with(&[]), brokers);
    assert_eq!(
        with(&["--metrics-cert-name=a"]),
        brokers,
        "that is a name in a folder of their own"
    );
    assert_eq!(with(&["--metrics-secure=false"]), None);
    let own = with(&["--metrics-cert-path=/certs"]).unwrap();
    assert_eq!(own.certificate, std::path::Path::new("/certs/tls.crt"));
    let said = resolve(&["--metrics-bind-address=:8443"]).unwrap_err();
    assert!(said.contains("there is no --broker-cert-path"), "{said}");
}

#[test]
fn an_empty_path_is_none() {
    let typed = ["--metrics-bind-address=:8443", "--broker-cert-path=/broker"];
    let empty = ["--metrics-cert-path=", "--kubeconfig=", "--address-file="];
    let config = resolve(&[&typed[..], &empty].concat()).unwrap();
    assert_eq!(config.metrics_cert_path, Some(Places::in_folder("/broker".as_ref())));
    assert_eq!((config.kubeconfig, config.address_file), (None, None));
    let said = resolve(&["--metrics-bind-address=:8443", "--broker-cert-path="]).unwrap_err();
    assert!(said.contains("there is no --broker-cert-path"), "{said}");
    let broker = ["--broker-transport=http", "--broker-url=https://b", "--broker-cert-path="];
    assert!(resolve(&broker).unwrap_err().contains("--broker-cert-path"));
    let liqoctl = resolve(&["--kubeconfigs-dir=/k", "--liqoctl-path="]).unwrap().peering;
    assert!(matches!(liqoctl, Some(Joining::Liqoctl(how)) if how.path == Path::new("liqoctl")));
}

#[test]
fn what_is_wrong_is_named() {
    for (typed, named) in [
        (&["--broker-transport=kubernetes"][..], "kubernetes"),
        (&["--broker-kubeconfig=/x"], "--broker-kubeconfig"),
        (&["--broker-transport=grpc"], "grpc"),
        (&["--broker-transport=http"], "--broker-cert-path"),
        (&["--broker-transport=http", "--broker-cert-path=/x"], "--broker-url"),
        (&["--cluster-id=Rome!"], "--cluster-id"),
        (&["--advertisement-requeue-interval=soon"], "soon"),
        (&["--advertisement-requeue-interval=10ms"], "--advertisement-requeue-interval"),
        (&["--offer=lots"], "lots"),
        (&["--labels=tier"], "--labels"),
        (&["--cpu-cost=1"], "--memory-cost"),
        (&["--metrics-bind-address=:8080"], "--metrics-secure=false"),
        (&["--metrics-bind-address=:8080"], "--metrics-cert-path"),
        (&["--health-probe-bind-address=8081"], "--health-probe-bind-address"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["--leader-elect=yes"], "--leader-elect"),
        (&["--zap-log-level=0"], "--zap-log-level"),
    ] {
        let said = resolve(typed).unwrap_err();
        assert!(said.contains(named), "{typed:?}: {said}");
    }
}

#[test]
fn every_flag_is_an_environment_variable_of_its_name() {
    for argument in command().get_arguments() {
        let long = argument.get_long().unwrap();
        let variable = format!("SUBLET_{}", long.to_uppercase().replace('-', "_"));
        let found = argument.get_env().map(|name| name.to_string_lossy().into_owned());
        assert!(long == "print-config" || found == Some(variable), "{long}");
    }
}

#[test]
fn clusters_are_joined_as_is_said_or_as_is_found() {
    assert_eq!(resolve(&[]).unwrap().peering, None);
    assert_eq!(resolve(&["--peering="]).unwrap().peering, None);
    assert_eq!(resolve(&["--peering=liqo"]).unwrap().peering, Some(Joining::Liqo));
    assert_eq!(resolve(&["--peering=none"]).unwrap().peering, Some(Joining::None));
    assert!(resolve(&["--peering=magic"]).unwrap_err().contains("--peering=magic"));
}

#[test]
fn kubeconfigs_mean_liqoctl_as_in_the_go_agent_unless_something_else_is_said() {
    for typed in [&["--kubeconfigs-dir=/k"][..], &["-kubeconfigs-dir=/k", "--peering=liqoctl"]] {
        let config = resolve(typed).unwrap();
        let Some(Joining::Liqoctl(how)) = config.peering else { panic!("{typed:?}") };
        assert_eq!((how.kubeconfigs_dir, how.path), ("/k".into(), "liqoctl".into()));
        assert_eq!(how.timeout, Span::from_secs(300), "as the Go agent waits");
        assert!(config.without_effect.is_empty());
        let known = |name: &str| how.environment.iter().any(|(known, _)| known == name);
        assert!(
            known("PATH")
                && known("HOME")
                && !known("SUBLET_BROKER_URL")
                && !known("CARGO_MANIFEST_DIR")
        );
    }
    let other = resolve(&["--kubeconfigs-dir=/k", "--peering=none"]).unwrap();
    assert_eq!(
        (other.peering, other.without_effect),
        (Some(Joining::None), vec!["kubeconfigs-dir"])
    );
    assert_eq!(resolve(&["--kubeconfigs-dir="]).unwrap().peering, None);
    let set = ["--kubeconfigs-dir=/k", "--liqoctl-path=/bin/l", "--liqoctl-timeout=1m"];
    let Some(Joining::Liqoctl(how)) = resolve(&set).unwrap().peering else { panic!("{set:?}") };
    assert_eq!((how.path, how.timeout), ("/bin/l".into(), Span::from_secs(60)));
    assert!(resolve(&["--peering=liqoctl"]).unwrap_err().contains("--kubeconfigs-dir is needed"));
    for bad in ["--liqoctl-timeout=10ms", "--liqoctl-timeout=2h"] {
        assert!(resolve(&["--kubeconfigs-dir=/k", bad]).unwrap_err().contains("--liqoctl-timeout"));
    }
}

#[test]
fn the_network_is_left_as_it_is_unless_there_is_none() {
    assert_eq!(resolve(&[]).unwrap().networking, Networking::Existing);
    let said = |which: &str| resolve(&[&format!("--liqo-networking={which}")]);
    assert_eq!(said("disabled").unwrap().networking, Networking::Disabled);
    assert!(said("managed").unwrap_err().contains("not available"));
    assert!(said("magic").unwrap_err().contains("--liqo-networking=magic"));
    assert_eq!(said("").unwrap().networking, Networking::Existing);
}

#[test]
fn what_is_said_of_the_network_is_named_as_without_effect_where_liqoctl_is_not_used() {
    let idle = |typed: &[&str]| resolve(typed).unwrap().without_effect;
    let disabled = "--liqo-networking=disabled";
    for peering in ["--peering=liqo", "--peering=none", "--peering="] {
        assert_eq!(idle(&[peering, disabled]), ["liqo-networking"], "{peering}");
        assert!(idle(&[peering]).is_empty(), "{peering}");
        assert!(idle(&[peering, "--liqo-networking="]).is_empty(), "{peering}");
    }
    let both = ["kubeconfigs-dir", "liqo-networking"];
    assert_eq!(idle(&["--peering=liqo", "--kubeconfigs-dir=/k", disabled]), both);
    assert!(idle(&["--kubeconfigs-dir=/k", disabled]).is_empty());
}

#[test]
fn slices_have_what_is_said_beyond_what_is_reserved() {
    let slices = resolve(&["--slice-pods=5", "--slice-storage=1Gi"]).unwrap().slices;
    assert_eq!((slices.pods, slices.storage), (5, 1 << 30));
    assert_eq!(slices.eviction_deadline, Span::from_secs(120));
    assert!(resolve(&["--slice-storage=much"]).unwrap_err().contains("--slice-storage"));
}

#[test]
fn an_unused_link_is_kept_for_ten_minutes_and_at_most_half_a_day() {
    assert_eq!(resolve(&[]).unwrap().link_idle, Span::from_secs(600));
    assert_eq!(resolve(&["--link-idle=12h"]).unwrap().link_idle, Span::from_secs(43_200));
    assert!(resolve(&["--link-idle=12h1s"]).unwrap_err().contains("--link-idle: at most 12h"));
}
