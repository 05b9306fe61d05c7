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
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

/// Prints the headings and the rows; without rows it says so.
pub(super) fn print(
    columns: &[Column],
    rows: Vec<Vec<Cell>>,
    wide: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "nothing found");
    }
    let shown = |row: Vec<Cell>| -> Vec<Cell> {
        let cells = row.into_iter().zip(columns);
        cells.filter(|(_, column)| wide || !column.wide).map(|(cell, _)| cell).collect()
    };
    let headings = columns.iter().map(|column| column.heading.into()).collect();
    let lines: Vec<_> = std::iter::once(headings).chain(rows).map(shown).collect();
    let widths = widths(&lines);
    lines.iter().try_for_each(|line| print_line(line, &widths, out))
}

fn widths(lines: &[Vec<Cell>]) -> Vec<usize> {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |line: &Vec<Cell>, column| line.get(column).map_or(0, width);
    (0..columns).map(|c| lines.iter().map(|line| width(line, c)).max().unwrap_or(0)).collect()
}

fn width(cell: &Cell) -> usize {
    cell.text.chars().count()
}

fn print_line(line: &[Cell], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
    let last = line.len().saturating_sub(1);
    for (number, (cell, widest)) in line.iter().zip(widths).enumerate() {
        let Cell { text, style } = cell;
        // Nothing behind the last column: lines that end in spaces wrap and paste badly.
        let space = if number == last { 0 } else { widest + GAP - width(cell) };
        write!(out, "{style}{text}{style:#}{:space$}", "")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::new("NAME"), Column::wide("SERIAL"), Column::new("AGE")];

    fn printed(rows: &[[&str; 3]], wide: bool) -> String {
        let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).into()).collect());
        let mut out = Vec::new();
        print(&COLUMNS, rows.collect(), wide, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["edge-1", "0a", "5s"], ["a", "0b", "12m"]];
        assert_eq!(printed(&rows, false), "NAME     AGE\nedge-1   5s\na        12m\n");
        assert!(printed(&rows, true).starts_with("NAME     SERIAL   AGE\nedge-1   0a       5s\n"));
    }

    #[test]
    fn an_empty_list_says_so() {
        assert_eq!(printed(&[], false), "nothing found\n");
    }
}
