//! Something takes time: a spinner, where somebody looks at the terminal. Elsewhere silence, or one
//! line where whoever reads the output must know what is waited for.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};

/// How often it turns.
const TURN: Duration = Duration::from_millis(100);

/// Turns until it is dropped, and leaves nothing behind.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Begins to turn beside `what` is being done.
    pub(crate) fn start(what: impl Into<String>) -> Self {
        let bar = ProgressBar::new_spinner();
        if io::stderr().is_terminal() {
            bar.set_message(what.into());
            bar.enable_steady_tick(TURN);
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self(bar)
    }

    /// The same; without a terminal it is said once, on standard error.
    pub(crate) fn say(what: impl Into<String>) -> Self {
        let what = what.into();
        if !io::stderr().is_terminal() {
            // Without a standard error there is nobody to tell.
            drop(writeln!(anstream::stderr(), "sublet: {what}"));
        }
        Self::start(what)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
