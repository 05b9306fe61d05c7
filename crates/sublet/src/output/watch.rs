//! A list that is looked at again and again, or told piece by piece: only what has changed is printed,
//! and what is gone is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Context, Result};
use sublet_core::time::Time;

use super::table::Table;
use super::{Format, Row, yaml};

/// Members that change by themselves and say nothing new.
const RESTLESS: [&str; 2] = ["age", "receivedAt"];

/// What was printed of each so far.
pub(crate) struct Watch {
    format: Option<Format>,
    table: Table,
    seen: BTreeMap<String, serde_json::Value>,
}

impl Watch {
    pub(crate) fn new<R: Row>(format: Option<Format>) -> Self {
        let table = Table::new(R::COLUMNS, format == Some(Format::Wide));
        Self { format, table, seen: BTreeMap::new() }
    }

    /// Prints those of `rows`, which are all that there are, that are new or other than before; JSON
    /// one a line, so that a script can read them as they come. A table also says which are gone.
    pub(crate) fn print<R: Row>(
        &mut self,
        rows: &[R],
        now: Time,
        out: &mut impl Write,
    ) -> Result<()> {
        let mut changed = Vec::new();
        for row in rows {
            if self.is_news(row)? {
                changed.push(row);
            }
        }
        let gone = self.forget_all_but(rows);
        self.write(&changed, gone, now, out)
    }

    /// Prints one of them if it is new or other than before; nothing is said of the others.
    pub(crate) fn print_one<R: Row>(
        &mut self,
        row: &R,
        now: Time,
        out: &mut impl Write,
    ) -> Result<()> {
        if self.is_news(row)? { self.write(&[row], vec![], now, out) } else { Ok(()) }
    }

    /// Forgets one that is no more, and of which that was said.
    pub(crate) fn forget<R: Row>(&mut self, row: &R) {
        self.seen.remove(&row.name());
    }

    fn write<R: Row>(
        &mut self,
        changed: &[&R],
        gone: Vec<String>,
        now: Time,
        out: &mut impl Write,
    ) -> Result<()> {
        match self.format {
            Some(Format::Json) => {
                for row in changed {
                    writeln!(out, "{}", serde_json::to_string(row)?)?;
                }
            }
            Some(Format::Yaml) => {
                for row in changed {
                    writeln!(out, "---")?;
                    yaml(row, out)?;
                }
            }
            Some(Format::Name) => {
                changed.iter().try_for_each(|row| writeln!(out, "{}", row.name()))?;
            }
            None | Some(Format::Wide) => {
                let changed = changed.iter().map(|row| row.cells(now));
                let gone = gone.into_iter().map(|name| vec![name.into(), "gone".into()]);
                self.table.print(changed.chain(gone).collect(), out)?;
            }
        }
        Ok(out.flush()?)
    }

    /// The names of those that were there and are no more.
    fn forget_all_but<R: Row>(&mut self, rows: &[R]) -> Vec<String> {
        let left: BTreeSet<_> = rows.iter().map(Row::name).collect();
        let gone = self.seen.extract_if(.., |name, _| !left.contains(name));
        gone.map(|(name, _)| name).collect()
    }

    fn is_news<R: Row>(&mut self, row: &R) -> Result<bool> {
        let mut value = serde_json::to_value(row).context("the answer cannot be compared")?;
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !RESTLESS.contains(&name.as_str()));
        }
        let before = self.seen.insert(row.name(), value.clone());
        Ok(before != Some(value))
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::super::{Cell, Column};
    use super::*;

    #[derive(Serialize)]
    struct Thing(BTreeMap<&'static str, &'static str>);

    impl Row for Thing {
        const COLUMNS: &'static [Column] = &[Column::new("NAME"), Column::new("PHASE")];

        fn cells(&self, _: Time) -> Vec<Cell> {
            vec![self.name().into(), self.0["phase"].into()]
        }

        fn name(&self) -> String {
            self.0["name"].into()
        }
    }

    fn thing(name: &'static str, phase: &'static str, age: &'static str) -> Thing {
        Thing(BTreeMap::from([("name", name), ("phase", phase), ("age", age)]))
    }

    #[test]
    fn only_what_has_changed_is_printed_again() {
        let mut out = Vec::new();
        let mut watch = Watch::new::<Thing>(None);
        for rows in [
            [thing("a", "Pending", "1s"), thing("b", "Active", "1s")],
            [thing("a", "Pending", "2s"), thing("b", "Active", "2s")],
            [thing("a", "Reserved", "3s"), thing("b", "Active", "3s")],
        ] {
            watch.print(&rows, Time::default(), &mut out).unwrap();
        }
        let said = String::from_utf8(out).unwrap();
        assert_eq!(said, "NAME   PHASE\na      Pending\nb      Active\na      Reserved\n");
    }

    #[test]
    fn who_tells_of_one_says_nothing_of_the_others() {
        let mut out = Vec::new();
        let mut watch = Watch::new::<Thing>(None);
        let list = [thing("a", "Keep", "1s"), thing("b", "Keep", "1s")];
        watch.print(&list, Time::default(), &mut out).unwrap();
        for row in [thing("b", "Gone", "2s"), thing("b", "Gone", "3s"), thing("a", "Keep", "3s")] {
            watch.print_one(&row, Time::default(), &mut out).unwrap();
        }
        watch.forget(&list[1]);
        watch.print(&list[..1], Time::default(), &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert_eq!(said, "NAME   PHASE\na      Keep\nb      Keep\nb      Gone\n");
    }

    #[test]
    fn what_is_gone_is_said_and_forgotten_and_is_news_when_it_comes_back() {
        let mut out = Vec::new();
        let mut watch = Watch::new::<Thing>(None);
        let a = || thing("a", "Active", "1s");
        for rows in [vec![a(), thing("b", "Active", "1s")], vec![a()], vec![a()], vec![]] {
            watch.print(&rows, Time::default(), &mut out).unwrap();
        }
        assert!(watch.seen.is_empty());
        watch.print(&[a()], Time::default(), &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        let lines: Vec<_> = said.lines().skip(1).collect();
        let expected =
            ["a      Active", "b      Active", "b      gone", "a      gone", "a      Active"];
        assert_eq!(lines, expected);
    }
}
