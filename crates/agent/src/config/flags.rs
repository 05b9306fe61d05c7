//! The command line, as it is typed: every flag of the Go agent, and ours beside them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use sublet_core::time::Span;
use sublet_process::go::{Framework, boolean};
use sublet_process::{Format, Level};

use super::joining::LIQOCTL;
use crate::collect::Tolerated;
use crate::offer::Offer;

/// The command line, as it is typed. Each flag is also an environment variable: `--cluster-id` is
/// `SUBLET_CLUSTER_ID`. `-x` works where `--x` does.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
#[command(next_help_heading = "Options", args_override_self = true)]
pub struct Flags {
    /// The kubeconfig of this cluster; without it $KUBECONFIG, the pod's own account, ~/.kube/config.
    #[arg(long, env = "SUBLET_KUBECONFIG", value_name = "FILE", value_parser = path())]
    pub kubeconfig: Option<PathBuf>,
    /// How the broker is spoken to: http, or nothing for no broker at all.
    #[arg(long, env = "SUBLET_BROKER_TRANSPORT", default_value = "")]
    pub broker_transport: String,
    /// The broker, as `https://host:8443`; several that share their log with commas between them.
    #[arg(long, env = "SUBLET_BROKER_URL", default_value = "")]
    pub broker_url: String,
    /// The folder with tls.crt, tls.key and ca.crt.
    #[arg(long, env = "SUBLET_BROKER_CERT_PATH", value_name = "FOLDER", value_parser = path())]
    pub broker_cert_path: Option<PathBuf>,
    /// Who this cluster is; without it the CN of the certificate, or the UID of kube-system.
    #[arg(long, env = "SUBLET_CLUSTER_ID", default_value = "")]
    pub cluster_id: String,
    /// The name of the Advertisement that is kept for people.
    #[arg(long, env = "SUBLET_ADVERTISEMENT_NAME", default_value = "cluster-advertisement")]
    pub advertisement_name: String,
    /// Its namespace.
    #[arg(long, env = "SUBLET_ADVERTISEMENT_NAMESPACE", default_value = "default")]
    pub advertisement_namespace: String,
    /// The namespace of instructions of both kinds; without it that of the Advertisement.
    #[arg(long, env = "SUBLET_INSTRUCTION_NAMESPACE", default_value = "")]
    pub instruction_namespace: String,
    /// How often the cluster is advertised if nothing changes; 0 means 1m.
    #[arg(long, env = "SUBLET_ADVERTISEMENT_REQUEUE_INTERVAL", default_value = "30s")]
    pub advertisement_requeue_interval: Span,
    /// Over how much of that the clusters are spread; 0s is on the clock's full intervals.
    #[arg(long, env = "SUBLET_ADVERTISEMENT_SPREAD", value_name = "SPAN")]
    pub advertisement_spread: Option<Span>,
    /// How often an old broker is asked for instructions; 0 is never. Ours tells them by itself.
    #[arg(long, env = "SUBLET_INSTRUCTION_POLL_INTERVAL", default_value = "5s")]
    pub instruction_poll_interval: Span,
    /// What of the spare capacity is offered: all, 50%, or per resource memory=all-4Gi,gpu=none.
    #[arg(long, env = "SUBLET_OFFER", default_value = "all")]
    pub offer: Offer,
    /// Taints that do not matter: none, all, or their keys with commas between them.
    #[arg(long, env = "SUBLET_TOLERATE_TAINTS", default_value = "none", value_name = "KEYS")]
    pub tolerate_taints: Tolerated,
    /// Labels of the cluster: tier=gold,gpu-model=h100.
    #[arg(long, env = "SUBLET_LABELS", default_value = "")]
    pub labels: String,
    /// Where it is.
    #[arg(long, env = "SUBLET_REGION")]
    pub region: Option<String>,
    /// What a core costs per hour.
    #[arg(long, env = "SUBLET_CPU_COST", requires_all = ["memory_cost", "currency"])]
    pub cpu_cost: Option<String>,
    /// What a GB of memory costs per hour.
    #[arg(long, env = "SUBLET_MEMORY_COST", requires = "cpu_cost")]
    pub memory_cost: Option<String>,
    /// In which currency.
    #[arg(long, env = "SUBLET_CURRENCY", requires = "cpu_cost")]
    pub currency: Option<String>,
    /// Whether the cluster lends; one that does not may still borrow.
    #[arg(long, env = "SUBLET_LEND", default_value_t = true, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = boolean)]
    pub lend: bool,
    /// How clusters are joined: liqo, liqoctl or none. Without it liqoctl with --kubeconfigs-dir, else liqo
    /// where Liqo is installed, else none.
    #[arg(long, env = "SUBLET_PEERING", value_name = "BACKEND")]
    pub peering: Option<String>,
    /// How many pods a virtual node takes; as a provider, at most so many.
    #[arg(long, env = "SUBLET_SLICE_PODS", default_value_t = 110, value_name = "COUNT")]
    pub slice_pods: u64,
    /// How much storage a virtual node has where none is reserved; as a provider, at most so much.
    #[arg(long, env = "SUBLET_SLICE_STORAGE", default_value = "20Gi", value_name = "BYTES")]
    pub slice_storage: String,
    /// How long pods may take to leave at the end of a reservation before they are forced to.
    #[arg(long, env = "SUBLET_EVICTION_DEADLINE", default_value = "2m", value_name = "SPAN")]
    pub eviction_deadline: Span,
    /// How long the link of two clusters is kept when no reservation needs it; at most 12h.
    #[arg(long, env = "SUBLET_LINK_IDLE", default_value = "10m", value_name = "SPAN")]
    pub link_idle: Span,
    /// The network between joined clusters, which Liqo makes, for --peering=liqoctl: existing, which is also meant
    /// without it, is left as it is, with disabled there is none.
    #[arg(long, env = "SUBLET_LIQO_NETWORKING", value_name = "WHICH")]
    pub liqo_networking: Option<String>,
    /// The folder with `<cluster>.kubeconfig` of this cluster and of its providers, for --peering=liqoctl.
    #[arg(long, env = "SUBLET_KUBECONFIGS_DIR", value_name = "FOLDER")]
    pub kubeconfigs_dir: Option<String>,
    /// Liqo's command line, for --peering=liqoctl.
    #[arg(long, env = "SUBLET_LIQOCTL_PATH", default_value = LIQOCTL, value_name = "FILE",
          value_parser = path())]
    pub liqoctl_path: PathBuf,
    /// How long it may take, each time.
    #[arg(long, env = "SUBLET_LIQOCTL_TIMEOUT", default_value = "5m", value_name = "SPAN")]
    pub liqoctl_timeout: Span,
    /// Of several agents of one cluster, one works at a time.
    #[arg(long, env = "SUBLET_LEADER_ELECT", default_value_t = false, num_args = 0..=1,
          action = clap::ArgAction::Set, require_equals = true, default_missing_value = "true",
          value_parser = boolean)]
    pub leader_elect: bool,
    /// Where /healthz and /readyz are served, without TLS; 0 turns them off.
    #[arg(long, env = "SUBLET_HEALTH_PROBE_BIND_ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,
    /// Where /metrics is served; 0 turns it off.
    #[arg(long, env = "SUBLET_METRICS_BIND_ADDRESS", default_value = "0")]
    pub metrics_bind_address: String,
    /// Whether /metrics is served over mTLS, with the certificates of --metrics-cert-path, or without those with
    /// the one in --broker-cert-path.
    #[arg(long, env = "SUBLET_METRICS_SECURE", default_value_t = true, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = boolean)]
    pub metrics_secure: bool,
    /// A folder with certificates for /metrics; without a ca.crt in it, that of --broker-cert-path counts.
    #[arg(long, env = "SUBLET_METRICS_CERT_PATH", value_name = "FOLDER", value_parser = path())]
    pub metrics_cert_path: Option<PathBuf>,
    /// The certificate in it.
    #[arg(long, env = "SUBLET_METRICS_CERT_NAME", default_value = "tls.crt", value_name = "FILE")]
    pub metrics_cert_name: String,
    /// Its key.
    #[arg(long, env = "SUBLET_METRICS_CERT_KEY", default_value = "tls.key", value_name = "FILE")]
    pub metrics_cert_key: String,
    /// Writes the addresses that are served to this file, as JSON, once they are.
    #[arg(long, env = "SUBLET_ADDRESS_FILE", value_name = "FILE", value_parser = path())]
    pub address_file: Option<PathBuf>,
    /// How log lines look.
    #[arg(long, env = "SUBLET_LOG_FORMAT", value_enum, ignore_case = true)]
    pub log_format: Option<Format>,
    /// What is logged: debug, info, warn or error; any of zap's numbers is debug [default: info]
    #[arg(long, env = "SUBLET_LOG_LEVEL", value_name = "LEVEL", value_parser = Level::read)]
    pub log_level: Option<Level>,
    /// Prints the configuration that results, and ends.
    #[arg(long)]
    pub print_config: bool,
    #[command(flatten)]
    pub(super) legacy: Legacy,
}

/// Flags of the Go agent that have no effect here: they are taken, and a log line says so. The first
/// one alone chooses its other transport, which is an error.
#[derive(Args, Clone, Debug)]
pub(super) struct Legacy {
    #[arg(long, hide = true, env = "SUBLET_BROKER_KUBECONFIG")]
    pub(super) broker_kubeconfig: Option<String>,
    #[arg(long, hide = true, env = "SUBLET_BROKER_NAMESPACE")]
    pub(super) broker_namespace: Option<String>,
    #[command(flatten)]
    pub(super) framework: Framework,
}

impl Legacy {
    /// Those that were given and have no effect.
    pub(super) fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        let named = |given: &Option<String>| given.as_ref().is_some_and(|text| !text.is_empty());
        let kubeconfig = named(&self.broker_kubeconfig).then_some("broker-kubeconfig");
        let namespace = named(&self.broker_namespace).then_some("broker-namespace");
        kubeconfig.into_iter().chain(namespace).chain(self.framework.without_effect())
    }
}

/// A path; none at all is read too, and means as in Go that it is not given.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
