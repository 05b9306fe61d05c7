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
use crate::port::Port;

/// How much of a log is shown when something goes wrong.
const LINES_SHOWN: usize = 15;

/// What to run.
#[derive(Clone, Debug)]
pub struct Recipe {
    program: PathBuf,
    arguments: Vec<String>,
    port: Option<String>,
    variables: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

impl Recipe {
    /// This program, without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let (arguments, variables) = (Vec::new(), Vec::new());
        Self { program: program.into(), arguments, port: None, variables, folder: None }
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

    /// With an argument that begins so and ends with the port to listen on: at each start another one,
    /// so that one which ended because its port was taken is not started in vain.
    #[must_use]
    pub fn port(mut self, before: impl Into<String>) -> Self {
        self.port = Some(before.into());
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

    fn command(&self, port: Option<&Port>, log: File) -> std::io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if let (Some(before), Some(port)) = (&self.port, port) {
            command.arg(format!("{before}{}", port.number()));
        }
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
    life: Mutex<Life>,
}

/// What there is of it while it runs. The port stays with one that has ended until another one is found.
#[derive(Debug, Default)]
struct Life {
    child: Option<Child>,
    port: Option<Port>,
}

impl Process {
    /// A process that does not run yet, with its log in `folder`.
    pub(crate) fn new(name: &str, recipe: Recipe, folder: &Path, guardian: Arc<Guardian>) -> Self {
        let log = folder.join(format!("{name}.log"));
        Self { name: name.to_owned(), recipe, log, guardian, life: Mutex::default() }
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
        let mut life = self.life();
        if running(&mut life.child).is_some() {
            return Ok(());
        }
        if self.recipe.port.is_some() {
            life.port = Some(Port::reserve()?);
        }
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(during(|| format!("making {}", self.log.display())))?;
        let starting = || format!("starting {}", self.recipe.program.display());
        let command = self.recipe.command(life.port.as_ref(), log);
        let mut command = command.map_err(during(starting))?;
        life.child = Some(self.guardian.spawn(&mut command).map_err(during(starting))?);
        Ok(())
    }

    /// Ends it as `kill -9` does, and returns when it is gone. Does nothing to one that is gone.
    pub fn kill(&self) {
        if let Some(mut child) = self.life().child.take() {
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
        let mut life = self.life();
        let pid = running(&mut life.child).and_then(|child| i32::try_from(child.id()).ok());
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
        running(&mut self.life().child).map(|child| child.id())
    }

    /// The port that it was given when it was started last, if it wants one.
    pub(crate) fn port(&self) -> Option<u16> {
        self.life().port.as_ref().map(Port::number)
    }

    /// How it ended, if it did so by itself or by a signal that was sent to it.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.life().child.as_mut().and_then(|child| child.try_wait().ok().flatten())
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

    fn life(&self) -> std::sync::MutexGuard<'_, Life> {
        // Nothing in here can be half-done, so what a panicking thread left is good.
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn one_that_could_not_have_its_port_gets_another_one() {
        let home = tempfile::tempdir().unwrap();
        let recipe = Recipe::new("sh").args(["-c", "echo $1; exit 1", "it"]).port("--port=");
        let guardian = Arc::new(Guardian::start().unwrap());
        let process = Process::new("it", recipe, home.path(), guardian);
        let starts = [(); 2].map(|()| {
            process.start().unwrap();
            ends(&process);
            format!("--port={}", process.port().unwrap())
        });
        assert_ne!(starts[0], starts[1]);
        assert_eq!(process.log_tail(), starts.join("\n"));
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
