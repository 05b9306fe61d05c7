//! The journal's file before anything relies on it: what is in it is durable, and there is room
//! after it.
//!
//! A sync of a file that has grown writes where its new blocks are as well as the blocks, which takes
//! about twice as long; one that is written over in place does not. A journal is written over from its
//! beginning after each checkpoint, but most brokers need days until the first. So it gets its length
//! at the start: zeros, which `SQLite` takes for the end of the journal, as it does with what an
//! earlier round left there. After a start all of it is written again: see [`make_ready`].

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::JOURNAL;

/// How much of the journal is written again at once.
const REWRITE_BYTES: usize = 1024 * 1024;
/// How much room is made at once: a page. Linux keeps what was first written at once together in
/// memory, and each later write to a part of that looks at all of it.
const PAGE_BYTES: usize = 4096;
/// Room is made only where so many times as much is free: it is for speed alone, and on a disk that is
/// nearly full it would take what the records need.
const FREE_TIMES: u64 = 16;

/// `SQLite`'s header of a journal, and of each frame in it.
const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Where both name the round of writing that they belong to, and the first the size of a page.
const HEADER_ROUND: std::ops::Range<usize> = 16..24;
const FRAME_ROUND: std::ops::Range<usize> = 8..16;
const HEADER_PAGE: std::ops::Range<usize> = 8..12;

/// Makes sure that the journal outlives a power loss, and that it is `room` long. Says how much of it
/// is in use.
///
/// Its name: `SQLite` syncs the folder too, but goes on when that fails. And its content: a process
/// before us may have ended at a sync that failed, and then the kernel shows what was written and holds
/// it for clean, so that another sync alone would write nothing. What was read back is written once
/// more, in its place and unchanged.
pub(super) fn make_ready(folder: &Path, room: usize) -> io::Result<usize> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let journal = options.open(folder.join(JOURNAL))?;
    let used = used_bytes(&journal)?;
    rewrite(&journal)?;
    make_room(&journal, room as u64)?;
    journal.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok(usize::try_from(used).unwrap_or(usize::MAX))
}

/// Where the frames of this round of writing end: those of the one before, and room, come after.
fn used_bytes(journal: &File) -> io::Result<u64> {
    let length = journal.metadata()?.len();
    let mut header = [0; HEADER_BYTES];
    if length < header.len() as u64 {
        return Ok(0);
    }
    journal.read_exact_at(&mut header, 0)?;
    let page = header[HEADER_PAGE].iter().fold(0, |page, byte| page << 8 | u64::from(*byte));
    let frame = page + FRAME_HEADER_BYTES as u64;
    let mut end = header.len() as u64;
    while end + frame <= length {
        let mut head = [0; FRAME_HEADER_BYTES];
        journal.read_exact_at(&mut head, end)?;
        if page == 0 || head[FRAME_ROUND] != header[HEADER_ROUND] {
            break;
        }
        end += frame;
    }
    Ok(end)
}

fn rewrite(journal: &File) -> io::Result<()> {
    let (mut chunk, mut offset) = (vec![0; REWRITE_BYTES], 0);
    loop {
        let read = journal.read_at(&mut chunk, offset)?;
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        journal.write_all_at(bytes, offset)?;
        offset = offset.saturating_add(read as u64);
    }
}

/// Writes zeros from the end of the file on; merely to allot the blocks would leave it to each sync to
/// note that they were written.
fn make_room(journal: &File, room: u64) -> io::Result<()> {
    let mut end = journal.metadata()?.len();
    if end >= room || free_bytes(journal)? < room.saturating_mul(FREE_TIMES) {
        return Ok(());
    }
    let zeros = [0; PAGE_BYTES];
    while end < room {
        let length = usize::try_from(room - end).unwrap_or(usize::MAX).min(zeros.len());
        match journal.write_all_at(&zeros[..length], end) {
            Ok(()) => end += length as u64,
            // Somebody else was faster, or a limit is lower: it works without.
            Err(error) if is_full(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn free_bytes(journal: &File) -> io::Result<u64> {
    let disk = rustix::fs::fstatvfs(journal)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 512;

    /// A journal of two rounds of writing: `now` frames of this one, and `then` of the one before.
    fn journal(folder: &Path, now: usize, then: usize) {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[HEADER_PAGE].copy_from_slice(&u32::try_from(PAGE).unwrap().to_be_bytes());
        bytes[HEADER_ROUND].copy_from_slice(b"this one");
        for round in [b"this one"; 9].iter().take(now).chain([b"the last"; 9].iter().take(then)) {
            let mut frame = vec![7; FRAME_HEADER_BYTES + PAGE];
            frame[FRAME_ROUND].copy_from_slice(*round);
            bytes.extend(frame);
        }
        std::fs::write(folder.join(JOURNAL), bytes).unwrap();
    }

    #[test]
    fn only_this_round_of_writing_is_in_use_and_nothing_of_the_file_changes_but_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let read = || std::fs::read(folder.path().join(JOURNAL)).unwrap();
        for (now, then) in [(0, 0), (3, 0), (3, 4), (0, 2)] {
            journal(folder.path(), now, then);
            let before = read();
            let used = make_ready(folder.path(), 20_000).unwrap();
            assert_eq!(used, HEADER_BYTES + now * (FRAME_HEADER_BYTES + PAGE), "{now} {then}");
            let after = read();
            assert!(after.starts_with(&before) && after.len() == 20_000, "{now} {then}");
            assert!(after[before.len()..].iter().all(|byte| *byte == 0), "{now} {then}");
            assert_eq!(make_ready(folder.path(), 0).unwrap(), used, "room is not taken away");
            assert_eq!(read(), after);
        }
    }

    #[test]
    fn no_room_is_made_on_a_disk_that_has_not_much_more() {
        let folder = tempfile::tempdir().unwrap();
        let free = free_bytes(&File::open(folder.path()).unwrap()).unwrap();
        let room = usize::try_from(free / FREE_TIMES * 2).unwrap();
        assert_eq!(make_ready(folder.path(), room).unwrap(), 0);
        assert_eq!(folder.path().join(JOURNAL).metadata().unwrap().len(), 0);
    }
}
