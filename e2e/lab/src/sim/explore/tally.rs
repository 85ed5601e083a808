//! Counts of the schedules run.

use std::collections::BTreeMap;
use std::fmt;

use crate::sim::run::Outcome;
use crate::sim::script::Script;
use crate::sim::time::Time;

/// Counts of the schedules run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    scenarios: BTreeMap<&'static str, Tried>,
}

#[derive(Debug, Clone, Default)]
struct Tried {
    schedules: usize,
    /// By fault name.
    faults: BTreeMap<&'static str, usize>,
    changes: usize,
    simulated: Time,
    violations: usize,
}

impl Tried {
    fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        for (fault, count) in &other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        self.changes += other.changes;
        self.simulated += other.simulated;
        self.violations += other.violations;
    }
}

impl Tally {
    /// Counts a schedule.
    pub fn add(&mut self, script: &Script, outcome: &Outcome) {
        let tried = self.scenarios.entry(script.scenario.name).or_default();
        tried.schedules += 1;
        for fault in &script.faults {
            *tried.faults.entry(fault.name()).or_default() += 1;
        }
        tried.changes += outcome.cluster.changes().len();
        tried.simulated += outcome.cluster.now();
        tried.violations += usize::from(outcome.violation.is_some());
    }

    /// How many schedules were run.
    #[must_use]
    pub fn schedules(&self) -> usize {
        self.scenarios.values().map(|tried| tried.schedules).sum()
    }

    /// How many of them broke a law.
    #[must_use]
    pub fn violations(&self) -> usize {
        self.scenarios.values().map(|tried| tried.violations).sum()
    }
}

/// Prints a table and a total.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.scenarios.keys().map(|name| name.len()).max();
        let width = width.unwrap_or_default().max(8);
        writeln!(
            f,
            "{:width$} {:>9} {:>7} {:>7} {:>7} {:>7} {:>8} {:>7}",
            "scenario", "schedules", "killed", "lost", "unseen", "others", "changes", "broken"
        )?;
        let mut sum = Tried::default();
        for (name, tried) in &self.scenarios {
            line(f, name, tried, width)?;
            sum.add(tried);
        }
        line(f, "all", &sum, width)?;
        write!(
            f,
            "{} hours of a cluster's life",
            sum.simulated.as_secs() / 3600
        )
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, tried: &Tried, width: usize) -> fmt::Result {
    let of = |fault: &str| tried.faults.get(fault).copied().unwrap_or_default();
    let (killed, lost, unseen) = (of("Kill"), of("AnswerLost"), of("Unobserved"));
    let others = tried.faults.values().sum::<usize>() - killed - lost - unseen;
    writeln!(
        f,
        "{name:width$} {:>9} {killed:>7} {lost:>7} {unseen:>7} {others:>7} {:>8} {:>7}",
        tried.schedules, tried.changes, tried.violations
    )
}
