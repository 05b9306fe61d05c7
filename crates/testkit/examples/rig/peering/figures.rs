//! The figures, the table of them, and which targets they missed.

use std::time::Duration;

use anyhow::{Result, ensure};

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
}

/// The table, as it grows on the terminal, and what it has shown to be missed.
#[derive(Default)]
pub(super) struct Table {
    targets: usize,
    missed: Vec<String>,
}

impl Table {
    /// Prints its head.
    pub(super) fn begin() -> Self {
        println!("\n| what | trials | median | p90 | longest | to reach | |");
        println!("|---|---:|---:|---:|---:|---:|---|");
        Self::default()
    }

    /// Prints a row for each of these times, with what was to be reached by the median of some.
    pub(super) fn times(&mut self, under: &str, figures: &Figures, targets: &[(&str, Duration)]) {
        for (what, times) in &figures.0 {
            let target = targets.iter().find(|(about, _)| about == what).map(|(_, limit)| *limit);
            self.row(&format!("{under}: {what}"), times, target);
        }
    }

    fn row(&mut self, what: &str, times: &[Duration], target: Option<Duration>) {
        let mut sorted = times.to_vec();
        sorted.sort();
        let median = at(&sorted, 50);
        let verdict = target.map_or("", |limit| self.judge(what, median < limit));
        let goal = target.map_or_else(String::new, |limit| format!("< {}", text(limit)));
        let [median, p90, longest] = [median, at(&sorted, 90), at(&sorted, 100)].map(text);
        println!(
            "| {what} | {} | {median} | {p90} | {longest} | {goal} | {verdict} |",
            times.len()
        );
    }

    /// Prints a row of something that was counted once; with a target, what that is and whether it was
    /// reached.
    pub(super) fn count(&mut self, what: &str, found: &str, target: Option<(&str, bool)>) {
        let verdict = target.map_or("", |(_, is_reached)| self.judge(what, is_reached));
        let goal = target.map_or("", |(goal, _)| goal);
        println!("| {what} | 1 | {found} | | | {goal} | {verdict} |");
    }

    fn judge(&mut self, what: &str, is_reached: bool) -> &'static str {
        self.targets += 1;
        if is_reached {
            return "reached";
        }
        self.missed.push(what.to_owned());
        "MISSED"
    }

    /// Says how many targets were reached; if it is to be strict, one that was missed is an error.
    pub(super) fn end(self, is_strict: bool) -> Result<()> {
        let Self { targets, missed } = self;
        println!("\n{} of {targets} targets reached", targets - missed.len());
        for what in &missed {
            println!("MISSED: {what}");
        }
        ensure!(missed.is_empty() || !is_strict, "targets were missed: {}", missed.len());
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(took: Duration) -> Table {
        let (mut table, mut figures) = (Table::default(), Figures::default());
        figures.add("usable", took);
        figures.add("on the way", Duration::from_secs(9));
        table.times("a trial", &figures, &[("usable", Duration::from_secs(1))]);
        table.count("leftovers", "0", Some(("0", true)));
        table.count("for information", "7", None);
        table
    }

    #[test]
    fn a_missed_target_is_an_error_where_it_is_to_be_strict_and_nowhere_else() {
        let fast = table(Duration::from_millis(999));
        assert_eq!((fast.targets, fast.missed.len()), (2, 0));
        assert!(fast.end(true).is_ok());
        let slow = table(Duration::from_secs(1));
        assert_eq!(slow.missed, ["a trial: usable"]);
        assert!(slow.end(false).is_ok());
        assert!(table(Duration::from_secs(1)).end(true).is_err());
    }
}
