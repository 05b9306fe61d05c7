//! The command line of the Go system: how Go reads what is typed, and the flags of its framework
//! that mean nothing here. They are taken, so that its deployments start ours, and a log line says
//! that they have no effect.

use clap::Args;

use crate::lines::{Format, Level};

/// Yes or no, in any of Go's spellings.
pub fn boolean(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("write true or false"),
    }
}

/// Flags of the Go system's framework.
#[derive(Args, Clone, Debug, Default)]
pub struct Framework {
    #[arg(long, hide = true, env = "SUBLET_WEBHOOK_CERT_PATH")]
    webhook_cert_path: Option<String>,
    #[arg(long, hide = true, env = "SUBLET_WEBHOOK_CERT_NAME")]
    webhook_cert_name: Option<String>,
    #[arg(long, hide = true, env = "SUBLET_WEBHOOK_CERT_KEY")]
    webhook_cert_key: Option<String>,
    #[arg(long, hide = true, env = "SUBLET_ENABLE_HTTP2", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = boolean)]
    enable_http2: Option<bool>,
    /// Chooses the format of log lines, and nothing else.
    #[arg(long, hide = true, env = "SUBLET_ZAP_DEVEL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = boolean)]
    zap_devel: Option<bool>,
    /// The format in its own words.
    #[arg(long, hide = true, env = "SUBLET_ZAP_ENCODER", value_enum, ignore_case = true)]
    zap_encoder: Option<Format>,
    /// What is logged.
    #[arg(long, hide = true, env = "SUBLET_ZAP_LOG_LEVEL", value_parser = Level::read)]
    zap_log_level: Option<Level>,
    #[arg(long, hide = true, env = "SUBLET_ZAP_STACKTRACE_LEVEL")]
    zap_stacktrace_level: Option<String>,
    #[arg(long, hide = true, env = "SUBLET_ZAP_TIME_ENCODING")]
    zap_time_encoding: Option<String>,
}

impl Framework {
    const DEVEL: &'static str = "zap-devel";

    /// Those that were given, and with what.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let yes_or_no = |given: Option<bool>| given.map(|given| given.to_string());
        [
            ("webhook-cert-path", self.webhook_cert_path.clone()),
            ("webhook-cert-name", self.webhook_cert_name.clone()),
            ("webhook-cert-key", self.webhook_cert_key.clone()),
            ("enable-http2", yes_or_no(self.enable_http2)),
            (Self::DEVEL, yes_or_no(self.zap_devel)),
            ("zap-stacktrace-level", self.zap_stacktrace_level.clone()),
            ("zap-time-encoding", self.zap_time_encoding.clone()),
        ]
        .into_iter()
        .filter_map(|(name, given)| Some((name, given?)))
    }

    /// Those that were given and have no effect.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        self.given().map(|(name, _)| name).filter(|name| *name != Self::DEVEL)
    }

    /// As the Go system: lines for people in development mode, which is its default, else JSON; unless
    /// the format itself was said.
    pub fn format(&self) -> Format {
        let by_mode = if self.zap_devel == Some(false) { Format::Json } else { Format::Text };
        self.zap_encoder.unwrap_or(by_mode)
    }

    /// What is logged; in either mode the same, if nothing was said.
    pub fn level(&self) -> Level {
        self.zap_log_level.unwrap_or(Level::Info)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn read(arguments: &[&str]) -> Result<Framework, clap::Error> {
        let command = Framework::augment_args(Command::new("x"));
        let typed = ["x"].into_iter().chain(arguments.iter().copied());
        Framework::from_arg_matches(&command.try_get_matches_from(typed)?)
    }

    #[test]
    fn yes_and_no_are_spelled_as_in_go() {
        for (value, texts) in [
            (true, ["1", "t", "T", "true", "TRUE", "True"]),
            (false, ["0", "f", "F", "false", "FALSE", "False"]),
        ] {
            for text in texts {
                assert_eq!(boolean(text), Ok(value), "{text}");
                let devel = read(&[&format!("--zap-devel={text}")]).unwrap();
                assert_eq!(devel.format() == Format::Text, value, "{text}");
            }
        }
        for text in ["", "yes", "no", "tRUE", "2", " true"] {
            assert!(boolean(text).is_err(), "{text:?}");
            assert!(read(&[&format!("--enable-http2={text}")]).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_format_and_the_level_of_log_lines_are_also_variables_of_their_own() {
        let said = read(&["--zap-encoder=JSON", "--zap-log-level=2"]).unwrap();
        assert_eq!((said.format(), said.level()), (Format::Json, Level::Debug));
        let said = read(&["--zap-devel=false", "--zap-encoder=console"]).unwrap();
        assert_eq!((said.format(), said.level()), (Format::Text, Level::Info));
        assert_eq!(said.without_effect().count(), 0);
        for argument in Framework::augment_args(Command::new("x")).get_arguments() {
            let name = argument.get_long().unwrap().to_uppercase().replace('-', "_");
            let variable = argument.get_env().unwrap().to_string_lossy().into_owned();
            assert_eq!(variable, format!("SUBLET_{name}"));
        }
    }

    #[test]
    fn what_has_no_effect_is_named_and_the_mode_of_log_lines_has_one() {
        let ignored = read(&["--enable-http2", "--zap-devel=0", "--webhook-cert-path=/x"]).unwrap();
        assert_eq!(
            ignored.without_effect().collect::<Vec<_>>(),
            ["webhook-cert-path", "enable-http2"]
        );
        assert!(ignored.given().any(|given| given == ("zap-devel", "false".to_owned())));
    }
}
