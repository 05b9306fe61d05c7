//! Tables for people, one JSON document for programs, and the targets at the end.
#![expect(clippy::print_stdout, reason = "a benchmark talks to a person on a terminal")]

use serde_json::{Value, json};

/// One table.
pub(crate) struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        let columns = columns.to_vec();
        Self { title: title.into(), columns, rows: vec![], notes: vec![] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// What has to be known to read it.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn print(&self) {
        println!("\n### {}\n", self.title);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            let title = self.columns.get(column).map_or(0, |title| title.chars().count());
            widths.max().unwrap_or(0).max(title)
        };
        let line = |cells: &[String]| {
            let padded = cells.iter().enumerate().map(|(column, cell)| {
                let width = width(column);
                if column == 0 { format!(" {cell:<width$} ") } else { format!(" {cell:>width$} ") }
            });
            format!("|{}|", padded.collect::<Vec<_>>().join("|"))
        };
        println!("{}", line(&self.columns.iter().map(ToString::to_string).collect::<Vec<_>>()));
        let dashes = (0..self.columns.len()).map(|column| {
            let dashes = "-".repeat(width(column) + 1);
            if column == 0 { format!("{dashes}-") } else { format!("{dashes}:") }
        });
        println!("|{}|", dashes.collect::<Vec<_>>().join("|"));
        for row in &self.rows {
            println!("{}", line(row));
        }
        for note in &self.notes {
            println!("\n{note}");
        }
    }

    fn json(&self) -> Value {
        json!({
            "title": self.title, "columns": self.columns, "rows": self.rows, "notes": self.notes,
        })
    }
}

/// Everything that was measured.
pub(crate) struct Report {
    as_json: bool,
    tables: Vec<Table>,
    targets: Table,
}

impl Report {
    pub(crate) fn new(as_json: bool) -> Self {
        let targets = Table::new("Targets", &["target", "to reach", "found", ""]);
        Self { as_json, tables: vec![], targets }
    }

    /// Shows a table as soon as it is there.
    pub(crate) fn add(&mut self, table: Table) {
        if !self.as_json {
            table.print();
        }
        self.tables.push(table);
    }

    /// Says whether a target was reached.
    pub(crate) fn target(&mut self, what: &str, reach: String, found: String, reached: bool) {
        let verdict = if reached { "reached" } else { "MISSED" };
        self.targets.row([what.into(), reach, found, verdict.into()]);
    }

    /// Shows what is left to show.
    pub(crate) fn finish(self) {
        if self.as_json {
            let tables: Vec<_> =
                self.tables.iter().chain([&self.targets]).map(Table::json).collect();
            println!("{:#}", json!({ "tables": tables }));
        } else if !self.targets.rows.is_empty() {
            self.targets.print();
        }
    }
}

/// A time in the unit that suits it.
pub(crate) fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e5 => format!("{:.2} µs", n / 1e3),
        n if n < 1e6 => format!("{:.0} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

/// How many times.
pub(crate) fn ratio(of: f64, to: f64) -> String {
    let ratio = of / to;
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

/// A count with its thousands apart.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let first = digits.len() % 3;
    let (head, tail) = digits.split_at(first);
    let groups = tail.as_bytes().chunks(3).map(String::from_utf8_lossy);
    let head = (!head.is_empty()).then(|| head.into());
    head.into_iter().chain(groups).collect::<Vec<_>>().join(" ")
}
