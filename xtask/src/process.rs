//! Child processes: announced before they start, their output passed through as it comes.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What cargo tells a program that it runs about the package of that program.
const ABOUT_THIS_PROGRAM: [&str; 17] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_AUTHORS",
    "CARGO_PKG_DESCRIPTION",
    "CARGO_PKG_HOMEPAGE",
    "CARGO_PKG_LICENSE",
    "CARGO_PKG_LICENSE_FILE",
    "CARGO_PKG_NAME",
    "CARGO_PKG_README",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_RUST_VERSION",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// `cargo` with these arguments, as if a person had typed it. With what cargo has told us about
/// ourselves, the build script of `ring` would believe that something has changed, and half of the
/// dependencies would be built anew whenever cargo and `cargo xtask` take turns.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = program("cargo".as_ref());
    command.args(arguments);
    command
}

/// A program, told nothing of what cargo has told us about ourselves.
pub(crate) fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    for name in ABOUT_THIS_PROGRAM {
        command.env_remove(name);
    }
    command
}

/// Runs a command in a folder, its output going straight to ours; says whether it succeeded.
pub(crate) fn passes(folder: &Path, command: Command) -> Result<bool> {
    status(folder, command).map(|status| status.success())
}

/// As [`passes`], for a command whose status says more than that.
pub(crate) fn status(folder: &Path, mut command: Command) -> Result<ExitStatus> {
    announce(&command);
    command.current_dir(folder).status().with_context(|| starting(&command))
}

/// As [`passes`], and shows every line of its standard output to `see` on the way.
pub(crate) fn passes_seen(
    folder: &Path,
    mut command: Command,
    mut see: impl FnMut(&str),
) -> Result<bool> {
    announce(&command);
    let mut child = command
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| starting(&command))?;
    let output = child.stdout.take().context("the child's output was piped")?;
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        see(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(child.wait()?.success())
}

/// The standard output of a command that is asked for information; its failure is an error.
pub(crate) fn answer(folder: &Path, mut command: Command) -> Result<String> {
    let output = command
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| starting(&command))?;
    anyhow::ensure!(output.status.success(), "{} ended with {}", shown(&command), output.status);
    String::from_utf8(output.stdout).with_context(|| format!("the output of {}", shown(&command)))
}

/// Whether a command can be started and succeeds, without a word on the terminal.
pub(crate) fn works(program: &std::ffi::OsStr, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Does something and says how long it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "the one clock of xtask: how long a step took")]
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

fn announce(command: &Command) {
    println!("$ {}", shown(command));
}

fn starting(command: &Command) -> String {
    format!("starting `{}`", shown(command))
}

/// The command as a person would type it, the variables that we set included.
fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.display(), quoted(&value?.to_string_lossy())))
    });
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| quoted(&word.to_string_lossy()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = cargo(["doc", "--no-deps"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(shown(&command), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn a_program_that_does_not_exist_does_not_work() {
        assert!(!works("no-such-program-anywhere".as_ref(), &[]));
    }
}
