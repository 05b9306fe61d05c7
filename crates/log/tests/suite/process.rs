//! Other processes: a second one on the same folder, one that is killed, one whose disk is full.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use sublet_core::id::Revision;
use sublet_log::backup::backup;
use sublet_log::embedded::Options;
use sublet_log::snapshot::{load, take};
use sublet_log::{AppendError, Embedded, Log, fsck};

use crate::child::{Ack, Task, command};
use crate::scene::{FOREVER, contents, grow, quick_folder, record};

#[test]
fn a_second_process_is_refused_and_told_who_is_there() {
    let folder = quick_folder();
    let log = Embedded::open(folder.path()).unwrap();
    let output = command(Task::Open, folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let refused = said.lines().find(|line| line.starts_with("refused ")).expect("refused");
    assert!(refused.contains(&folder.path().display().to_string()), "{refused}");
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
    grow(&log, 1);
    drop(log);
    let output = command(Task::Open, folder.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("opened"));
}

#[test]
fn a_log_in_use_is_looked_at_beside_its_writer() {
    let folder = quick_folder();
    let log = Embedded::open(folder.path()).unwrap();
    let first = grow(&log, 5);
    let look = Embedded::look(folder.path()).unwrap();
    assert_eq!(look.head().unwrap(), log.head().unwrap());
    assert!(look.is_beside_its_writer() && !log.is_beside_its_writer());
    let next = record(&log.head().unwrap(), 6);
    assert!(matches!(look.append(&next), Err(AppendError::Fatal(_))));

    grow(&log, 5);
    take(&log).unwrap();
    log.compact(FOREVER).unwrap();
    assert_eq!(look.read(Revision(1), 100).unwrap(), first, "the moment moved");
    assert_eq!(fsck::check(&look).unwrap().findings, []);
    let mut copy = Vec::new();
    assert_eq!(backup(&look, &mut copy).unwrap().head, first.last().unwrap().head());

    look.look_again().unwrap();
    assert_eq!(contents(&look), contents(&log));
    assert_eq!(fsck::check(&look).unwrap().findings, []);
    drop(look);
    grow(&log, 1);
    drop(log);
    let alone = Embedded::look(folder.path()).unwrap();
    alone.look_again().unwrap();
    assert_eq!(alone.head().unwrap().revision, Revision(11));
}

#[test]
fn a_journal_that_somebody_looks_at_is_copied_when_the_look_is_over() {
    let folder = quick_folder();
    let (checkpoint_bytes, overdue_bytes, room_bytes) = (50_000, 100_000, 0);
    let options = Options { checkpoint_bytes, overdue_bytes, room_bytes };
    let log = Embedded::open_with(folder.path(), options).unwrap();
    let journal = || folder.path().join("sublet.db-wal").metadata().unwrap().len();
    grow(&log, 3);
    let look = Embedded::look(folder.path()).unwrap();
    grow(&log, 15);
    assert!(!log.tend().unwrap(), "all of it was copied under the eyes of the reader");
    // Appends go on, also where they would copy it themselves.
    grow(&log, 30);
    let grown = journal();
    look.rest().unwrap();
    assert!(log.tend().unwrap(), "it was forgotten that there is something to copy");
    grow(&log, 5);
    assert_eq!(journal(), grown, "the journal did not begin anew");
    look.look_again().unwrap();
    assert_eq!(contents(&look), contents(&log));
}

#[test]
fn a_log_that_is_tended_has_a_short_journal_and_loses_nothing() {
    let folder = quick_folder();
    let options = Options { checkpoint_bytes: 100_000, room_bytes: 0, ..Options::default() };
    let log = Embedded::open_with(folder.path(), options).unwrap();
    let journal = || folder.path().join("sublet.db-wal").metadata().unwrap().len();
    grow(&log, 4);
    log.tend().unwrap();
    let untended = journal();
    grow(&log, 1);
    assert!(journal() > untended, "it was copied although it was not due");
    let mut longest = 0;
    for _ in 0..20 {
        grow(&log, 15);
        longest = longest.max(journal());
        log.tend().unwrap();
    }
    assert!(longest < 3 * 100_000, "the journal grew to {longest}");
    let before = contents(&log);
    drop(log);
    assert_eq!(contents(&Embedded::open(folder.path()).unwrap()), before);
}

#[test]
fn a_log_has_room_in_its_journal_from_the_start_and_loses_nothing_by_it() {
    let folder = quick_folder();
    let path = folder.path().join("sublet.db-wal");
    let room = Options::default().room_bytes as u64;
    let log = Embedded::open(folder.path()).unwrap();
    assert_eq!(path.metadata().unwrap().len(), room);
    grow(&log, 20);
    let before = contents(&log);
    drop(log);
    // Whatever stands in the room is no part of the log.
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 100_000..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let log = Embedded::open(folder.path()).unwrap();
    assert_eq!(contents(&log), before);
    assert!(!log.tend().unwrap(), "room was taken for a journal that has to be copied");
    let more = grow(&log, 20);
    assert_eq!(path.metadata().unwrap().len(), room);
    drop(log);
    assert_eq!(Embedded::open(folder.path()).unwrap().head().unwrap(), more[19].head());
}

/// Every acknowledged record that is still kept is there unchanged, and at most one more.
pub(crate) fn check_truth(folder: &Path, acknowledged: &[Ack], what: &str) -> Ack {
    let log = Embedded::open(folder).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let head = log.head().unwrap();
    let last = acknowledged.last().map_or(0, |ack| ack.revision.0);
    assert!((last..=last + 1).contains(&head.revision.0), "{what}: {last}, not {head:?}");
    let oldest = sublet_log::dump::oldest(&log).unwrap();
    for ack in acknowledged.iter().filter(|ack| ack.revision >= oldest) {
        let kept = log.read(ack.revision, 1).unwrap();
        assert_eq!(kept[0].checksum(), ack.checksum, "{what}: {}", ack.revision);
    }
    assert_eq!(load(&log).unwrap().head, head, "{what}");
    assert_eq!(fsck::check(&log).unwrap().findings, [], "{what}");
    Ack { revision: head.revision, checksum: head.checksum }
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<Ack> = Vec::new();
    for cycle in 0..20u64 {
        let mut child = command(Task::Endless, folder.path()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let enough = 1 + cycle * 7 % 45;
        let mut seen = 0;
        let mut line = String::new();
        while seen < enough && out.read_line(&mut line).unwrap() > 0 {
            if let Some(ack) = Ack::parse(line.trim_end()) {
                acknowledged.push(ack);
                seen += 1;
            }
            line.clear();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(seen == enough, "cycle {cycle}: it ended by itself: {rest}");
        // A line that was cut off was not said.
        let whole = rest.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        acknowledged.extend(whole.filter_map(|line| Ack::parse(line.trim_end())));
        let head = check_truth(folder.path(), &acknowledged, &format!("cycle {cycle}"));
        if acknowledged.last() != Some(&head) {
            acknowledged.push(head);
        }
    }
    assert!(acknowledged.len() > 400, "{}", acknowledged.len());
}

#[test]
fn a_full_disk_ends_acknowledgement_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let child = command(Task::Fill, folder.path());
    let small_disk = "mount -t tmpfs -o size=3m none \"$1\" && shift && exec \"$@\"";
    let run = |flags: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args([flags, "sh", "-c", small_disk, "sh"]).arg(folder.path());
        unshare.arg(child.get_program()).args(child.get_args());
        for (name, value) in child.get_envs() {
            unshare.env(name, value.unwrap());
        }
        unshare.stdin(Stdio::null()).output().unwrap()
    };
    // Without the right to mount, a user namespace gives it.
    let mut output = run("-m");
    if String::from_utf8_lossy(&output.stderr).contains("unshare") {
        output = run("-rm");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("filled twice"), "{said}\n{complaint}");
}

/// A process that is started often, and never writes enough for a checkpoint by itself.
#[test]
fn the_journal_stays_short_however_often_a_log_is_opened() {
    let folder = quick_folder();
    let options = Options { overdue_bytes: 60_000, room_bytes: 0, ..Options::default() };
    let mut longest = 0;
    for _ in 0..60 {
        let log = Embedded::open_with(folder.path(), options).unwrap();
        grow(&log, 2);
        drop(log);
        longest =
            std::fs::metadata(folder.path().join("sublet.db-wal")).unwrap().len().max(longest);
    }
    // What is there when a checkpoint becomes due, and what is written until it is made.
    assert!(longest < 3 * 60_000, "the journal grew to {longest} bytes");
}
