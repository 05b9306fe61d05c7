//! What happened, as a hash that two runs of one seed must share, and as text when somebody reads.

use std::fmt::Arguments;

/// The history of a run.
#[derive(Clone, Debug)]
pub struct Trace {
    hash: u64,
    /// The last lines, if they are kept.
    lines: Option<Vec<String>>,
}

/// More lines than anybody reads.
const LINES_MAX: usize = 4000;

impl Trace {
    /// An empty history; with `keep`, as text too.
    pub fn new(keep: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: keep.then(Vec::new) }
    }

    /// Adds bytes to the hash.
    pub fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds a number to the hash.
    pub fn number(&mut self, number: u64) {
        self.mix(&number.to_le_bytes());
    }

    /// Adds a line, if lines are kept.
    pub fn say(&mut self, at_ms: u64, line: Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            if lines.len() >= LINES_MAX {
                lines.drain(..LINES_MAX / 2);
            }
            lines.push(format!("{:>9}.{:03} {line}", at_ms / 1000, at_ms % 1000));
        }
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines that were kept.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
