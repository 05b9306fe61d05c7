//! Processes that cannot outlive this one, however it ends.
//!
//! A destructor is not enough: a test that is killed with SIGKILL, or aborts, runs none. So every
//! process is put into a process group of its own, led by a *guardian*: a shell that does nothing but
//! wait on a pipe of which this process has the only other end. When this process ends, the kernel
//! closes the pipe, and the guardian kills its whole group.
//!
//! Why not `PR_SET_PDEATHSIG` (`setpriv --pdeathsig`): it is tied to the *thread* that started the
//! child, and ends processes that were started in parallel threads as soon as those are done; and it
//! is Linux alone. Why a shell: a program of ours could not be found by the tests of other crates,
//! for which cargo does not build it. The script is fixed and has nothing inserted.
//!
//! A group of its own has a second use: Ctrl-C on a terminal reaches us and not them, so that we can
//! stop them in order.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// `read` ends with the pipe; 0 is one's own group.
const SCRIPT: &str = "read -r word; kill -s KILL 0";

/// The leader of a group of processes.
#[derive(Debug)]
pub(crate) struct Guardian(Child);

impl Guardian {
    /// Starts a group that has nobody else yet.
    pub(crate) fn start() -> io::Result<Self> {
        Command::new("sh")
            .args(["-c", SCRIPT])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
    }

    /// Starts a process in this group.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let group = i32::try_from(self.0.id()).map_err(io::Error::other)?;
        command.process_group(group).spawn()
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // The end of the pipe; then it kills everybody in its group, and itself.
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn whoever_is_in_the_group_ends_with_its_guardian() {
        let guardian = Guardian::start().unwrap();
        let mut sleeper = guardian.spawn(Command::new("sleep").arg("1000")).unwrap();
        assert!(sleeper.try_wait().unwrap().is_none());
        drop(guardian);
        assert_eq!(sleeper.wait().unwrap().signal(), Some(9));
    }
}
