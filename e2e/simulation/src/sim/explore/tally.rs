//! Counts of the schedules run.

use std::collections::BTreeMap;
use std::fmt;

use crate::sim::fault::Fault;
use crate::sim::run::Outcome;
use crate::sim::script::Script;
use crate::sim::time::Time;

/// The columns of the table: what is counted for each scenario.
const COLUMNS: [&str; 7] = [
    "schedules",
    "killed",
    "lost",
    "unseen",
    "others",
    "changes",
    "broken",
];
/// Their widths.
const WIDTHS: [usize; 7] = [9, 7, 7, 7, 7, 8, 7];

type Counts = [usize; 7];

/// Counts of the schedules run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    scenarios: BTreeMap<&'static str, Counts>,
    simulated: Time,
}

impl Tally {
    pub fn add(&mut self, script: &Script, outcome: &Outcome) {
        let counts = self.scenarios.entry(script.scenario.name()).or_default();
        counts[0] += 1;
        for fault in &script.faults {
            let column = match fault {
                Fault::Kill { .. } => 1,
                Fault::AnswerLost { .. } => 2,
                Fault::Unobserved { .. } => 3,
                Fault::Timed { .. } => 4,
            };
            counts[column] += 1;
        }
        counts[5] += outcome.cluster.changes().len();
        counts[6] += usize::from(outcome.violation.is_some());
        self.simulated += outcome.cluster.now();
    }

    pub fn schedules(&self) -> usize {
        self.scenarios.values().map(|counts| counts[0]).sum()
    }
}

/// Prints a table and a total.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.scenarios.keys().map(|name| name.len()).max();
        let width = width.unwrap_or_default().max(8);
        let mut line = |name: &str, cells: [String; 7]| {
            write!(f, "{name:width$}")?;
            for (cell, width) in cells.iter().zip(WIDTHS) {
                write!(f, " {cell:>width$}")?;
            }
            writeln!(f)
        };
        line("scenario", COLUMNS.map(str::to_owned))?;
        let mut all = Counts::default();
        for (name, counts) in &self.scenarios {
            line(name, counts.map(|count| count.to_string()))?;
            for (sum, count) in all.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        line("all", all.map(|count| count.to_string()))?;
        let hours = self.simulated.as_secs() / 3600;
        write!(f, "{hours} hours of a cluster's life")
    }
}
