//! The figures, and the table of them.

use std::time::Duration;

/// What was to be reached.
pub(super) type Target = Option<Duration>;

/// Times of the same things, trial by trial, in the order in which they were first told.
#[derive(Default)]
pub(super) struct Figures(Vec<(&'static str, Vec<Duration>)>);

impl Figures {
    /// One more time.
    pub(super) fn add(&mut self, what: &'static str, took: Duration) {
        match self.0.iter_mut().find(|(known, _)| *known == what) {
            Some((_, times)) => times.push(took),
            None => self.0.push((what, vec![took])),
        }
    }

    /// Prints a row for each, with what was to be reached by the median of some.
    pub(super) fn print(&self, under: &str, targets: &[(&str, Duration)]) {
        for (what, times) in &self.0 {
            let target = targets.iter().find(|(about, _)| about == what).map(|(_, limit)| *limit);
            print_row(&format!("{under}: {what}"), times, target);
        }
    }
}

/// The head of the table.
pub(super) fn print_head() {
    println!("\n| what | trials | median | p90 | longest | to reach | |");
    println!("|---|---:|---:|---:|---:|---:|---|");
}

fn print_row(what: &str, times: &[Duration], target: Target) {
    let mut sorted = times.to_vec();
    sorted.sort();
    let median = at(&sorted, 50);
    let (goal, verdict) = match target {
        Some(limit) if median < limit => (format!("< {}", text(limit)), "reached"),
        Some(limit) => (format!("< {}", text(limit)), "MISSED"),
        None => (String::new(), ""),
    };
    let [median, p90, longest] = [median, at(&sorted, 90), at(&sorted, 100)].map(text);
    println!("| {what} | {} | {median} | {p90} | {longest} | {goal} | {verdict} |", times.len());
}

/// Prints a row of something that was counted once.
pub(super) fn print_count(what: &str, found: &str, goal: &str, is_reached: bool) {
    let verdict = match (goal, is_reached) {
        ("", _) => "",
        (_, true) => "reached",
        (_, false) => "MISSED",
    };
    println!("| {what} | 1 | {found} | | | {goal} | {verdict} |");
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}

fn text(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}
