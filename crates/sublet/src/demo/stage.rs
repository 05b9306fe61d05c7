//! What the reader sees: titles, sentences, tables, and time to read them.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Result;

use crate::clock;
use crate::output::{self, Row};

/// For a line.
const LINE: Duration = Duration::from_millis(500);
/// For a title, which says what comes.
const TITLE: Duration = Duration::from_millis(1200);

/// The reader, and how much time there is for them.
pub(super) struct Stage {
    pauses: bool,
    act: u32,
}

impl Stage {
    /// Without pauses where nobody reads along.
    pub(super) fn new(fast: bool) -> Self {
        Self { pauses: !fast && std::io::stdout().is_terminal(), act: 0 }
    }

    /// Begins the next act.
    pub(super) async fn title(&mut self, text: &str) -> Result<()> {
        self.act += 1;
        let bold = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        writeln!(output::stdout(), "\n{bold}{}. {text}{bold:#}", self.act)?;
        self.pause(TITLE).await;
        Ok(())
    }

    /// Says something.
    pub(super) async fn say(&self, text: impl AsRef<str>) -> Result<()> {
        let mut out = output::stdout();
        for line in text.as_ref().lines() {
            writeln!(out, "   {line}")?;
        }
        drop(out);
        self.pause(LINE).await;
        Ok(())
    }

    /// Shows a table, as `sublet get` does.
    pub(super) async fn table<R: Row>(&self, rows: &[R]) -> Result<()> {
        let mut text = Vec::new();
        output::list(rows, None, clock::now(), &mut text)?;
        self.say(String::from_utf8_lossy(&text)).await
    }

    async fn pause(&self, length: Duration) {
        if self.pauses {
            tokio::time::sleep(length).await;
        }
    }
}
