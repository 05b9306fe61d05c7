//! Runs the built binary with a home of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Somebody with an empty home.
pub(crate) struct Person {
    home: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Person {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    /// A path in the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sublet"));
        command.args(words).current_dir(self.home.path()).stdin(Stdio::null());
        command.env_clear().env("HOME", self.home.path()).env("USER", "anna");
        // What a killed process leaves behind goes with the home.
        command.env("TMPDIR", self.home.path());
        command
    }

    /// Runs a command, its words separated by spaces.
    pub(crate) fn run(&self, line: &str) -> Ended {
        let words: Vec<_> = line.split(' ').collect();
        let output = self.command(&words).output().unwrap();
        Ended {
            status: output.status.code().expect("no signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that must succeed, and gives what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, line: &str) -> String {
        let ended = self.run(line);
        assert_eq!(ended.status, 0, "{line}: {ended:?}");
        assert_eq!(ended.err, "", "{line} complained");
        ended.out
    }

    /// Runs a command that must end with this status and say something of this kind.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str, status: i32, saying: &str) {
        let ended = self.run(line);
        assert_eq!(ended.status, status, "{line}: {ended:?}");
        assert!(ended.err.contains(saying), "{line}: {:?} lacks {saying:?}", ended.err);
        assert_eq!(ended.out, "", "{line} printed a result although it failed");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

/// The permissions of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
