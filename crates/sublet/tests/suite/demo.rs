//! The README's first command, as a new user runs it.

use std::process::Command;

#[test]
fn the_demo_plays_to_its_end_and_checks_itself() {
    let output = Command::new(env!("CARGO_BIN_EXE_sublet")).args(["demo", "--fast"]).output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for line in ["15 were granted", "Nothing is lost: 20 reservations", "every sum agrees"] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
}

#[test]
fn a_wrong_flag_is_an_error_that_names_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_sublet")).args(["demo", "--loud"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--loud"));
}
