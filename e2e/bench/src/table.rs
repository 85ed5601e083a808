//! Markdown tables, and the format of their figures. Pure.

use std::fmt::Write as _;

use crate::measure::{Latencies, Spread};
use crate::results::{Results, Run};

/// A numeric value of a run.
pub(crate) type Value<'a> = &'a dyn Fn(&Run) -> Option<f64>;

/// A value over some runs: its median, and the range where it is not a single value.
pub(crate) fn figure(runs: &[Run], value: Value<'_>, format: fn(f64) -> String) -> Option<String> {
    Some(Spread::of(runs.iter().filter_map(value))?.text(format))
}

/// A quantile of latencies.
pub(crate) type Quantile = fn(&Latencies) -> f64;

/// The head of a table with a column for each number of nodes.
pub(crate) fn head(first: String, results: &Results) -> impl Iterator<Item = String> {
    let sizes = results
        .sizes()
        .map(|runs| format!("{} nodes", count(runs[0].nodes)));
    [first].into_iter().chain(sizes)
}

pub(crate) fn seconds(value: f64) -> String {
    format!("{value:.2} s")
}

pub(crate) fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.3} %", 100.0 * share)
}

pub(crate) fn mebibytes(value: f64) -> String {
    format!("{value:.0} MiB")
}

pub(crate) fn kibibytes(value: f64) -> String {
    format!("{value:.1} KiB")
}

/// A count, as a whole number.
pub(crate) fn whole(value: f64) -> String {
    with_thousands(&format!("{value:.0}"))
}

/// Milliseconds with about two significant digits.
pub(crate) fn milliseconds(value: f64) -> String {
    match value {
        value if value < 0.995 => format!("{value:.2} ms"),
        value if value < 9.95 => format!("{value:.1} ms"),
        value if value < 9950.0 => format!("{value:.0} ms"),
        value => format!("{:.1} s", value / 1e3),
    }
}

/// A count with separated thousands.
pub(crate) fn count(value: usize) -> String {
    with_thousands(&value.to_string())
}

pub(crate) fn with_thousands(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Builds a Markdown table.
pub(crate) struct Table {
    pub(crate) text: String,
}

impl Table {
    pub(crate) fn new(head: impl IntoIterator<Item = String>) -> Self {
        let mut table = Self {
            text: String::new(),
        };
        let columns = table.row(head);
        table.row((0..columns).map(|_| "---".to_owned()));
        table
    }

    /// Adds a row and returns its number of cells.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) -> usize {
        let mut columns = 0;
        for cell in cells {
            let _ = write!(self.text, "| {cell} ");
            columns += 1;
        }
        self.text.push_str("|\n");
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_precise_as_they_are_worth() {
        let cases = [
            (0.25, "0.25 ms"),
            (0.999, "1.0 ms"),
            (4.44, "4.4 ms"),
            (9.96, "10 ms"),
            (123.4, "123 ms"),
            (24_700.0, "24.7 s"),
        ];
        for (value, expected) in cases {
            assert_eq!(milliseconds(value), expected);
        }
        assert_eq!(
            [1, 300, 1000, 10_000, 1_234_567].map(count).join(" "),
            "1 300 1,000 10,000 1,234,567"
        );
    }

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new(["a", "b"].map(str::to_owned));
        table.row(["1", "2"].map(str::to_owned));
        assert_eq!(table.text, "| a | b |\n| --- | --- |\n| 1 | 2 |\n");
    }
}
