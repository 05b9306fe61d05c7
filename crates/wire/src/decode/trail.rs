//! Where in a document the reader is; written out only when something is wrong.

use std::cell::RefCell;
use std::fmt::Write;

/// The members that lead to where the reader is, as a list from the inside out.
pub struct Trail<'a> {
    outer: Option<&'a Trail<'a>>,
    step: Step,
    failed: &'a RefCell<Option<String>>,
}

#[derive(Clone, Copy)]
enum Step {
    Document,
    Member(&'static str),
    Index(usize),
}

impl<'a> Trail<'a> {
    pub(super) fn new(failed: &'a RefCell<Option<String>>) -> Self {
        Self { outer: None, step: Step::Document, failed }
    }

    pub(crate) fn member(&'a self, name: &'static str) -> Self {
        Self { outer: Some(self), step: Step::Member(name), failed: self.failed }
    }

    pub(super) fn index(&'a self, at: usize) -> Self {
        Self { outer: Some(self), step: Step::Index(at), failed: self.failed }
    }

    /// Notes that reading failed here, unless it is noted already: the innermost place counts.
    pub(crate) fn note(&self) {
        let mut failed = self.failed.borrow_mut();
        if failed.is_none() {
            let mut path = String::new();
            self.write(&mut path);
            *failed = Some(path);
        }
    }

    fn write(&self, path: &mut String) {
        if let Some(outer) = self.outer {
            outer.write(path);
        }
        match self.step {
            Step::Document => {}
            Step::Member(name) if path.is_empty() => path.push_str(name),
            // Writing to a string does not fail.
            Step::Member(name) => drop(write!(path, ".{name}")),
            Step::Index(at) => drop(write!(path, "[{at}]")),
        }
    }
}
