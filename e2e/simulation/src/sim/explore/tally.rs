//! Counts of the schedules run.

use std::collections::BTreeMap;
use std::fmt;

use crate::sim::fault::Fault;
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
    killed: usize,
    lost: usize,
    unseen: usize,
    others: usize,
    changes: usize,
    simulated: Time,
    violations: usize,
}

impl Tried {
    fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.killed += other.killed;
        self.lost += other.lost;
        self.unseen += other.unseen;
        self.others += other.others;
        self.changes += other.changes;
        self.simulated += other.simulated;
        self.violations += other.violations;
    }
}

impl Tally {
    pub fn add(&mut self, script: &Script, outcome: &Outcome) {
        let tried = self.scenarios.entry(script.scenario.name()).or_default();
        tried.schedules += 1;
        for fault in &script.faults {
            *match fault {
                Fault::Kill { .. } => &mut tried.killed,
                Fault::AnswerLost { .. } => &mut tried.lost,
                Fault::Unobserved { .. } => &mut tried.unseen,
                Fault::Timed { .. } => &mut tried.others,
            } += 1;
        }
        tried.changes += outcome.cluster.changes().len();
        tried.simulated += outcome.cluster.now();
        tried.violations += usize::from(outcome.violation.is_some());
    }

    pub fn schedules(&self) -> usize {
        self.scenarios.values().map(|tried| tried.schedules).sum()
    }

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
    let Tried {
        schedules,
        killed,
        lost,
        unseen,
        others,
        changes,
        violations,
        ..
    } = tried;
    writeln!(
        f,
        "{name:width$} {schedules:>9} {killed:>7} {lost:>7} {unseen:>7} {others:>7} {changes:>8} {violations:>7}"
    )
}
