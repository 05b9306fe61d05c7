//! From the command line and the environment to a configuration that cannot be wrong.
//!
//! The flags of the Go broker keep their names and meanings, so that its deployments start ours;
//! those that mean nothing here are taken, and named in a log line. What is wrong is an error at the
//! start that names the flag.

mod flags;
mod print;

use std::path::PathBuf;

use clap::{Args, Command};
use sublet_core::time::Span;
use sublet_process::address;

pub use flags::{Flags, Interface};
pub use print::print;
pub use sublet_process::{Address, Format, Level};

use crate::limits::Limits;
use crate::tls::Places;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not built yet.
    #[error(
        "--broker-interface={0} is not available in this version: use http, which the Go agents \
         speak too"
    )]
    Interface(&'static str),
    /// An address that is none.
    #[error("--{flag}: {source}")]
    Address {
        /// Which flag.
        flag: &'static str,
        /// What is wrong with it.
        source: address::Error,
    },
    /// A bound that would let nobody in.
    #[error("--{0} must be more than 0")]
    Nothing(&'static str),
}

/// The configuration, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the log is kept.
    pub data_dir: PathBuf,
    /// The policy file.
    pub policy: Option<PathBuf>,
    /// Where the API is served.
    pub http_address: Address,
    /// Its certificates.
    pub http_cert_path: PathBuf,
    /// Where probes are served.
    pub health_probe_address: Option<Address>,
    /// Where metrics are served.
    pub metrics_address: Option<Address>,
    /// The certificate of metrics; none means without TLS.
    pub metrics_cert_path: Option<Places>,
    /// Where the addresses are written to.
    pub address_file: Option<PathBuf>,
    /// How log lines look.
    pub log_format: Format,
    /// What is logged.
    pub log_level: Level,
    /// Connections in all.
    pub connections_max: usize,
    /// Connections of one cluster.
    pub cluster_connections_max: usize,
    /// Requests per second of one cluster.
    pub cluster_rate_max: u32,
    /// A snapshot is taken after so many records.
    pub snapshot_records: u64,
    /// Records that a snapshot covers stay for so long.
    pub log_history: Span,
    /// And no more than so many bytes of them.
    pub log_history_size: u64,
    /// Flags that were given and have no effect.
    pub without_effect: Vec<&'static str>,
}

impl Config {
    /// What was meant by the command line.
    pub fn resolve(flags: &Flags) -> Result<Self, Error> {
        match flags.broker_interface {
            Interface::Http => {}
            Interface::Kubernetes => return Err(Error::Interface("kubernetes")),
            Interface::Both => return Err(Error::Interface("both")),
        }
        let address = |flag, text: &str| {
            Address::parse(text).map_err(|source| Error::Address { flag, source })
        };
        Ok(Self {
            data_dir: flags.data_dir.clone(),
            policy: flags.policy.clone(),
            http_address: Address::new(flags.http_bind_address, flags.http_port),
            http_cert_path: flags.http_cert_path.clone(),
            health_probe_address: address(
                "health-probe-bind-address",
                &flags.health_probe_bind_address,
            )?,
            metrics_address: address("metrics-bind-address", &flags.metrics_bind_address)?,
            metrics_cert_path: flags.metrics_secure.then(|| metrics_places(flags)),
            address_file: flags.address_file.clone(),
            log_format: flags.log_format.unwrap_or_else(|| flags.ignored.framework.format()),
            log_level: flags.log_level.unwrap_or_else(|| flags.ignored.framework.level()),
            connections_max: some("connections-max", flags.connections_max)?,
            cluster_connections_max: some(
                "cluster-connections-max",
                flags.cluster_connections_max,
            )?,
            cluster_rate_max: some("cluster-rate-max", flags.cluster_rate_max)?,
            snapshot_records: some("snapshot-records", flags.snapshot_records)?,
            log_history: flags.log_history,
            log_history_size: flags.log_history_size,
            without_effect: flags.without_effect().collect(),
        })
    }

    /// The bounds of the edge.
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.connections_max,
            connections_per_cluster: self.cluster_connections_max,
            rate_per_cluster: self.cluster_rate_max,
            ..Limits::default()
        }
    }
}

/// As the Go broker, which looks for the names only in a folder that was given.
fn metrics_places(flags: &Flags) -> Places {
    let api = Places::in_folder(&flags.http_cert_path);
    flags.metrics_cert_path.as_ref().map_or(api, |folder| Places {
        certificate: folder.join(&flags.metrics_cert_name),
        key: folder.join(&flags.metrics_cert_key),
        ..Places::in_folder(folder)
    })
}

fn some<N: PartialEq + Default>(flag: &'static str, given: N) -> Result<N, Error> {
    if given == N::default() { Err(Error::Nothing(flag)) } else { Ok(given) }
}

