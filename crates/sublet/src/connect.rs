//! From a context to a broker that answers, and from its errors to what to do next.

use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sublet_wire::client::{Client, Credentials, Error, Options};
use sublet_wire::{Code, Problem};

use crate::config::{Certificates, Config, Context, default_urls};
use crate::environment::Environment;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format};

/// How often a call is tried for somebody who waits at a terminal.
const ATTEMPTS: u32 = 3;
/// How long a call may take for somebody who waits at a terminal.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which broker, and as whom; the rest comes from the context in use.
#[derive(clap::Args)]
pub(crate) struct Connection {
    /// The context, instead of the one in use.
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    context: Option<String>,
    /// The broker's address, instead of the context's.
    #[arg(long, value_name = "URL", help_heading = "Connection")]
    broker_url: Vec<String>,
    /// A folder with tls.crt, tls.key and ca.crt, instead of the context's certificate.
    #[arg(long, value_name = "DIR", help_heading = "Connection")]
    cert_path: Option<PathBuf>,
}

impl Connection {
    /// Connects, and does something with it.
    pub(crate) fn run<F: Future<Output = Result<()>>>(
        &self,
        act: impl FnOnce(Client) -> F,
    ) -> Result<()> {
        let client = client(&self.resolve(&Environment::read())?)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("no runtime could be started")?.block_on(act(client))
    }

    /// The same for what prints an answer in a format: for programs, a refusal is an answer too.
    pub(crate) fn answer<F: Future<Output = Result<()>>>(
        &self,
        format: Option<Format>,
        act: impl FnOnce(Client) -> F,
    ) -> Result<()> {
        self.run(act).inspect_err(|error| {
            let Some(problem) = problem(error) else { return };
            let mut out = output::stdout();
            // What cannot be printed is still said on standard error.
            drop(match format {
                Some(Format::Json) => output::json(problem, &mut out),
                Some(Format::Yaml) => output::yaml(problem, &mut out),
                _ => Ok(()),
            });
        })
    }

    fn resolve(&self, environment: &Environment) -> Result<Context> {
        let context = match (&self.cert_path, self.named(environment)?) {
            (None, None) => return Err(Stop::new(Exit::Usage, NO_CONTEXT).into()),
            (Some(folder), base) => Context {
                urls: base.map_or_else(default_urls, |base| base.urls),
                certificates: Certificates::folder(folder),
            },
            (None, Some(base)) => base,
        };
        let own = Some(self.broker_url.clone()).filter(|urls| !urls.is_empty());
        let context = Context { urls: own.unwrap_or(context.urls), ..context };
        context.check()?;
        Ok(context)
    }

    fn named(&self, environment: &Environment) -> Result<Option<Context>> {
        let config = Config::load(&environment.config_file()?)?;
        let name = self.context.as_deref().or(environment.context.as_deref());
        name.or(config.current()).map(|name| config.context(name)).transpose()
    }
}

const NO_CONTEXT: &str = "it is not known which broker is meant and as whom: make a context with \
                          sublet config set-context, or name --broker-url and --cert-path";

/// A client for somebody who waits.
fn client(context: &Context) -> Result<Client> {
    let Certificates { certificate, key, ca } = context.certificates.clone();
    let credentials = Credentials::from_files([certificate, key, ca]).map_err(Error::from);
    let credentials = credentials.map_err(failed)?;
    let options = Options {
        attempts: ATTEMPTS,
        patience: PATIENCE,
        ..Options::new(context.urls.clone(), credentials)
    };
    Client::new(options).map_err(failed)
}

/// An answer, or what to do without one.
pub(crate) trait Answered<T> {
    fn answered(self) -> Result<T>;
}

impl<T> Answered<T> for Result<T, Error> {
    fn answered(self) -> Result<T> {
        self.map_err(failed)
    }
}

