//! Programs that hang, fail and print rubbish.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

/// A program that does this, in a folder of its own.
fn script(folder: &Path, body: &str) -> Program {
    let path = folder.join("program");
    // Written under another name: who is still written to cannot be run.
    let draft = folder.join("draft");
    fs::write(&draft, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(draft, &path).unwrap();
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into()), ("NAMED".into(), "x".into())];
    Program { path, environment, timeout: Duration::from_secs(20) }
}

/// Runs it; one that is still written to by a child of another test is tried again.
async fn run(program: &Program, arguments: &[&str]) -> Result<(), Failure> {
    let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
    for _ in 0..100 {
        match program.run(&arguments).await {
            Err(Failure::NotStarted { source, .. })
                if source.kind() == io::ErrorKind::ExecutableFileBusy =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            ran => return ran,
        }
    }
    panic!("it is always busy");
}

#[tokio::test]
async fn a_program_gets_its_arguments_as_they_are_and_no_more_environment_than_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let body = format!("printf '%s\\n' \"$@\" > {0}; env | sort >> {0}", seen.display());
    let program = script(folder.path(), &body);
    run(&program, &["peer", "$(touch /tmp/x) `id`; 'a' && b", ""]).await.unwrap();
    let seen = fs::read_to_string(seen).unwrap();
    let lines: Vec<_> = seen.lines().collect();
    assert_eq!(&lines[..3], ["peer", "$(touch /tmp/x) `id`; 'a' && b", ""]);
    let names = lines[3..].iter().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    // What a shell sets for itself.
    let names: Vec<_> =
        names.filter(|name| !matches!(*name, "PWD" | "SHLVL" | "_" | "OLDPWD")).collect();
    assert_eq!(names, ["NAMED", "PATH"]);
}

#[tokio::test]
async fn a_program_that_is_not_there_says_what_to_do() {
    let program = Program {
        path: "no-such-liqoctl".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        timeout: Duration::from_secs(5),
    };
    let said = program.run(&["peer".into()]).await.unwrap_err().to_string();
    assert_eq!(said, "no-such-liqoctl was not found");
    let folder = tempfile::tempdir().unwrap();
    let program = Program { path: folder.path().to_owned(), ..program };
    assert!(matches!(program.run(&[]).await, Err(Failure::NotStarted { .. })));
}

#[tokio::test]
async fn a_program_that_fails_has_its_last_words_heard() {
    let folder = tempfile::tempdir().unwrap();
    let body =
        "echo '  fine so far'; printf '\\033[31m ERRO \\033[0m no route\\a\\n\\n' >&2; exit 3";
    let program = script(folder.path(), body);
    let said = run(&program, &["peer"]).await.unwrap_err().to_string();
    assert_eq!(said, "liqoctl peer failed (exit status: 3): ERRO  no route");
}

#[tokio::test]
async fn megabytes_of_rubbish_are_read_and_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let body =
        "head -c 8000000 /dev/urandom; head -c 8000000 /dev/zero >&2; echo 'the end' >&2; exit 1";
    let program = script(folder.path(), body);
    let Err(Failure::Failed { text, .. }) = run(&program, &["peer"]).await else {
        panic!("it failed")
    };
    assert!(text.ends_with("the end") && text.chars().count() <= TEXT_MAX, "{text:?}");
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_what_it_last_said() {
    let folder = tempfile::tempdir().unwrap();
    let id = folder.path().join("id");
    let body = format!("echo 'waiting for Godot'; echo $$ > {}; exec sleep 1000", id.display());
    let program = Program { timeout: Duration::from_secs(1), ..script(folder.path(), &body) };
    let said = run(&program, &["unpeer"]).await.unwrap_err().to_string();
    assert_eq!(said, "liqoctl unpeer was ended after 1s: waiting for Godot");
    let id = fs::read_to_string(id).unwrap();
    assert!(!Path::new("/proc").join(id.trim()).exists(), "it is gone");
}

#[tokio::test]
async fn a_program_ends_with_whoever_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let id = folder.path().join("id");
    let body = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", id.display());
    let program = script(folder.path(), &body);
    let started = async {
        while !id.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        ended = run(&program, &["peer"]) => panic!("{ended:?}"),
        () = started => {}
    }
    let there = Path::new("/proc").join(fs::read_to_string(&id).unwrap().trim()).join("cmdline");
    // What is left is the entry of one that nobody has asked about yet.
    let is_gone = || fs::read(&there).map_or(true, |line| line.is_empty());
    timeout(Duration::from_secs(10), async {
        while !is_gone() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("it is gone");
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    // It holds the outputs of its parent open for longer than anybody waits.
    let body = "sleep 1000 & echo $! > \"$0.id\"; echo 'done' >&2; exit 1";
    let program = script(folder.path(), body);
    let said = run(&program, &["peer"]).await.unwrap_err().to_string();
    let id = fs::read_to_string(folder.path().join("program.id")).unwrap();
    let left = fs::read(Path::new("/proc").join(id.trim()).join("cmdline")).unwrap_or_default();
    let ended = std::process::Command::new("kill").arg(id.trim()).status().unwrap();
    assert!(ended.success() && left.starts_with(b"sleep"), "it was waited for");
    assert!(said.ends_with("done"), "{said}");
}

#[test]
fn what_is_meant_for_a_terminal_is_left_out() {
    assert_eq!(plain("\u{1b}[2K\u{1b}[1;31m✗ no\u{1b}[0m\r\u{7}yes\n"), "✗ no\nyes\n");
    let tail = Tail("one\n\n two \nthree\nfour\n".into());
    assert_eq!(tail.text(), "two; three; four");
    assert_eq!(Tail(vec![0xff, 0, b'\n']).text(), "");
}
