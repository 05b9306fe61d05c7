//! Where one build is done: Go, in a module of ours, one program at a time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::build::{BuildError, failed, setting};
use super::module::{linker_flags, liqo_at_version, module};
use super::{Kit, Places, Program};
use crate::guardian::Guardian;
use crate::process::tail;
use crate::wait::pause;

/// How often a build is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Something that Go is to do for a program.
struct Work<'a> {
    program: Program,
    command: Command,
    /// Where its answer goes, if that is wanted apart from what else it says.
    answer: Option<&'a Path>,
}

/// The folders of a build, all in one file system, so that a rename is enough.
pub(super) struct Workshop<'a> {
    /// The program that builds.
    go: &'a str,
    /// Modules, each in a folder of its own, and what is made in them, in another.
    scratch: PathBuf,
    /// Go's own cache.
    cache: PathBuf,
    /// Where programs go.
    results: PathBuf,
}

impl<'a> Workshop<'a> {
    pub(super) fn open(places: &Places, kit: Kit, go: &'a str) -> Result<Self, BuildError> {
        let inside = |name| places.cache().join(name);
        let (scratch, cache, results) = (inside("build"), inside("go-build"), places.built(kit));
        let workshop = Self { go, scratch, cache, results };
        for folder in [&workshop.scratch, &workshop.cache, &workshop.results] {
            make(folder)?;
        }
        Ok(workshop)
    }

    /// Builds one program; `tick` is called while it does.
    pub(super) fn build(&self, program: Program, tick: &mut dyn FnMut()) -> Result<(), BuildError> {
        let (name, made) = (program.name(), self.scratch.join("made"));
        make(&made)?;
        let unfinished = made.join(name);
        if program == Program::LiqoChart {
            let answer = made.join("module.json");
            let command = self.download(program)?;
            self.run(Work { program, command, answer: Some(&answer) }, tick)?;
            copy(&source_folder(&answer)?.join("deployments").join("liqo"), &unfinished)?;
        } else {
            let command = self.command(program, &unfinished)?;
            self.run(Work { program, command, answer: None }, tick)?;
        }
        let result = self.results.join(name);
        fs::rename(&unfinished, &result)
            .map_err(failed(format!("{} not put in its place", result.display())))
    }

    /// Runs Go to its end.
    fn run(&self, work: Work<'_>, tick: &mut dyn FnMut()) -> Result<(), BuildError> {
        let Work { program, mut command, answer } = work;
        let log = self.scratch.join("made").join(format!("{}.log", program.name()));
        let create = |path: &Path| {
            File::create(path).map_err(failed(format!("{} not made", path.display())))
        };
        let said = create(&log)?;
        let output = match answer {
            Some(path) => create(path)?,
            None => said.try_clone().map_err(failed("a handle was not doubled"))?,
        };
        command.stdin(Stdio::null()).stdout(output).stderr(said);
        // Go starts many compilers; all of them end with this process.
        let guardian = Guardian::start().map_err(failed("sh was not started"))?;
        let mut child = guardian.spawn(&mut command).map_err(failed("go was not started"))?;
        let status = loop {
            tick();
            match child.try_wait().map_err(failed("go was lost"))? {
                Some(status) => break status,
                None => pause(LOOK_AGAIN),
            }
        };
        if status.success() {
            return Ok(());
        }
        // Asked for JSON, it says in JSON what went wrong.
        let log = answer.map_or(log, Path::to_owned);
        let said = tail(&log);
        Err(BuildError::Failed { program, status, log, said })
    }

    /// The command that builds a program.
    fn command(&self, program: Program, output: &Path) -> Result<Command, BuildError> {
        let mut command = self.go_in_module(program)?;
        command.args(["build", "-mod=mod", "-trimpath", "-ldflags"]).arg(linker_flags(program));
        command.arg("-o").arg(output).arg(program.package());
        Ok(command)
    }

    /// The command that fetches Liqo's source and says where it is.
    fn download(&self, program: Program) -> Result<Command, BuildError> {
        let mut command = self.go_in_module(program)?;
        command.args(["mod", "download", "-json"]).arg(liqo_at_version());
        Ok(command)
    }

    /// Go in the folder of a program's module.
    fn go_in_module(&self, program: Program) -> Result<Command, BuildError> {
        let module = module(program);
        let folder = self.scratch.join("modules").join(module.name);
        make(&folder)?;
        let path = folder.join("go.mod");
        if !path.exists() {
            // Go completes it; what it adds is good for the next program of the same module.
            fs::write(&path, module.text)
                .map_err(failed(format!("{} not made", path.display())))?;
        }
        let mut command = Command::new(self.go);
        command.current_dir(&folder).env("GOCACHE", &self.cache);
        command.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GO111MODULE", "on");
        if let Some(unknown) = module.unknown_sum {
            // Beside what this machine has set, which the variable would replace.
            let set = setting(self.go, "GONOSUMDB").filter(|set| !set.is_empty());
            command.env(
                "GONOSUMDB",
                set.map_or_else(|| unknown.to_owned(), |set| format!("{set},{unknown}")),
            );
        }
        Ok(command)
    }

    /// Removes what only the build needed.
    pub(super) fn close(self) -> Result<(), BuildError> {
        for folder in [self.scratch, self.cache] {
            fs::remove_dir_all(&folder)
                .map_err(failed(format!("{} not removed", folder.display())))?;
        }
        Ok(())
    }
}

fn make(folder: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(folder).map_err(failed(format!("{} not made", folder.display())))
}

/// Where a module's source is, as `go mod download -json` answered.
fn source_folder(answer: &Path) -> Result<PathBuf, BuildError> {
    let reading = || failed(format!("{} not understood", answer.display()));
    let text = fs::read(answer).map_err(reading())?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| reading()(error.into()))?;
    let folder = value["Dir"].as_str().map(PathBuf::from);
    folder.ok_or_else(|| reading()(io::Error::other("no folder is named")))
}

/// Copies a folder, of which there may be half a copy from before.
fn copy(from: &Path, to: &Path) -> Result<(), BuildError> {
    let copying = || failed(format!("{} not copied", from.display()));
    make(to)?;
    for entry in fs::read_dir(from).map_err(copying())? {
        let entry = entry.map_err(copying())?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(copying())?.is_dir() {
            copy(&from, &to)?;
        } else {
            // Not `fs::copy`: the source is read-only, and what is half there is written again.
            let text = fs::read(&from).map_err(copying())?;
            fs::write(&to, text).map_err(copying())?;
        }
    }
    Ok(())
}
