//! How many tests passed and failed, as far as a step has any.

use std::ops::AddAssign;

/// A count of what passed and what failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Why it proves less than it should, if it does.
    pub(crate) weak: Option<&'static str>,
    /// Tests that failed and then passed alone: counted as passed, and named.
    pub(crate) failed_once: Vec<String>,
}

impl Tally {
    /// A single thing that passed or failed.
    pub(crate) fn one(passed: bool) -> Self {
        Self { passed: u64::from(passed), failed: u64::from(!passed), ..Self::default() }
    }

    /// Adds what a line of a test program's output says of its tests, if it says so:
    /// `test result: ok. 3 passed; 0 failed; …`
    pub(crate) fn read(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else {
            return;
        };
        let count = |what: &str| -> u64 {
            let before = counts.split_once(what).map_or("", |(before, _)| before.trim_end());
            before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
        };
        *self += Self { passed: count(" passed"), failed: count(" failed"), ..Self::default() };
    }

    /// The same, and at least one failure if the program that ran them failed: it may not have come
    /// as far as a test.
    pub(crate) fn and_the_program(self, passed: bool) -> Self {
        Self { failed: if passed { self.failed } else { self.failed.max(1) }, ..self }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.weak = self.weak.or(other.weak);
        self.failed_once.extend(other.failed_once);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        tally
    }

    #[test]
    fn the_results_of_all_test_programs_are_added_up() {
        let tally = read(&[
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; finished in 0.00s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ]);
        assert_eq!(tally, Tally { passed: 15, failed: 2, ..Tally::default() });
    }

    #[test]
    fn colours_do_not_hide_the_counts() {
        let tally =
            read(&["test result: \u{1b}[32mok\u{1b}(B\u{1b}[m. 4 passed; 1 failed; 0 ignored"]);
        assert_eq!(tally, Tally { passed: 4, failed: 1, ..Tally::default() });
    }

    #[test]
    fn a_program_that_failed_without_a_failed_test_counts_as_one() {
        assert_eq!(read(&[]).and_the_program(false), Tally::one(false));
        assert_eq!(read(&[]).and_the_program(true), Tally::default());
    }
}