/// The flags alone, for whoever reads a command line before clap does.
pub fn command() -> Command {
    Flags::augment_args(Command::new("broker"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    use crate::engine::Keeping;
    use clap::FromArgMatches;
    use sublet_process::dashes;

    fn resolve(arguments: &[&str]) -> Result<Config, String> {
        let typed = ["broker"].iter().chain(arguments).map(OsString::from);
        let matches = command()
            .try_get_matches_from(dashes::doubled(typed, &[command()]))
            .map_err(|error| error.to_string())?;
        let flags = Flags::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        Config::resolve(&flags).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_those_of_the_go_broker() {
        let config = resolve(&[]).unwrap();
        assert_eq!(config.http_address, Address::new(None, 8443));
        assert_eq!(config.http_cert_path, PathBuf::from("/etc/broker/certs"));
        assert_eq!(config.health_probe_address, Some(Address::new(None, 8081)));
        assert_eq!(config.metrics_address, None);
        assert_eq!(config.log_format, Format::Text);
        assert_eq!(config.limits(), Limits::default());
        let keeping = Keeping::default();
        assert_eq!(
            (config.snapshot_records, config.log_history, config.log_history_size),
            (keeping.records, keeping.history, keeping.history_bytes)
        );
    }

    #[test]
    fn one_dash_is_as_good_as_two_and_booleans_are_as_in_go() {
        let typed = [
            "-http-port=9443",
            "-metrics-bind-address",
            ":8080",
            "-metrics-secure=false",
            "-leader-elect",
            "--enable-http2=false",
            "-zap-encoder=json",
            "-zap-log-level=debug",
        ];
        let config = resolve(&typed).unwrap();
        assert_eq!(config.http_address.port, 9443);
        assert_eq!(config.metrics_address, Some(Address::new(None, 8080)));
        assert_eq!(config.metrics_cert_path, None);
        assert_eq!(config.without_effect, ["enable-http2", "leader-elect"]);
        assert_eq!((config.log_format, config.log_level), (Format::Json, Level::Debug));
    }

    #[test]
    fn the_certificate_of_metrics_may_have_other_names() {
        let given = ["--metrics-cert-path=/m", "--metrics-cert-name=a.pem", "--metrics-cert-key=k"];
        let places = resolve(&given).unwrap().metrics_cert_path.unwrap();
        let [certificate, key, authority] = ["/m/a.pem", "/m/k", "/m/ca.crt"].map(PathBuf::from);
        assert_eq!(places, Places { certificate, key, authority });
        // Without a folder of their own, the names say nothing.
        let places = resolve(&given[1..]).unwrap().metrics_cert_path;
        assert_eq!(places, Some(Places::in_folder("/etc/broker/certs".as_ref())));
    }

    #[test]
    fn of_a_flag_that_is_given_twice_the_last_one_counts_as_in_go() {
        let config = resolve(&["-http-port=1", "--http-port=2"]).unwrap();
        assert_eq!(config.http_address.port, 2);
    }

    #[test]
    fn every_flag_of_the_go_broker_is_taken() {
        let go = [
            "broker-interface=http",
            "http-port=1",
            "http-cert-path=/x",
            "http-namespace=n",
            "health-probe-bind-address=:1",
            "metrics-bind-address=0",
            "metrics-secure",
            "metrics-secure=F",
            "health-probe-bind-address=localhost:8081",
            "metrics-cert-path=/x",
            "metrics-cert-name=a",
            "metrics-cert-key=b",
            "webhook-cert-path=/x",
            "webhook-cert-name=a",
            "webhook-cert-key=b",
            "enable-http2",
            "leader-elect=true",
            "kubeconfig=/x",
            "zap-devel=false",
            "zap-encoder=console",
            "zap-log-level=info",
            "zap-log-level=panic",
            "zap-log-level=15",
            "zap-encoder=JSON",
            "zap-stacktrace-level=error",
            "zap-time-encoding=epoch",
        ];
        for flag in go {
            for dashes in ["-", "--"] {
                assert!(resolve(&[&format!("{dashes}{flag}")]).is_ok(), "{dashes}{flag}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (typed, named) in [
            ("--broker-interface=kubernetes", "--broker-interface=kubernetes"),
            ("--broker-interface=grpc", "grpc"),
            ("--http-port=65536", "65536"),
            ("--health-probe-bind-address=8081", "--health-probe-bind-address"),
            ("--connections-max=0", "--connections-max"),
            ("--snapshot-records=0", "--snapshot-records"),
            ("--no-such-flag", "--no-such-flag"),
            ("--metrics-secure=yes", "--metrics-secure"),
            ("--zap-log-level=0", "--zap-log-level"),
            ("--zap-log-level=loud", "loud"),
        ] {
            let said = resolve(&[typed]).unwrap_err();
            assert!(said.contains(named), "{typed}: {said}");
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
}
