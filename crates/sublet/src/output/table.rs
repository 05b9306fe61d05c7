//! Columns as kubectl prints them: no borders, three spaces between.

use std::io::{self, Write};

use anstyle::Style;

/// Between two columns.
const GAP: usize = 3;

/// One column.
pub(crate) struct Column {
    heading: &'static str,
    /// Only with `-o wide`.
    wide: bool,
}

impl Column {
    /// Always there.
    pub(crate) const fn new(heading: &'static str) -> Self {
        Self { heading, wide: false }
    }

    /// There with `-o wide`.
    pub(crate) const fn wide(heading: &'static str) -> Self {
        Self { heading, wide: true }
    }
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A text that stands out on a terminal.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

/// A table that may grow: its columns become wider, and its headings are printed once.
pub(super) struct Table {
    columns: &'static [Column],
    wide: bool,
    widths: Vec<usize>,
    is_begun: bool,
}

impl Table {
    pub(super) fn new(columns: &'static [Column], wide: bool) -> Self {
        Self { columns, wide, widths: Vec::new(), is_begun: false }
    }

    /// Prints more rows, under the headings if they are the first.
    pub(super) fn print(&mut self, rows: Vec<Vec<Cell>>, out: &mut impl Write) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let headings = self.columns.iter().map(|column| column.heading.into()).collect();
        let headings = (!self.is_begun).then_some(headings);
        self.is_begun = true;
        let lines = headings.into_iter().chain(rows).map(|row| self.shown(row));
        let lines: Vec<_> = lines.collect();
        for line in &lines {
            self.widths.resize(self.widths.len().max(line.len()), 0);
            for (width, cell) in self.widths.iter_mut().zip(line) {
                *width = cell.width().max(*width);
            }
        }
        lines.iter().try_for_each(|line| self.print_line(line, out))
    }

    fn shown(&self, row: Vec<Cell>) -> Vec<Cell> {
        let cells = row.into_iter().zip(self.columns);
        cells.filter(|(_, column)| self.wide || !column.wide).map(|(cell, _)| cell).collect()
    }

    fn print_line(&self, line: &[Cell], out: &mut impl Write) -> io::Result<()> {
        let last = line.len().saturating_sub(1);
        for (number, (cell, widest)) in line.iter().zip(&self.widths).enumerate() {
            let Cell { text, style } = cell;
            // Nothing behind the last column: lines that end in spaces wrap and paste badly.
            let space = if number == last { 0 } else { widest + GAP - cell.width() };
            write!(out, "{style}{text}{style:#}{:space$}", "")?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::new("NAME"), Column::wide("SERIAL"), Column::new("AGE")];

    fn printed(tables: &[&[[&str; 3]]], wide: bool) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(&COLUMNS, wide);
        for rows in tables {
            let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).into()).collect());
            table.print(rows.collect(), &mut out).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["edge-1", "0a", "5s"], ["a", "0b", "12m"]];
        assert_eq!(printed(&[&rows], false), "NAME     AGE\nedge-1   5s\na        12m\n");
        let wide = printed(&[&rows], true);
        assert!(wide.starts_with("NAME     SERIAL   AGE\nedge-1   0a       5s\n"), "{wide}");
    }

    #[test]
    fn a_table_goes_on_under_its_headings() {
        let (first, then) = ([["edge-1", "0a", "5s"]], [["a", "0b", "12m"]]);
        let printed = printed(&[&first, &[], &then], false);
        assert_eq!(printed, "NAME     AGE\nedge-1   5s\na        12m\n");
    }
}