/// Gives an error its exit status and says what to do next.
pub(crate) fn failed(error: Error) -> anyhow::Error {
    let (exit, advice) = judge(&error);
    anyhow::Error::new(error).context(Stop::new(exit, advice))
}

/// The same in our own words, where the broker's are those of the Go system.
pub(crate) fn said(error: Error, message: String) -> anyhow::Error {
    let (exit, advice) = judge(&error);
    anyhow::Error::new(Said { message, error }).context(Stop::new(exit, advice))
}

/// What the broker said, and how we say it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Said {
    message: String,
    error: Error,
}

/// What the broker said, if that is why it failed.
fn problem(error: &anyhow::Error) -> Option<&Problem> {
    error.chain().find_map(|cause| {
        let ours = cause.downcast_ref::<Said>().map(|said| &said.error);
        ours.or_else(|| cause.downcast_ref::<Error>())?.problem()
    })
}

/// Looks at something again and again, also while the broker is away for a while.
#[derive(Default)]
pub(crate) struct Patient {
    /// It was said that it is tried again, and nothing has come since.
    is_told: bool,
}

impl Patient {
    /// What a look brought; nothing where the next one may bring something.
    pub(crate) fn wait_for<T>(&mut self, looked: Result<T>) -> Result<Option<T>> {
        let may_pass = |error: &anyhow::Error| {
            let ours = error.chain().find_map(|cause| cause.downcast_ref::<Error>());
            ours.is_some_and(Error::is_retryable)
        };
        match looked {
            Ok(found) => {
                self.is_told = false;
                Ok(Some(found))
            }
            Err(error) if may_pass(&error) => {
                if !std::mem::replace(&mut self.is_told, true) {
                    // Without a standard error there is nobody to tell.
                    drop(writeln!(anstream::stderr(), "sublet: {error:#}; trying again"));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn judge(error: &Error) -> (Exit, &'static str) {
    let unavailable = "the broker does not answer (see where it is looked for with: sublet config \
                       get-contexts)";
    match error {
        Error::Problem { status, problem } => match (problem.code(), status) {
            (Some(Code::Forbidden), _) => {
                (Exit::Forbidden, "not allowed (see as whom with: sublet config get-contexts)")
            }
            (_, 401 | 403) => (Exit::Forbidden, "not allowed"),
            (_, 404) => (Exit::NotFound, "not found"),
            (_, 409) => (Exit::Refused, "refused"),
            (_, 408 | 429 | 503) => (Exit::Unavailable, "not now; try again"),
            (_, 400..500) => (Exit::Usage, "the broker does not accept this"),
            _ => (Exit::Failed, "the broker failed"),
        },
        Error::Tls { .. } | Error::Credentials(_) => (Exit::Forbidden, "no trust"),
        Error::Url(_) | Error::NoUrl => (Exit::Usage, "the address is wrong"),
        Error::NoRandomness => (Exit::Failed, "no key could be made"),
        Error::Answer { .. } | Error::TooLong { .. } => (Exit::Failed, "is this a broker?"),
        _ => (Exit::Unavailable, unavailable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_broker_has_its_exit_status() {
        let exit = |code: Code| {
            let problem = Problem::new(code, "no");
            judge(&Error::Problem { status: code.status(), problem }).0
        };
        assert_eq!(exit(Code::NoSuitableCluster), Exit::Refused);
        assert_eq!(exit(Code::WrongPhase), Exit::Refused);
        assert_eq!(exit(Code::NoSuchReservation), Exit::NotFound);
        assert_eq!(exit(Code::Forbidden), Exit::Forbidden);
        assert_eq!(exit(Code::CertificateRevoked), Exit::Forbidden);
        assert_eq!(exit(Code::ProvidersOverdue), Exit::Unavailable);
        assert_eq!(exit(Code::Overloaded), Exit::Unavailable);
        assert_eq!(exit(Code::InvalidField), Exit::Usage);
        assert_eq!(exit(Code::Internal), Exit::Failed);
    }
}
