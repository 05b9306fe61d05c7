//! The command line, as it is typed: every flag of the Go broker, and ours beside them.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sublet_core::quantity::{Quantity, Round};
use sublet_core::resources::Kind;
use sublet_core::time::Span;
use sublet_process::go::{Framework, boolean};
use sublet_process::{Format, Level};

/// How the broker is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Interface {
    /// JSON over mTLS.
    Http,
    /// Objects in the broker's cluster; not in this version.
    #[value(hide = true)]
    Kubernetes,
    /// Both; not in this version.
    #[value(hide = true)]
    Both,
}

/// The command line, as it is typed. Each flag is also an environment variable: `--http-port` is
/// `SUBLET_HTTP_PORT`. `-x` works where `--x` does.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Flags {
    /// Where the log is kept: one folder for one broker.
    #[arg(long, env = "SUBLET_DATA_DIR", default_value = "/var/lib/sublet")]
    pub data_dir: PathBuf,
    /// Who may borrow from whom, and how much (TOML); without it everybody may.
    #[arg(long, env = "SUBLET_POLICY", value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// How the broker is spoken to.
    #[arg(long, env = "SUBLET_BROKER_INTERFACE", value_enum, default_value = "http")]
    pub broker_interface: Interface,
    /// The address of the API; all addresses without it.
    #[arg(long, env = "SUBLET_HTTP_BIND_ADDRESS", value_name = "IP")]
    pub http_bind_address: Option<IpAddr>,
    /// The port of the API; 0 takes a free one.
    #[arg(long, env = "SUBLET_HTTP_PORT", default_value = "8443")]
    pub http_port: u16,
    /// The folder with tls.crt, tls.key and ca.crt.
    #[arg(long, env = "SUBLET_HTTP_CERT_PATH", default_value = "/etc/broker/certs")]
    pub http_cert_path: PathBuf,
    /// The namespace of objects in the broker's cluster; without effect on the HTTP interface.
    #[arg(long, env = "SUBLET_HTTP_NAMESPACE", default_value = "default")]
    pub http_namespace: String,
    /// Where /healthz and /readyz are served, without TLS; 0 turns them off.
    #[arg(long, env = "SUBLET_HEALTH_PROBE_BIND_ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,
    /// Where /metrics is served; 0 turns it off.
    #[arg(long, env = "SUBLET_METRICS_BIND_ADDRESS", default_value = "0")]
    pub metrics_bind_address: String,
    /// Whether /metrics is served over mTLS: with the certificate in --metrics-cert-path, or else
    /// that in --http-cert-path, to whoever has a certificate of the authority there.
    #[arg(long, env = "SUBLET_METRICS_SECURE", default_value_t = true, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = boolean)]
    pub metrics_secure: bool,
    /// A folder with a certificate for /metrics; without a ca.crt in it, scrapers are let in by
    /// that of --http-cert-path.
    #[arg(long, env = "SUBLET_METRICS_CERT_PATH", value_name = "FOLDER")]
    pub metrics_cert_path: Option<PathBuf>,
    /// The file with the certificate in --metrics-cert-path.
    #[arg(long, env = "SUBLET_METRICS_CERT_NAME", value_name = "FILE", default_value = "tls.crt")]
    pub metrics_cert_name: String,
    /// The file with its key.
    #[arg(long, env = "SUBLET_METRICS_CERT_KEY", value_name = "FILE", default_value = "tls.key")]
    pub metrics_cert_key: String,
    /// Writes the addresses that are served to this file, as JSON, once they are.
    #[arg(long, env = "SUBLET_ADDRESS_FILE", value_name = "FILE")]
    pub address_file: Option<PathBuf>,
    /// Connections in all.
    #[arg(long, env = "SUBLET_CONNECTIONS_MAX", value_name = "N", default_value = "20000")]
    pub connections_max: usize,
    /// Connections of one cluster.
    #[arg(long, env = "SUBLET_CLUSTER_CONNECTIONS_MAX", value_name = "N", default_value = "128")]
    pub cluster_connections_max: usize,
    /// Requests per second of one cluster; twice as many at once.
    #[arg(long, env = "SUBLET_CLUSTER_RATE_MAX", value_name = "N", default_value = "1000")]
    pub cluster_rate_max: u32,
    /// A snapshot of the books is taken after so many records of the log, or more where these are
    /// shorter than the last snapshot: a start reads no more beside it.
    #[arg(long, env = "SUBLET_SNAPSHOT_RECORDS", value_name = "N", default_value = "10000")]
    pub snapshot_records: u64,
    /// How long records stay in the log after a snapshot covers them, for `sublet log`.
    #[arg(long, env = "SUBLET_LOG_HISTORY", value_name = "SPAN", default_value = "168h")]
    pub log_history: Span,
    /// How many bytes of such records stay at most: the oldest go first.
    #[arg(long, env = "SUBLET_LOG_HISTORY_SIZE", value_name = "QUANTITY", default_value = "1Gi",
          value_parser = bytes)]
    pub log_history_size: u64,
    /// How log lines look [default: text, or json with --zap-devel=false]
    #[arg(long, env = "SUBLET_LOG_FORMAT", value_enum, ignore_case = true)]
    pub log_format: Option<Format>,
    /// What is logged: debug, info, warn or error; any of zap's numbers is debug [default: info]
    #[arg(long, env = "SUBLET_LOG_LEVEL", value_name = "LEVEL", value_parser = Level::read)]
    pub log_level: Option<Level>,
    /// Prints the configuration that results as flags, one a line, and ends.
    #[arg(long)]
    pub print_config: bool,
    #[command(flatten)]
    pub(super) ignored: Ignored,
}

/// So many bytes, as Kubernetes writes quantities; parts of one count as none.
fn bytes(text: &str) -> Result<u64, String> {
    let quantity: Quantity = text.parse().map_err(|error| format!("{error}"))?;
    Kind::Memory.amount(&quantity, Round::Down).map_err(|error| error.to_string())
}

impl Flags {
    /// The flags that were given and have no effect.
    pub(super) fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        let namespace = (self.http_namespace != "default").then_some("http-namespace");
        namespace.into_iter().chain(self.ignored.without_effect())
    }
}

/// Flags of the Go broker that have no effect here: they are taken, and a log line says so.
#[derive(Args, Clone, Debug)]
pub(super) struct Ignored {
    #[arg(long, hide = true, env = "SUBLET_LEADER_ELECT", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = boolean)]
    leader_elect: Option<bool>,
    #[arg(long, hide = true, env = "SUBLET_KUBECONFIG")]
    kubeconfig: Option<String>,
    #[command(flatten)]
    pub(super) framework: Framework,
}

impl Ignored {
    fn own(&self) -> impl Iterator<Item = (&'static str, String)> {
        let leader_elect = self.leader_elect.map(|given| given.to_string());
        [("leader-elect", leader_elect), ("kubeconfig", self.kubeconfig.clone())]
            .into_iter()
            .filter_map(|(name, given)| Some((name, given?)))
    }

    /// Those that were given, and with what.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.framework.given().chain(self.own())
    }

    fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        self.framework.without_effect().chain(self.own().map(|(name, _)| name))
    }
}
