//! Something takes time: a spinner, where somebody looks at the terminal, and silence elsewhere.

use std::io::{self, IsTerminal};
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
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
