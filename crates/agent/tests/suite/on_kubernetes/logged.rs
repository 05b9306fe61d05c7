//! What the agents in this process say in their logs.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::on_kubernetes::until::until;

/// Every line since somebody listens: of all agents, so names in them are to be told apart by tests.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on what they say is kept.
pub(super) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
}

/// Waits for a line with all these words.
pub(super) async fn is_logged(words: &[&str]) {
    let has_all = |line: &String| words.iter().all(|word| line.contains(word));
    let said = || async { LINES.lock().unwrap().iter().any(has_all).then_some(()) };
    until(&format!("{words:?} in the log"), said).await;
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("sublet_agent")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        LINES.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A line, field after field.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}
