//! A list that is looked at again and again: only what has changed is printed.

use std::collections::BTreeMap;
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

    /// Prints those of `rows` that are new or other than before; JSON one a line, so that a script
    /// can read them as they come.
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
                self.table.print(changed.iter().map(|row| row.cells(now)).collect(), out)?;
            }
        }
        Ok(out.flush()?)
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
}
