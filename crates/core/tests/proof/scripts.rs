//! Every script in `scripts/` tells its story as the transcript beside it says.
//!
//! `UPDATE=1 cargo test -p sublet-core --test proof` writes the transcripts anew; review the
//! difference as you would review code.

use std::fs;
use std::path::Path;

#[test]
fn every_script_ends_as_its_transcript_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    scripts.sort();
    assert!(scripts.len() >= 10, "the scripts are gone");
    for path in scripts {
        let told = crate::script::transcript(&fs::read_to_string(&path).unwrap());
        let transcript = path.with_extension("out");
        if updating() {
            fs::write(&transcript, &told).unwrap();
        }
        let expected = fs::read_to_string(&transcript).unwrap_or_default();
        assert_same(&path, &told, &expected);
    }
}

#[expect(clippy::disallowed_methods, reason = "a person asks for new transcripts")]
fn updating() -> bool {
    std::env::var("UPDATE").is_ok()
}

#[track_caller]
fn assert_same(path: &Path, told: &str, expected: &str) {
    let differs = told.lines().zip(expected.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or_else(|| told.lines().count().min(expected.lines().count()));
    assert!(
        told == expected,
        "{} differs at line {} of its transcript (UPDATE=1 writes it anew)\n  now: {}\n  was: {}",
        path.display(),
        at + 1,
        told.lines().nth(at).unwrap_or("(nothing)"),
        expected.lines().nth(at).unwrap_or("(nothing)"),
    );
}
