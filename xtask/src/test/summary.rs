//! The table at the end of `cargo xtask test`, and its last line.

use std::fmt;
use std::time::Duration;

use super::Tally;

/// How a step ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It ran to its end; whether well is in the tally.
    Ran(Tally),
    /// It could not run at all.
    Broke(anyhow::Error),
    /// It was left out, because the code does not compile.
    Skipped,
    /// What it would have run cannot be run on this machine.
    LeftOut {
        /// Why.
        why: &'static str,
        /// The tests.
        names: Vec<String>,
    },
}

/// A step that is over.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) step: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

/// All steps that are over.
pub(crate) struct Summary(pub(crate) Vec<Row>);

impl Row {
    fn tally(&self) -> Tally {
        match &self.outcome {
            Outcome::Ran(tally) => tally.clone(),
            Outcome::Broke(_) => Tally::one(false),
            Outcome::Skipped | Outcome::LeftOut { .. } => Tally::default(),
        }
    }

    /// Whether the step found nothing wrong: it ran, or this machine cannot run it.
    pub(crate) fn passed(&self) -> bool {
        matches!(self.outcome, Outcome::Ran(Tally { failed: 0, .. }) | Outcome::LeftOut { .. })
    }

    /// The tests that this machine cannot run.
    fn left_out(&self) -> &[String] {
        match &self.outcome {
            Outcome::LeftOut { names, .. } => names,
            _ => &[],
        }
    }

    fn result(&self) -> &'static str {
        match self.outcome {
            Outcome::Ran(Tally { failed: 0, weak: Some(_), .. }) => "WEAK",
            Outcome::Ran(Tally { failed: 0, .. }) => "ok",
            Outcome::LeftOut { .. } => "NOT RUN",
            Outcome::Ran(_) | Outcome::Broke(_) => "FAILED",
            Outcome::Skipped => "skipped",
        }
    }

    fn remark(&self) -> String {
        match &self.outcome {
            Outcome::LeftOut { why, .. } => (*why).to_owned(),
            Outcome::Ran(Tally { failed: 0, weak, .. }) => weak.unwrap_or_default().to_owned(),
            Outcome::Skipped => "the code does not compile".to_owned(),
            Outcome::Ran(_) => format!("cargo xtask test --only {}", self.step),
            Outcome::Broke(error) => format!("cargo xtask test --only {} ({error:#})", self.step),
        }
    }
}

impl Summary {
    /// Whether every step ran and found nothing wrong.
    pub(crate) fn passed(&self) -> bool {
        self.0.iter().all(Row::passed)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12}{:<8}{:>8}", "step", "result", "seconds")?;
        let mut all = Tally::default();
        let mut took = Duration::ZERO;
        for row in &self.0 {
            let line = format!(
                "{:<12}{:<8}{:>8.1}   {}",
                row.step,
                row.result(),
                row.took.as_secs_f64(),
                row.remark()
            );
            writeln!(f, "{}", line.trim_end())?;
            all += row.tally();
            took += row.took;
        }
        writeln!(f, "{:<20}{:>8.1}\n", "total", took.as_secs_f64())?;
        let left_out: Vec<_> = self.0.iter().flat_map(Row::left_out).collect();
        for name in &left_out {
            writeln!(f, "NOT RUN: {name}")?;
        }
        for name in &all.failed_once {
            writeln!(f, "FAILED ONCE, then passed alone: {name}")?;
        }
        write!(f, "{} passed, {} failed", all.passed, all.failed)?;
        if !left_out.is_empty() {
            write!(f, ", {} NOT RUN", left_out.len())?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &'static str, outcome: Outcome) -> Row {
        Row { step, outcome, took: Duration::from_millis(1_250) }
    }

    #[test]
    fn the_table_says_how_to_run_what_failed_and_ends_with_the_counts() {
        let summary = Summary(vec![
            row("format", Outcome::Ran(Tally::one(true))),
            row("clippy", Outcome::Broke(anyhow::anyhow!("no clippy"))),
            row("docs", Outcome::Skipped),
            row("tests", Outcome::Ran(Tally { passed: 40, failed: 2, ..Tally::default() })),
            row("core", Outcome::Ran(Tally { weak: Some("half of it"), ..Tally::one(true) })),
        ]);
        let expected = "\
step        result   seconds
format      ok           1.2
clippy      FAILED       1.2   cargo xtask test --only clippy (no clippy)
docs        skipped      1.2   the code does not compile
tests       FAILED       1.2   cargo xtask test --only tests
core        WEAK         1.2   half of it
total                    6.2

42 passed, 3 failed
";
        assert_eq!(summary.to_string(), expected);
        assert!(!summary.passed());
    }

    #[test]
    fn what_this_machine_cannot_run_is_named_and_is_no_failure() {
        let names = vec!["on_kubernetes::a".to_owned(), "on_kubernetes::b".to_owned()];
        let left_out = Outcome::LeftOut { why: "no go", names };
        let summary = Summary(vec![row("kubernetes", left_out)]);
        let expected = "\
step        result   seconds
kubernetes  NOT RUN      1.2   no go
total                    1.2

NOT RUN: on_kubernetes::a
NOT RUN: on_kubernetes::b
0 passed, 0 failed, 2 NOT RUN
";
        assert_eq!(summary.to_string(), expected);
        assert!(summary.passed());
    }

    #[test]
    fn what_failed_once_is_named() {
        let names = vec!["faults::disk::a".to_owned()];
        let ran = Tally { failed_once: names, ..Tally::one(true) };
        let summary = Summary(vec![row("tests", Outcome::Ran(ran))]);
        let end = "\nFAILED ONCE, then passed alone: faults::disk::a\n1 passed, 0 failed\n";
        assert!(summary.to_string().ends_with(end), "{summary}");
        assert!(summary.passed());
    }

    #[test]
    fn a_skipped_step_is_not_a_passed_one() {
        assert!(!Summary(vec![row("docs", Outcome::Skipped)]).passed());
    }
}
