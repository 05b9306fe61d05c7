//! A process of its own: this test program, started again with a task.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_log::embedded::Options;
use sublet_log::snapshot::take;
use sublet_log::{AppendError, Checksum, Embedded, Log, Record};

use crate::scene::{FOREVER, contents, record};

/// Tells the process that it is a child, and what to do in which folder.
const TASK: &str = "SUBLET_LOG_CHILD";
/// What a child says among its complaints once its log is open.
pub(crate) const OPENED: &str = "opened";

/// What a child does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// Open the folder, say what came of it, end.
    Open,
    /// Append until killed.
    Endless,
    /// Append some, with a snapshot and a compaction in between.
    Some,
    /// The same, and once more on what is found when the folder is opened again.
    Again,
    /// Append until the disk is full, then see what is true.
    Fill,
}

impl Task {
    const ALL: [Self; 5] = [Self::Open, Self::Endless, Self::Some, Self::Again, Self::Fill];

    fn name(self) -> String {
        format!("{self:?}")
    }
}

/// A command that runs `task` on `folder`; what it says comes through its output.
pub(crate) fn command(task: Task, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::a_child_does_its_task", "--nocapture", "--test-threads=1"]);
    command.env(TASK, format!("{} {}", task.name(), folder.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_child_does_its_task() {
    #[expect(clippy::disallowed_methods, reason = "how the parent test tells its child what to do")]
    let Ok(task) = std::env::var(TASK) else { return };
    let (task, folder) = task.split_once(' ').unwrap();
    let task = Task::ALL.into_iter().find(|known| known.name() == task).unwrap();
    let folder = PathBuf::from(folder);
    match task {
        Task::Open => match Embedded::open(&folder) {
            Ok(_) => say("opened"),
            Err(error) => say(&format!("refused {error}")),
        },
        Task::Endless => endless(&folder),
        Task::Some if some(&folder) => say("done"),
        Task::Some => {}
        Task::Again => again(&folder),
        Task::Fill => fill(&folder),
    }
}

/// One line to the parent, in one write.
fn say(line: &str) {
    let mut out = stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

/// What a child said was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) revision: Revision,
    pub(crate) checksum: Checksum,
}

impl Ack {
    fn of(record: &Record) -> Self {
        Self { revision: record.revision(), checksum: record.checksum() }
    }

    /// From a line of a child's output.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (revision, checksum) = line.strip_prefix("ack ")?.split_once(' ')?;
        Some(Self {
            revision: Revision(revision.parse().ok()?),
            checksum: Checksum::parse(checksum)?,
        })
    }
}

fn append(log: &dyn Log) -> Result<(), AppendError> {
    let head = log.head().unwrap();
    let record = record(&head, head.revision.0 + 1);
    log.append(&record)?;
    say(&format!("ack {} {}", record.revision(), record.checksum()));
    Ok(())
}

fn endless(folder: &Path) {
    // Checkpoints are frequent, so that kills hit them too: those that appends make, and those that
    // are made beside them.
    let (checkpoint_bytes, overdue_bytes, room_bytes) = (15_000, 60_000, 100_000);
    let options = Options { checkpoint_bytes, overdue_bytes, room_bytes };
    let log = Embedded::open_with(folder, options).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| tend_for_ever(&log));
        append_for_ever(&log);
    });
}

fn tend_for_ever(log: &dyn Log) {
    for round in 0u64.. {
        // Now and then it does not come to it, and an append has to.
        let behind = if round % 64 < 32 { 5 } else { 50 };
        let next = Revision(log.head().unwrap().revision.0 + behind);
        log.follow(next, 1, Duration::from_secs(1)).unwrap();
        log.tend().unwrap();
    }
}

fn append_for_ever(log: &dyn Log) {
    for round in 1u64.. {
        append(log).unwrap();
        if round.is_multiple_of(17) {
            take(log).unwrap();
            let before = log.read(log.head().unwrap().revision, 1).unwrap()[0].time();
            let keep = before.as_millis().saturating_sub(60_000);
            log.compact(sublet_core::time::Time::from_millis(keep)).unwrap();
        }
    }
}

/// Little of everything: each write is one that may fail.
fn small() -> Options {
    let (checkpoint_bytes, overdue_bytes, room_bytes) = (10_000, 40_000, 12_000);
    Options { checkpoint_bytes, overdue_bytes, room_bytes }
}

/// Says `failed` where it fails, and `acknowledged after failure` if the log should ever do so; true
/// if nothing failed.
fn some(folder: &Path) -> bool {
    let log = match Embedded::open_with(folder, small()) {
        Ok(log) => log,
        Err(error) => {
            say(&format!("failed to open: {error:?}"));
            return false;
        }
    };
    eprintln!("{OPENED}");
    for round in 0..10 {
        if let Err(error) = append(&log) {
            return failed(&log, &format!("{error:?}"));
        }
        if [2, 9].contains(&round)
            && let Err(error) = log.tend()
        {
            return failed(&log, &format!("{error:?}"));
        }
        if round == 4 {
            let kept = take(&log).map_err(|e| format!("{e:?}"));
            let kept = kept.and_then(|_| log.compact(FOREVER).map_err(|e| format!("{e:?}")));
            if let Err(error) = kept {
                return failed(&log, &error);
            }
        }
    }
    true
}

fn again(folder: &Path) {
    let all = some(folder);
    let log = match Embedded::open_with(folder, small()) {
        Ok(log) => log,
        Err(error) => return say(&format!("failed to open again: {error:?}")),
    };
    match (0..3).try_for_each(|_| append(&log)) {
        Ok(()) if all => say("done"),
        Ok(()) => {}
        Err(error) => {
            failed(&log, &format!("{error:?}"));
        }
    }
}

fn failed(log: &dyn Log, error: &str) -> bool {
    say(&format!("failed: {error}"));
    for _ in 0..3 {
        match append(log) {
            Err(AppendError::Fatal(_)) => {}
            other => say(&format!("acknowledged after failure: {other:?}")),
        }
    }
    false
}

/// Fills a small disk twice; what was acknowledged before is there while it is full, and when
/// there is room again the log goes on.
fn fill(folder: &Path) {
    let ballast = folder.join("ballast");
    let store = folder.join("store");
    std::fs::write(&ballast, vec![1; 600_000]).unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..2 {
        let log = Embedded::open(&store).unwrap();
        let error = loop {
            let head = log.head().unwrap();
            let next = record(&head, head.revision.0 + 1);
            match log.append(&next) {
                Ok(()) => acknowledged.push(Ack::of(&next)),
                Err(error) => break error,
            }
            assert!(acknowledged.len() < 100_000, "the disk is never full");
        };
        assert!(matches!(error, AppendError::Fatal(_)), "{error:?}");
        assert!(matches!(append(&log), Err(AppendError::Fatal(_))), "acknowledged when full");
        drop(log);
        let log = Embedded::open(&store).unwrap_or_else(|e| panic!("round {round}: {e:?}"));
        let kept: Vec<_> = contents(&log).records.iter().map(Ack::of).collect();
        assert_eq!(kept[..acknowledged.len()], acknowledged[..], "an acknowledged record is lost");
        assert!(kept.len() <= acknowledged.len() + 1, "a record from nowhere");
        acknowledged = kept;
        drop(log);
        drop(std::fs::remove_file(&ballast));
    }
    say(&format!("filled twice with {}", acknowledged.len()));
}
