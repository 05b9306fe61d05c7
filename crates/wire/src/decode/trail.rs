//! Where in a document the reader is; written out only when something is wrong.

use std::cell::RefCell;
use std::fmt::Write;

use serde::de;

/// The members that lead to where the reader is, as a list from the inside out.
pub struct Trail<'a> {
    outer: Option<&'a Trail<'a>>,
    step: Step,
    failed: &'a RefCell<Failed>,
}

/// Where reading failed, if it did.
#[derive(Default)]
pub(super) struct Failed {
    pub(super) path: Option<String>,
    /// How many may be there, where that was the reason.
    pub(super) most: Option<usize>,
}

#[derive(Clone, Copy)]
enum Step {
    Document,
    Member(&'static str),
    Index(usize),
}

impl<'a> Trail<'a> {
    pub(super) fn new(failed: &'a RefCell<Failed>) -> Self {
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
        if failed.path.is_none() {
            let mut path = String::new();
            self.write(&mut path);
            failed.path = Some(path);
        }
    }

    /// Reading fails here because there are more than so many.
    pub(super) fn too_many<E: de::Error>(&self, most: usize) -> E {
        self.note();
        self.failed.borrow_mut().most = Some(most);
        E::custom("too many")
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
