//! The configuration that results, as flags: what is printed starts the same broker again.

use std::path::Path;

use clap::ValueEnum;
use sublet_core::resources::Kind;

use super::{Config, Error, Flags};

/// Every flag with its value, one a line; one that is not set is a comment.
pub fn print(flags: &Flags) -> Result<String, Error> {
    let config = Config::resolve(flags)?;
    let lines = known(flags, &config).into_iter().chain(ignored(flags));
    let written = lines.map(|(name, value)| match value {
        Some(value) => format!("--{name}={value}\n"),
        None => format!("# --{name} is not set\n"),
    });
    Ok(written.collect())
}

type Line = (&'static str, Option<String>);

fn known(flags: &Flags, config: &Config) -> Vec<Line> {
    let path = |path: &Path| path.display().to_string();
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned())
    };
    vec![
        ("data-dir", Some(path(&flags.data_dir))),
        ("policy", flags.policy.as_deref().map(path)),
        ("broker-interface", name(flags.broker_interface.to_possible_value())),
        ("http-bind-address", flags.http_bind_address.map(|address| address.to_string())),
        ("http-port", Some(flags.http_port.to_string())),
        ("http-cert-path", Some(path(&flags.http_cert_path))),
        ("http-namespace", Some(flags.http_namespace.clone())),
        ("health-probe-bind-address", Some(flags.health_probe_bind_address.clone())),
        ("metrics-bind-address", Some(flags.metrics_bind_address.clone())),
        ("metrics-secure", Some(flags.metrics_secure.to_string())),
        ("metrics-cert-path", flags.metrics_cert_path.as_deref().map(path)),
        ("metrics-cert-name", Some(flags.metrics_cert_name.clone())),
        ("metrics-cert-key", Some(flags.metrics_cert_key.clone())),
        ("address-file", flags.address_file.as_deref().map(path)),
        ("connections-max", Some(flags.connections_max.to_string())),
        ("cluster-connections-max", Some(flags.cluster_connections_max.to_string())),
        ("cluster-rate-max", Some(flags.cluster_rate_max.to_string())),
        ("snapshot-records", Some(flags.snapshot_records.to_string())),
        ("log-history", Some(flags.log_history.to_string())),
        ("log-history-size", Some(Kind::Memory.quantity(flags.log_history_size).to_string())),
        ("log-format", name(config.log_format.to_possible_value())),
        ("log-level", name(config.log_level.to_possible_value())),
    ]
}

/// Those of the Go broker that have no effect: only what was given.
fn ignored(flags: &Flags) -> impl Iterator<Item = Line> {
    flags.ignored.given().map(|(name, value)| (name, Some(value)))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn printed(arguments: &[&str]) -> String {
        let command = Flags::augment_args(Command::new("broker"));
        let typed = ["broker"].into_iter().chain(arguments.iter().copied());
        let flags = Flags::from_arg_matches(&command.get_matches_from(typed)).unwrap();
        print(&flags).unwrap()
    }

    #[test]
    fn every_flag_is_printed_by_its_name() {
        let text = printed(&[]);
        for argument in Flags::augment_args(Command::new("broker")).get_arguments() {
            let long = argument.get_long().unwrap();
            let is_there = text.lines().any(|line| {
                line.starts_with(&format!("--{long}=")) || *line == format!("# --{long} is not set")
            });
            let is_told = !argument.is_hide_set() && long != "print-config";
            assert_eq!(is_there, is_told, "{long}: {text}");
        }
    }

    #[test]
    fn what_is_printed_can_be_read_back() {
        let given = [
            "--policy=/p with spaces.toml",
            "--http-bind-address=127.0.0.1",
            "--metrics-bind-address=:9090",
            "--metrics-secure=false",
            "--cluster-rate-max=7",
            "--log-history=90m",
            "--log-history-size=1536Mi",
            "--log-level=debug",
            "--zap-devel=false",
            "--leader-elect",
        ];
        let text = printed(&given);
        assert!(text.contains("--log-format=json\n") && text.contains("--cluster-rate-max=7\n"));
        assert!(text.contains("--log-history-size=1536Mi\n"), "{text}");
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(printed(&lines), text);
    }
}
