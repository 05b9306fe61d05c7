//! One process of a cluster: how it is started, so that it can be killed and started again the same
//! way; its log; its end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

use crate::error::{Error, during};
use crate::guardian::Guardian;

/// How much of a log is shown when something goes wrong.
const LINES_SHOWN: usize = 15;

/// What to run.
#[derive(Clone, Debug)]
pub struct Recipe {
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

impl Recipe {
    /// This program, without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), arguments: Vec::new(), variables: Vec::new(), folder: None }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// In this folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    fn command(&self, log: File) -> std::io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }
}

/// A process that is ours: killed when it is dropped, and by its guardian if nothing is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    recipe: Recipe,
    log: PathBuf,
    guardian: Arc<Guardian>,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// A process that does not run yet, with its log in `folder`.
    pub(crate) fn new(name: &str, recipe: Recipe, folder: &Path, guardian: Arc<Guardian>) -> Self {
        let log = folder.join(format!("{name}.log"));
        Self { name: name.to_owned(), recipe, log, guardian, child: Mutex::new(None) }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its output goes; a second start appends to it.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The end of its output.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// Starts it, if it does not run.
    pub fn start(&self) -> Result<(), Error> {
        let mut child = self.child();
        if running(&mut child).is_some() {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(during(|| format!("making {}", self.log.display())))?;
        let starting = || format!("starting {}", self.recipe.program.display());
        let mut command = self.recipe.command(log).map_err(during(starting))?;
        *child = Some(self.guardian.spawn(&mut command).map_err(during(starting))?);
        Ok(())
    }

    /// Ends it as `kill -9` does, and returns when it is gone. Does nothing to one that is gone.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // It fails only for one that has ended already.
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Kills it and starts it again, the same way.
    pub fn restart(&self) -> Result<(), Error> {
        self.kill();
        self.start()
    }

    /// Sends it a signal: `TERM` to end in its own way, `STOP` and `CONT` to freeze and thaw it.
    pub fn signal(&self, signal: Signal) -> Result<(), Error> {
        let mut child = self.child();
        let pid = running(&mut child).and_then(|child| i32::try_from(child.id()).ok());
        let pid = pid.and_then(Pid::from_raw);
        let sent = pid.map(|pid| kill_process(pid, signal));
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                Err(during(|| format!("signalling {}", self.name))(std::io::Error::from(error)))
            }
            None => Err(Error::NotRunning { process: self.name.clone() }),
        }
    }

    /// Its number, while it runs.
    pub fn pid(&self) -> Option<u32> {
        running(&mut self.child()).map(|child| child.id())
    }

    /// How it ended, if it did so by itself or by a signal that was sent to it.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child().as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// An error that shows the end of the log, if it has ended.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        match self.ended() {
            None => Ok(()),
            Some(status) => {
                let (process, log) = (self.name.clone(), self.log.clone());
                Err(Error::Ended { process, status, log, tail: self.log_tail() })
            }
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        // Nothing in here can be half-done, so what a panicking thread left is good.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn running(child: &mut Option<Child>) -> Option<&mut Child> {
    let child = child.as_mut()?;
    matches!(child.try_wait(), Ok(None)).then_some(child)
}

/// The last lines of a file; nothing if it cannot be read.
pub(crate) fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(folder: &Path, script: &str) -> Process {
        let recipe = Recipe::new("sh").args(["-c", script]);
        Process::new("it", recipe, folder, Arc::new(Guardian::start().unwrap()))
    }

    fn ends(process: &Process) -> ExitStatus {
        let limit = std::time::Duration::from_mins(1);
        crate::wait::wait_for("its end", limit, || process.ended()).unwrap()
    }

    #[test]
    fn it_is_started_again_the_same_way_and_its_log_goes_on() {
        let home = tempfile::tempdir().unwrap();
        let process = process(home.path(), "echo here; exit 3");
        process.start().unwrap();
        assert_eq!(ends(&process).code(), Some(3));
        process.restart().unwrap();
        assert_eq!(ends(&process).code(), Some(3));
        assert_eq!(process.log_tail(), "here\nhere");
    }

    #[test]
    fn one_that_ended_by_itself_is_an_error_with_its_last_words() {
        let home = tempfile::tempdir().unwrap();
        let process = process(home.path(), "echo no bread; exit 1");
        process.start().unwrap();
        ends(&process);
        assert!(process.check_alive().unwrap_err().to_string().contains("no bread"));
        assert!(process.signal(Signal::TERM).is_err());
    }

    #[test]
    fn a_signal_reaches_it() {
        use std::os::unix::process::ExitStatusExt;
        let home = tempfile::tempdir().unwrap();
        let process = process(home.path(), "sleep 1000");
        process.start().unwrap();
        process.signal(Signal::TERM).unwrap();
        assert_eq!(ends(&process).signal(), Some(15));
    }
}
