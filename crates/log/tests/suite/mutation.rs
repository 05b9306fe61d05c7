//! Every kind of damage to the files gives the same log or a refusal, never a shorter log.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use sublet_log::embedded::{Error, Options};
use sublet_log::snapshot::take;
use sublet_log::{Embedded, Log};

use crate::scene::{Contents, FOREVER, contents, grow, quick_folder};

const FILES: [&str; 3] = ["sublet.db", "sublet.db-wal", "head"];
const PAGE: usize = 4096;

/// The bytes of the files of a store; an empty journal is as good as none.
type Image = BTreeMap<&'static str, Vec<u8>>;

fn image(folder: &Path) -> Image {
    let read = |name: &'static str| Some((name, fs::read(folder.join(name)).ok()?));
    FILES
        .into_iter()
        .filter_map(read)
        .filter(|(name, bytes)| *name != "sublet.db-wal" || !bytes.is_empty())
        .collect()
}

fn write(image: &Image, folder: &Path) {
    for name in FILES.into_iter().chain(["sublet.db-shm"]) {
        drop(fs::remove_file(folder.join(name)));
    }
    for (name, bytes) in image {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

/// Without room: what is not used of the journal need not be damaged thousands of times.
fn options(overdue_bytes: usize) -> Options {
    Options { overdue_bytes, room_bytes: 0, ..Options::default() }
}

fn open(folder: &Path) -> Result<Embedded, Error> {
    Embedded::open_with(folder, options(Options::default().overdue_bytes))
}

struct Golden {
    image: Image,
    contents: Contents,
    scratch: tempfile::TempDir,
    accepted: usize,
    refused: usize,
}

impl Golden {
    /// A store with records in the database and in its journal, a snapshot, a compacted beginning
    /// and free pages.
    fn new(overdue_bytes: usize) -> Self {
        let folder = quick_folder();
        let log = Embedded::open_with(folder.path(), options(overdue_bytes)).unwrap();
        let first = grow(&log, 12);
        take(&log).unwrap();
        log.compact(first[7].time()).unwrap();
        grow(&log, 5);
        take(&log).unwrap();
        grow(&log, 8);
        let contents = contents(&log);
        drop(log);
        let image = image(folder.path());
        assert!(image.contains_key("sublet.db-wal"), "nothing in the journal");
        Self { image, contents, scratch: quick_folder(), accepted: 0, refused: 0 }
    }

    /// The damaged store is what it was, and goes on; or it is refused and left alone.
    fn judge(&mut self, damaged: &Image, what: &str) -> Option<Error> {
        let folder = self.scratch.path();
        write(damaged, folder);
        let before = image(folder);
        match open(folder) {
            Err(error) => {
                assert!(image(folder) == before, "{what}: refused but changed: {error}");
                assert!(!matches!(error, Error::Io { .. } | Error::Locked { .. }), "{error:?}");
                self.refused += 1;
                Some(error)
            }
            Ok(log) => {
                assert!(contents(&log) == self.contents, "{what}: accepted but not the same");
                let more = grow(&log, 3);
                drop(log);
                let log = open(folder).unwrap_or_else(|e| panic!("{what}: {e:?}"));
                assert_eq!(log.head().unwrap(), more[2].head(), "{what}");
                self.accepted += 1;
                None
            }
        }
    }

    fn edit(&mut self, name: &'static str, what: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut damaged = self.image.clone();
        edit(damaged.get_mut(name).unwrap());
        self.judge(&damaged, &format!("{name}: {what}"));
    }
}

/// The same numbers for the same seed, on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }
}

/// Some stores have nearly everything in the database, others in the journal.
const CHECKPOINTS: [usize; 2] = [100_000, 16 << 20];

#[test]
fn flipped_bits_never_change_the_log_silently() {
    for (seed, checkpoint_bytes) in (1..).zip(CHECKPOINTS) {
        let mut golden = Golden::new(checkpoint_bytes);
        let mut dice = Dice(seed);
        for name in FILES {
            let bits = golden.image[name].len() * 8;
            for _ in 0..500 {
                let bit = dice.below(bits);
                golden.edit(name, &format!("bit {bit}"), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            }
        }
        // The header and the first tables are where one bit means most.
        for bit in 0..300 {
            golden.edit("sublet.db", &format!("bit {bit}"), |b| b[bit / 8] ^= 1 << (bit % 8));
            golden.edit("sublet.db-wal", &format!("bit {bit}"), |b| b[bit / 8] ^= 1 << (bit % 8));
        }
        assert!(golden.refused > 500 && golden.accepted > 100, "a test that proves nothing");
    }
}

#[test]
fn truncated_zeroed_and_swapped_pages_never_change_the_log_silently() {
    for (seed, checkpoint_bytes) in (11..).zip(CHECKPOINTS) {
        let mut golden = Golden::new(checkpoint_bytes);
        let mut dice = Dice(seed);
        for name in FILES {
            let length = golden.image[name].len();
            for _ in 0..60 {
                let keep = dice.below(length);
                golden.edit(name, &format!("truncated to {keep}"), |b| b.truncate(keep));
            }
            for start in (0..length).step_by(PAGE) {
                let end = length.min(start + PAGE);
                golden.edit(name, &format!("zeroed {start}"), |b| b[start..end].fill(0));
                let keep = start;
                golden.edit(name, &format!("truncated to {keep}"), |b| b.truncate(keep));
            }
            let pages = length / PAGE;
            for _ in 0..if pages < 2 { 0 } else { 150 } {
                let (a, b) = (dice.below(pages), dice.below(pages));
                golden.edit(name, &format!("swapped {a} and {b}"), |bytes| {
                    for at in 0..PAGE {
                        bytes.swap(a * PAGE + at, b * PAGE + at);
                    }
                });
            }
        }
        assert!(golden.refused > 50, "a test that proves nothing");
    }
}

#[test]
fn a_missing_file_of_the_set_is_refused() {
    for checkpoint_bytes in CHECKPOINTS {
        let mut golden = Golden::new(checkpoint_bytes);
        for (gone, also) in
            [("sublet.db", None), ("head", None), ("sublet.db", Some("sublet.db-wal"))]
        {
            let mut damaged = golden.image.clone();
            damaged.remove(gone);
            also.map(|also| damaged.remove(also));
            let error = golden.judge(&damaged, gone).expect("refused");
            assert!(
                matches!(&error, Error::MissingFile { file, .. } if *file == gone),
                "{error:?}"
            );
        }
        // Where all three are gone, what is left says that there was something.
        std::fs::create_dir_all(golden.scratch.path().join("notes")).unwrap();
        let error = golden.judge(&Image::new(), "nothing but notes").expect("refused");
        assert!(matches!(&error, Error::MissingFile { file: "sublet.db", .. }), "{error:?}");
        let mut damaged = golden.image.clone();
        damaged.remove("sublet.db-wal");
        let error = golden.judge(&damaged, "no journal").expect("refused");
        assert!(matches!(error, Error::HeadBehind { .. } | Error::Corrupt { .. }), "{error:?}");
    }
}

#[test]
fn an_older_copy_of_the_database_is_refused() {
    let folder = quick_folder();
    let log = Embedded::open(folder.path()).unwrap();
    grow(&log, 10);
    drop(log);
    let old = image(folder.path());
    let log = Embedded::open(folder.path()).unwrap();
    grow(&log, 1);
    drop(log);
    let head = image(folder.path()).remove("head").unwrap();
    let mut mixed = old;
    mixed.insert("head", head);
    write(&mixed, folder.path());
    let error = Embedded::open(folder.path()).err();
    assert!(matches!(error, Some(Error::HeadBehind { .. })), "{error:?}");
    assert!(image(folder.path()) == mixed);
}

#[test]
fn a_free_page_that_is_in_use_is_refused_before_it_is_written_over() {
    let folder = quick_folder();
    let log = Embedded::open(folder.path()).unwrap();
    grow(&log, 60);
    take(&log).unwrap();
    log.compact(FOREVER).unwrap();
    drop(log);
    let db = Connection::open(folder.path().join("sublet.db")).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    let mut damaged = image(folder.path());
    let bytes = damaged.get_mut("sublet.db").unwrap();
    let number = |bytes: &[u8], at: usize| {
        usize::try_from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())).unwrap()
    };
    // The header names the first list of free pages: the next list, a count, and the pages.
    let list = (number(bytes, 32) - 1) * PAGE;
    assert!(number(bytes, list + 4) > 0, "there are free pages");
    bytes[list + 8..list + 12].copy_from_slice(&2u32.to_be_bytes());
    write(&damaged, folder.path());
    let error = Embedded::open(folder.path()).err();
    assert!(matches!(error, Some(Error::Corrupt { .. })), "{error:?}");
    assert!(image(folder.path()) == damaged);
}

