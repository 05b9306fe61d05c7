//! How many clusters each filter refused, with a look at as few of them as that takes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::LOOKS_MAX;
use super::refused::Tally;
use crate::decision::filter::{Filter, Known, Question};
use crate::id::ClusterId;

/// Clusters that are looked at for each reason of [`Filter::CLOSING`], in search of one that only
/// this reason stands against.
const TRIES_MAX: usize = 32;

/// Rows that are gone through in search of those to look at by name.
const ROWS_MAX: usize = 1024;

/// What the notes tell of those that are open, the requester apart.
#[derive(Default)]
struct Open {
    all: u64,
    /// Without a common backend.
    apart: u64,
    /// Silent for too long, and not apart.
    stale: u64,
}

impl<'a> Tally<'a> {
    fn refuse(&mut self, filter: Filter, count: u64) {
        if count > 0 {
            let sum = self.told.refused.entry(filter).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn count(&mut self, first: Option<Filter>, count: u64) {
        match first {
            Some(filter) => self.refuse(filter, count),
            None => self.told.fitting = self.told.fitting.saturating_add(count),
        }
    }

    /// With a target, everybody else is refused for not being it.
    pub(super) fn count_all_but(&mut self, target: &'a ClusterId) {
        let Question { books, requester, .. } = self.question;
        let mut others = self.told.clusters;
        let itself = books.index().row(requester).is_some();
        if itself || target == requester {
            self.refuse(Filter::Itself, 1);
            others = others.saturating_sub(u64::from(itself));
        }
        match Known::of(books, target) {
            _ if target == requester => {}
            Some(known) => {
                others = others.saturating_sub(1);
                let first = self.look(known);
                self.count(first, 1);
            }
            // A target that nobody knows is refused as well.
            None => self.refuse(Filter::Unknown, 1),
        }
        self.refuse(Filter::Target, others);
        self.look_at_those_with_room();
    }

    pub(super) fn count_all(&mut self) {
        let Question { books, requester, ask, policy, .. } = self.question;
        self.refuse(Filter::Itself, u64::from(books.index().row(requester).is_some()));
        let open = self.count_notes();
        let (looked, complete) = self.look_at_those_with_room();
        let mut rest = open.all;
        if policy.rules_on(requester) || !ask.constraints.is_empty() {
            let mut looks = LOOKS_MAX;
            for (first, count) in looked {
                self.count(first, count);
                looks = looks.saturating_sub(count);
                rest = rest.saturating_sub(count);
            }
            self.told.uncounted = rest.saturating_sub(self.look_by_name(looks));
            return;
        }
        self.refuse(Filter::Backend, open.apart);
        self.refuse(Filter::Stale, open.stale);
        rest = rest.saturating_sub(open.apart).saturating_sub(open.stale);
        for (first, count) in looked {
            // Of these, the notes have told already.
            if !matches!(first, Some(Filter::Backend | Filter::Stale)) {
                self.count(first, count);
                rest = rest.saturating_sub(count);
            }
        }
        if complete {
            self.refuse(Filter::Fit, rest);
        } else {
            self.told.uncounted = rest;
        }
    }

    /// Counts those that are closed, and looks at some of them.
    fn count_notes(&mut self) -> Open {
        let Question { books, requester, policy, now, .. } = self.question;
        let (index, ours) = (books.index(), self.question.backends());
        let itself = index.number(requester);
        let mut open = Open::default();
        let mut closed = Filter::CLOSING.map(|filter| (filter, 0_u64, Vec::new()));
        for (number, note) in index.notes().filter(|(number, _)| Some(*number) != itself) {
            let Some(reason) = note.closed else {
                let apart = !ours.meet(note.backends);
                let stale = !apart && policy.silence.is_stale(note.received_at, now);
                open.all = open.all.saturating_add(1);
                open.apart = open.apart.saturating_add(u64::from(apart));
                open.stale = open.stale.saturating_add(u64::from(stale));
                continue;
            };
            let reason = closed.iter_mut().find(|(filter, ..)| *filter == reason);
            if let Some((_, count, tries)) = reason {
                *count = count.saturating_add(1);
                if tries.len() < TRIES_MAX {
                    tries.push(number);
                }
            }
        }
        for (filter, count, tries) in closed {
            self.refuse(filter, count);
            let tries = tries.into_iter().filter_map(|number| index.numbered(number));
            for known in tries.filter_map(|cluster| Known::of(books, cluster)) {
                self.look(known);
            }
        }
        open
    }

    /// Looks at the open clusters with room, at most [`LOOKS_MAX`]: their first reasons, and
    /// whether that were all.
    fn look_at_those_with_room(&mut self) -> (BTreeMap<Option<Filter>, u64>, bool) {
        let Question { books, requester, ask, .. } = self.question;
        let (mut looked, mut looks, mut complete) = (BTreeMap::new(), 0, true);
        books.index().each_with_room(&ask.resources, &mut |cluster| {
            let known = Known::of(books, cluster).filter(|_| cluster != requester);
            let Some(known) = known else { return true };
            complete = looks < LOOKS_MAX;
            if complete {
                looks = looks.saturating_add(1);
                let count: &mut u64 = looked.entry(self.look(known)).or_default();
                *count = count.saturating_add(1);
            }
            complete
        });
        (looked, complete)
    }

    /// Looks at open clusters without room and counts them, at most `looks`; how many.
    fn look_by_name(&mut self, looks: u64) -> u64 {
        let Question { books, requester, ask, .. } = self.question;
        let some = books.index().rows(None).take(ROWS_MAX);
        let open = some.filter(|(cluster, row)| row.is_open() && *cluster != requester);
        let without = open.filter(|(_, row)| !ask.resources.fits_in(&row.room));
        let mut looked = 0_u64;
        for known in without.filter_map(|(cluster, _)| Known::of(books, cluster)) {
            if looked == looks {
                break;
            }
            let first = self.look(known);
            self.count(first, 1);
            looked = looked.saturating_add(1);
        }
        looked
    }
}
