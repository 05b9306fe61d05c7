//! What a machine must have, asked before anything is built, so that a missing tool is named rather
//! than guessed from a linker's error.

use std::ffi::OsString;

use crate::process;
use crate::repo;

/// A tool: any one of several commands will do.
struct Tool {
    name: &'static str,
    needed_for: &'static str,
    install: &'static str,
    commands: &'static [(&'static str, &'static [&'static str])],
    /// A variable by which people name their own.
    variable: Option<&'static str>,
}

const COMPILERS: &str = "Debian, Ubuntu: apt-get install build-essential; \
     Fedora: dnf install gcc gcc-c++; \
     macOS: xcode-select --install";

const TOOLS: [Tool; 4] = [
    Tool {
        name: "rustfmt",
        needed_for: "the format step",
        install: "rustup component add rustfmt",
        commands: &[("cargo", &["fmt", "--version"])],
        variable: None,
    },
    Tool {
        name: "clippy",
        needed_for: "the clippy step",
        install: "rustup component add clippy",
        commands: &[("cargo", &["clippy", "--version"])],
        variable: None,
    },
    Tool {
        name: "a C compiler",
        needed_for: "SQLite, built from source,",
        install: COMPILERS,
        commands: &[("cc", &["--version"]), ("gcc", &["--version"]), ("clang", &["--version"])],
        variable: Some("CC"),
    },
    Tool {
        name: "a C++ compiler",
        needed_for: "libFuzzer, built from source,",
        install: COMPILERS,
        commands: &[("c++", &["--version"]), ("g++", &["--version"]), ("clang++", &["--version"])],
        variable: Some("CXX"),
    },
];

impl Tool {
    fn is_there(&self) -> bool {
        let named: Option<OsString> = self.variable.and_then(repo::variable);
        named.is_some()
            || self
                .commands
                .iter()
                .any(|(program, arguments)| process::works(program.as_ref(), arguments))
    }
}

/// One sentence per tool that is missing: what it is for and how to get it.
pub(crate) fn missing() -> Vec<String> {
    TOOLS
        .iter()
        .filter(|tool| !tool.is_there())
        .map(|tool| {
            format!("{} is missing; {} needs it. {}", tool.name, tool.needed_for, tool.install)
        })
        .collect()
}
