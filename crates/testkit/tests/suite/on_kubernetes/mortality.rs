//! What happens to the processes of a test that is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use sublet_testkit::wait::{PATIENCE, START_PATIENCE};
use sublet_testkit::{Cluster, Part, Setup, wait_for};

/// Where the victim writes what it has started; without it, the test is the one who kills.
const VICTIM: &str = "SUBLET_TESTKIT_VICTIM";
const ITSELF: &str =
    "on_kubernetes::mortality::the_processes_of_a_test_that_is_killed_with_sigkill_are_gone";

/// Killed, should this test fail itself.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn the_processes_of_a_test_that_is_killed_with_sigkill_are_gone() {
    #[expect(clippy::disallowed_methods, reason = "the test starts itself in another role")]
    if let Some(path) = std::env::var_os(VICTIM) {
        return start_and_wait(Path::new(&path));
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("started.json");
    let command = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", ITSELF])
        .env(VICTIM, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let mut victim = Victim(command.unwrap());
    let started = wait_for("the victim", START_PATIENCE, || {
        assert!(victim.0.try_wait().unwrap().is_none(), "the victim ended by itself");
        serde_json::from_slice::<Value>(&fs::read(&path).ok()?).ok()
    });
    let started = started.unwrap();
    let pids: Vec<_> = started["pids"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| is_there(pid)));
    drop(victim);
    wait_for("the end of its processes", PATIENCE, || {
        (!pids.iter().any(|pid| is_there(pid))).then_some(())
    })
    .unwrap();
    // Killed, it could not tidy up.
    fs::remove_dir_all(PathBuf::from(started["folder"].as_str().unwrap())).unwrap();
}

/// The other role: starts a cluster, in a thread that ends, says so, and waits to be killed.
fn start_and_wait(path: &Path) {
    let setup = Setup::api("victim").with(Part::Kwok);
    let cluster = thread::spawn(|| Cluster::start(setup)).join().unwrap().unwrap();
    let parts = [Part::Etcd, Part::ApiServer, Part::Kwok];
    let pids = parts.map(|part| cluster.part(part).pid().unwrap());
    let started = json!({ "pids": pids, "folder": cluster.folder() });
    let whole = path.with_extension("whole");
    fs::write(&whole, started.to_string()).unwrap();
    fs::rename(whole, path).unwrap();
    // The end of the pipe would be the end of whoever kills.
    drop(std::io::stdin().read_line(&mut String::new()));
}

/// Whether a process is there and not only its name, which remains until somebody asks for it.
fn is_there(pid: &str) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}