/// What to do to the database of a store.
type Edit<'a> = (&'a str, &'a dyn Fn(&Connection));

#[test]
fn a_later_format_is_refused_by_name() {
    let mut golden = Golden::new(CHECKPOINTS[0]);
    // Sound texts of format 2, as a newer version would write them.
    let later = |text: &str| {
        let body = &text[..text.rfind(",\"checksum\"").unwrap()];
        let body = body.replacen("\"format\":1", "\"format\":2", 1);
        let checksum = sublet_log::Checksum::of(body.as_bytes());
        format!("{body},\"checksum\":\"{checksum}\"}}")
    };
    let edits: [Edit; 4] = [
        ("tables", &|db| db.pragma_update(None, "user_version", 2).unwrap()),
        ("record", &|db| rewrite(db, "records", "revision", 20, &later)),
        ("floor", &|db| rewrite(db, "marks", "mark", 1, &later)),
        ("snapshot", &|db| {
            let part: i64 = db.query_row("SELECT max(part) FROM parts", [], |r| r.get(0)).unwrap();
            let bytes: Vec<u8> = db
                .query_row("SELECT bytes FROM parts WHERE part = ?1", [part], |r| r.get(0))
                .unwrap();
            let text = later(&String::from_utf8(bytes).unwrap());
            db.execute("UPDATE parts SET bytes = ?1 WHERE part = ?2", (text.as_bytes(), part))
                .unwrap();
        }),
    ];
    for (what, edit) in edits {
        let folder = quick_folder();
        write(&golden.image, folder.path());
        let db = Connection::open(folder.path().join("sublet.db")).unwrap();
        edit(&db);
        drop(db);
        let error = golden.judge(&image(folder.path()), what).expect("refused");
        assert!(matches!(error, Error::LaterFormat { found: 2, .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("upgrade"), "{error}");
    }
}

fn rewrite(db: &Connection, table: &str, key: &str, at: i64, edit: &dyn Fn(&str) -> String) {
    let query = format!("SELECT text FROM {table} WHERE {key} = ?1");
    let text: String = db.query_row(&query, [at], |row| row.get(0)).unwrap();
    let update = format!("UPDATE {table} SET text = ?1 WHERE {key} = ?2");
    db.execute(&update, (edit(&text), at)).unwrap();
}
