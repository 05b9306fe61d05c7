//! How a command ends: one status per kind of trouble, so that scripts need not read messages.
//!
//! The numbers are a promise (docs/cli.md); clap itself ends with 2 when the command line is wrong.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;

/// The statuses, as `sublet --help` prints them.
pub(crate) const HELP: &str = "\
Exit status:
  0  done
  1  something went wrong
  2  the command line is wrong: a flag, a name, an amount or an address that cannot be meant
  3  refused: nothing fits, or it is not possible as things stand
  4  there is no such thing
  5  the broker cannot be reached or cannot answer now; trying again may help
  6  not allowed: the certificate is missing, wrong or not that of an operator
  7  looked at, and not sound (fsck, policy check)";

/// The kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Anything that has no kind of its own.
    Failed = 1,
    /// What the command line says cannot be meant.
    Usage = 2,
    /// Somebody said no, for a reason.
    Refused = 3,
    /// Not there.
    NotFound = 4,
    /// Nobody answered, or not now.
    Unavailable = 5,
    /// Not for you.
    Forbidden = 6,
    /// What was checked is not as it should be.
    Unsound = 7,
}

/// An end with a status of its own. Its text says what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Stop {
    exit: Exit,
    message: String,
}

impl Stop {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }
}

/// Says what went wrong, if anything did, and gives the status.
pub(crate) fn report(result: Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    if is_closed_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    // When even stderr is gone, the status is all that is left to say.
    drop(writeln!(anstream::stderr(), "sublet: {error:#}"));
    ExitCode::from(status(&error) as u8)
}

/// With which one an error ends the program.
pub(crate) fn status(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Stop>().map_or(Exit::Failed, |stop| stop.exit)
}

/// Whoever read our output has seen enough, as `head` does. A connection that broke has a status of
/// its own.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    if error.downcast_ref::<Stop>().is_some() {
        return false;
    }
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn an_end_keeps_its_status_under_context_and_above_causes() {
        let plain = anyhow!("disk full");
        assert_eq!(status(&plain), Exit::Failed);
        let wrapped = Err::<(), _>(plain.context(Stop::new(Exit::NotFound, "no such thing")));
        let wrapped = wrapped.context("looking for it").unwrap_err();
        assert_eq!(status(&wrapped), Exit::NotFound);
        assert_eq!(format!("{wrapped:#}"), "looking for it: no such thing: disk full");
    }

    #[test]
    fn only_our_own_output_ends_well_when_it_is_cut_off() {
        let broken = || anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&broken().context("cannot print")));
        assert!(!is_closed_pipe(&broken().context(Stop::new(Exit::Unavailable, "no answer"))));
        assert!(!is_closed_pipe(&anyhow!("disk full")));
    }

    #[test]
    fn every_status_is_in_the_help() {
        use Exit::{Failed, Forbidden, NotFound, Refused, Unavailable, Unsound, Usage};
        for exit in [Failed, Usage, Refused, NotFound, Unavailable, Forbidden, Unsound] {
            assert!(HELP.contains(&format!("\n  {}  ", exit as u8)), "{exit:?}");
        }
    }
}
