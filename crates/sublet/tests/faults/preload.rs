//! The libraries that stand between the process and the system, compiled once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

type Library = OnceLock<(tempfile::TempDir, PathBuf)>;

/// Lets writes and syncs fail; see the file itself for its settings.
pub(crate) fn failing_disk() -> &'static Path {
    static LIBRARY: Library = OnceLock::new();
    compiled(&LIBRARY, "../log/tests/faults/shim.c")
}

/// Moves the wall clock; see the file itself.
pub(crate) fn wrong_clock() -> &'static Path {
    static LIBRARY: Library = OnceLock::new();
    compiled(&LIBRARY, "tests/faults/clock.c")
}

fn compiled(library: &'static Library, source: &str) -> &'static Path {
    let (_, library) = library.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("preload.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"];
        let compiled = Command::new("cc").args(flags).arg(&library).arg(&source).status();
        assert!(compiled.unwrap().success(), "this needs a C compiler, as SQLite does");
        (folder, library)
    });
    library
}
