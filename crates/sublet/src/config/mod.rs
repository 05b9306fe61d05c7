//! `sublet config`: contexts, as kubectl has them, so that nobody types three certificate paths.

mod context;
mod file;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use sublet_core::time::Time;

use crate::clock;
use crate::environment::Environment;
use crate::exit::{Exit, Stop};
use crate::output::{self, Cell, Column, Format, Row};

pub(crate) use context::{Certificates, Context, default_urls};
pub(crate) use file::Config;

/// What to do with the contexts.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the contexts.
    GetContexts {
        /// How to print it.
        #[arg(short, long, value_enum)]
        output: Option<Format>,
    },
    /// Print the name of the context in use.
    CurrentContext,
    /// Use a context from now on.
    UseContext {
        /// Which.
        name: String,
    },
    /// Make a context, or change what is named of it.
    SetContext(SetArgs),
    /// Forget a context.
    DeleteContext {
        /// Which.
        name: String,
    },
}

/// A context, or a part of one.
#[derive(clap::Args)]
pub(crate) struct SetArgs {
    /// Which.
    name: String,
    /// A broker's address; several for several replicas [default: `https://localhost:8443`]
    #[arg(long, value_name = "URL")]
    broker_url: Vec<String>,
    /// A folder with tls.crt, tls.key and ca.crt, as `sublet ca issue` writes it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "key", "ca"])]
    cert_path: Option<PathBuf>,
    /// The client's certificate, where it is not in such a folder.
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The CA that the broker's certificate is of.
    #[arg(long, value_name = "FILE", requires = "cert")]
    ca: Option<PathBuf>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    name: String,
    current: bool,
    #[serde(flatten)]
    context: Context,
}

impl Row for Listed {
    const COLUMNS: &'static [Column] = &[
        Column::new("CURRENT"),
        Column::new("NAME"),
        Column::new("BROKER"),
        Column::new("CERTIFICATE"),
    ];

    fn cells(&self, _: Time) -> Vec<Cell> {
        let current = if self.current { "*" } else { "" };
        let certificate = self.context.certificates.display();
        vec![
            current.into(),
            self.name.as_str().into(),
            self.context.urls.join(",").into(),
            certificate.into(),
        ]
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Command {
    pub(crate) fn run(self) -> Result<()> {
        let mut config = Config::load(&Environment::read().config_file()?)?;
        let mut out = output::stdout();
        match self {
            Self::GetContexts { output } => {
                let rows = config.contexts().map(|(name, context)| Listed {
                    name: name.into(),
                    current: config.current() == Some(name),
                    context: context.clone(),
                });
                output::list(&rows.collect::<Vec<_>>(), output, clock::now(), &mut out)
            }
            Self::CurrentContext => match config.current() {
                Some(name) => Ok(writeln!(out, "{name}")?),
                None => Err(Stop::new(Exit::NotFound, NONE_IN_USE).into()),
            },
            Self::UseContext { name } => {
                config.use_context(&name)?;
                Ok(writeln!(out, "using context {name}")?)
            }
            Self::SetContext(args) => {
                let made = config.set(&args.name, |context| args.apply(context))?;
                let what = if made { "made" } else { "changed" };
                Ok(writeln!(out, "{what} context {}", args.name)?)
            }
            Self::DeleteContext { name } => {
                config.delete(&name)?;
                Ok(writeln!(out, "deleted context {name}")?)
            }
        }
    }
}

const NONE_IN_USE: &str =
    "no context is in use: choose one with sublet config use-context, or make one with set-context";

impl SetArgs {
    /// Changes what was named and leaves the rest.
    fn apply(&self, context: Option<Context>) -> Result<Context> {
        let certificates = match (&self.cert_path, &self.cert, &self.key, &self.ca) {
            (Some(folder), ..) => Some(Certificates::folder(&context::absolute(folder)?)),
            (None, Some(certificate), Some(key), Some(ca)) => Some(Certificates {
                certificate: context::absolute(certificate)?,
                key: context::absolute(key)?,
                ca: context::absolute(ca)?,
            }),
            _ => None,
        };
        let certificates = certificates.or(context.as_ref().map(|c| c.certificates.clone()));
        let certificates = certificates.ok_or_else(|| {
            Stop::new(Exit::Usage, "a new context needs --cert-path (sublet ca issue makes one)")
        })?;
        let urls = if self.broker_url.is_empty() { None } else { Some(self.broker_url.clone()) };
        let urls = urls.or(context.map(|context| context.urls));
        let context = Context { urls: urls.unwrap_or_else(context::default_urls), certificates };
        context.check()?;
        Ok(context)
    }
}
