//! Log lines on their way to standard error: many in one write, by a thread that only does that.
//!
//! A busy broker writes a line for each decision, and whoever decides is not to wait for a terminal,
//! a pipe or a disk. Nothing is dropped: who comes when [`MOST`] is waiting already has to wait too.
//! What a kill takes is the last few milliseconds of lines, never a decision: those are in the log.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How long lines gather before they are written together.
const GATHER: Duration = Duration::from_millis(5);
/// How many bytes of them wait at most.
const MOST: usize = 1024 * 1024;

/// Where lines are put.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    text: Vec<u8>,
    ends: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&Waiting) -> bool) -> MutexGuard<'_, Waiting> {
        let waited = self.changed.wait_while(self.waiting(), |waiting| condition(waiting));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, line: &[u8]) {
        let is_full = |waiting: &Waiting| waiting.text.len() >= MOST && !waiting.ends;
        let mut waiting = self.wait_while(is_full);
        if waiting.ends {
            // Nobody is left to write it, or to be held up. Nobody can be told that it failed.
            drop(io::stderr().write_all(line));
            return;
        }
        let is_first = waiting.text.is_empty();
        waiting.text.extend_from_slice(line);
        drop(waiting);
        if is_first {
            self.changed.notify_all();
        }
    }

    fn write_until_end(&self, out: &mut impl Write) {
        loop {
            let nothing = |waiting: &Waiting| waiting.text.is_empty() && !waiting.ends;
            let ends = self.wait_while(nothing).ends;
            if !ends {
                thread::sleep(GATHER);
            }
            let text = std::mem::take(&mut self.waiting().text);
            self.changed.notify_all();
            // Where nobody reads any more, nobody can be told.
            drop(out.write_all(&text));
            if ends {
                return;
            }
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(&self.0)
    }
}

/// Takes one line, whole.
pub(crate) struct Line<'a>(&'a Shared);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread that writes; when this is dropped, everything was written.
pub struct Writing {
    lines: Lines,
    thread: Option<JoinHandle<()>>,
}

impl Writing {
    /// Begins to write to `out` what is put into `lines`.
    pub(crate) fn begin(lines: Lines, mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::clone(&lines.0);
        let write = move || shared.write_until_end(&mut out);
        let thread = thread::Builder::new().name("sublet-lines".into()).spawn(write)?;
        Ok(Self { lines, thread: Some(thread) })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.lines.0.waiting().ends = true;
        self.lines.0.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it should, its lines are lost and nothing else.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers each write, and lets the first one begin only when it is told to.
    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_written_once_and_in_order_in_few_writes() {
        let (lines, out) = (Lines::default(), Out::default());
        let writing = Writing::begin(lines.clone(), out.clone()).unwrap();
        let all: Vec<_> = (0..50_000).map(|number| format!("line {number} of many\n")).collect();
        for line in &all {
            lines.make_writer().write_all(line.as_bytes()).unwrap();
        }
        drop(writing);
        let written = out.0.lock().unwrap();
        assert_eq!(written.concat(), all.concat().as_bytes());
        assert!(written.len() < all.len() / 10, "{} writes", written.len());
        assert!(written.iter().all(|text| text.len() < MOST + 100));
    }

    #[test]
    fn lines_of_many_threads_stay_whole() {
        let (lines, out) = (Lines::default(), Out::default());
        let writing = Writing::begin(lines.clone(), out.clone()).unwrap();
        thread::scope(|threads| {
            for name in ["a", "b", "c"] {
                let line = format!("{}\n", name.repeat(40));
                let lines = &lines;
                threads.spawn(move || {
                    for _ in 0..1000 {
                        lines.make_writer().write_all(line.as_bytes()).unwrap();
                    }
                });
            }
        });
        drop(writing);
        let text = String::from_utf8(out.0.lock().unwrap().concat()).unwrap();
        let whole = |line: &str| ["a", "b", "c"].iter().any(|name| line == name.repeat(40));
        assert_eq!(text.lines().filter(|line| whole(line)).count(), 3000);
        assert_eq!(text.lines().count(), 3000);
    }
}
