//! Every home keeps the same contract, and the suite notices homes that do not.

use std::error::Error;

use sublet_log::conformance::{Failure, NewSite, Site, run};
use sublet_log::faulty::{Fault, Faulty, Plan};
use sublet_log::{Cause, Embedded, Log, Memory};
use tempfile::TempDir;

struct InMemory(Memory);

impl Site for InMemory {
    fn open(&self) -> Result<Box<dyn Log>, Cause> {
        Ok(Box::new(self.0.clone()))
    }
    fn is_shared(&self) -> bool {
        true
    }
}

struct Unsure(Memory, u64);

impl Site for Unsure {
    fn open(&self) -> Result<Box<dyn Log>, Cause> {
        let plan = Plan::seeded(self.1, 400, &[Fault::RequestLost, Fault::AnswerLost]);
        Ok(Box::new(Faulty::new(self.0.clone(), plan)))
    }
    fn is_shared(&self) -> bool {
        true
    }
}

struct InFolder(TempDir);

impl Site for InFolder {
    fn open(&self) -> Result<Box<dyn Log>, Cause> {
        Ok(Box::new(Embedded::open(self.0.path())?))
    }
    fn is_shared(&self) -> bool {
        false
    }
}

fn passes(new_site: NewSite<'_>) {
    let failures = run(new_site);
    let lines: Vec<_> = failures.iter().map(explain).collect();
    assert!(failures.is_empty(), "{}", lines.join("\n"));
}

fn explain(failure: &Failure) -> String {
    let mut text = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[test]
fn the_memory_home_keeps_the_contract() {
    passes(&|| Ok(Box::new(InMemory(Memory::new()))));
}

#[test]
fn a_home_that_loses_requests_and_answers_keeps_the_contract() {
    for seed in 0..8 {
        passes(&|| Ok(Box::new(Unsure(Memory::new(), seed))));
    }
}

#[test]
fn the_embedded_home_keeps_the_contract() {
    passes(&|| Ok(Box::new(InFolder(tempfile::tempdir()?))));
}
