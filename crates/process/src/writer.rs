//! Log lines on their way to standard error: many in one write, by a thread that only does that.
//!
//! A busy broker writes a line for each decision, and whoever decides is not to wait for a terminal,
//! a pipe or a disk. Where nobody takes the lines and [`MOST`] of them are waiting, what comes is
//! left out, and said to be when somebody does. What a kill takes is the last few milliseconds of
//! lines, never a decision: those are in the log.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// How long lines gather before they are written together.
const GATHER: Duration = Duration::from_millis(5);
/// How many bytes of them wait at most.
const MOST: usize = 4 * 1024 * 1024;
/// How long the end waits for the last of them to be taken.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where lines are put.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Shared>);

impl Lines {
    /// Of JSON, or of text.
    pub(crate) fn new(is_json: bool) -> Self {
        Self(Arc::new(Shared { is_json, ..Shared::default() }))
    }
}

#[derive(Default)]
struct Shared {
    is_json: bool,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    text: Vec<u8>,
    /// Lines for which there was no place.
    left_out: u64,
    ends: bool,
    ended: bool,
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
        let mut waiting = self.waiting();
        if waiting.ends {
            // Nobody is left to write it. Nobody can be told that it failed.
            drop(io::stderr().write_all(line));
            return;
        }
        if waiting.text.len() >= MOST {
            waiting.left_out += 1;
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
            // Where nobody reads any more, nobody can be told.
            drop(out.write_all(&self.take()));
            if ends {
                self.waiting().ended = true;
                self.changed.notify_all();
                return;
            }
        }
    }

    /// What waits, and how much of it was left out.
    fn take(&self) -> Vec<u8> {
        let mut waiting = self.waiting();
        let mut text = std::mem::take(&mut waiting.text);
        let left_out = std::mem::take(&mut waiting.left_out);
        if left_out > 0 {
            text.extend_from_slice(missed(left_out, self.is_json).as_bytes());
        }
        text
    }
}

/// A line of the same kind as the others.
fn missed(left_out: u64, is_json: bool) -> String {
    let why = "nobody took them in time";
    if !is_json {
        return format!("{left_out} log lines were left out: {why}\n");
    }
    let mut timestamp = String::new();
    // Without a time the line still says what it has to.
    SystemTime.format_time(&mut Writer::new(&mut timestamp)).unwrap_or_default();
    let message = format!("log lines were left out: {why}");
    let line = serde_json::json!({
        "timestamp": timestamp,
        "level": "WARN",
        "message": message,
        "left_out": left_out,
        "target": module_path!(),
    });
    format!("{line}\n")
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
        let Shared { waiting, changed, .. } = &*self.lines.0;
        self.lines.0.waiting().ends = true;
        changed.notify_all();
        // A terminal or pipe that takes nothing does not hold up the end of the process.
        let guard = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, PATIENCE, |waiting| !waiting.ended);
        let ended = waited.is_ok_and(|(waiting, _)| waiting.ended);
        if let Some(thread) = self.thread.take().filter(|_| ended) {
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

    /// Takes nothing until it is let go.
    struct Stuck(Arc<Mutex<()>>, Out);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            drop(self.0.lock());
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_takes_nothing_holds_nobody_up_and_is_told_what_it_missed() {
        for is_json in [false, true] {
            let (out, stuck) = (Out::default(), Arc::new(Mutex::new(())));
            let lines = Lines::new(is_json);
            let held = stuck.lock().unwrap();
            let writing =
                Writing::begin(lines.clone(), Stuck(Arc::clone(&stuck), out.clone())).unwrap();
            let line = format!("{:1023}\n", "{}");
            for _ in 0..3 * MOST / line.len() {
                lines.make_writer().write_all(line.as_bytes()).unwrap();
            }
            drop(held);
            drop(writing);
            let text = out.0.lock().unwrap().concat();
            assert!(text.len() < 3 * MOST);
            let text = String::from_utf8(text).unwrap();
            let said = text.lines().find(|line| line.contains("log lines were left out"));
            let read = serde_json::from_str::<serde_json::Value>(said.unwrap());
            assert_eq!(read.is_ok_and(|read| read["left_out"].as_u64() > Some(0)), is_json);
        }
    }
}
