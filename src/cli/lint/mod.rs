//! `lint`: faults across rules, `DaemonSet`s and what makes nodes, each with an id, a way out and a place in the
//! documentation.
//!
//! | file | what it does |
//! |---|---|
//! | `fault` | what there is to find, and what is found |
//! | `field` | what is looked over, made ready |
//! | `of_rules` | faults of rules, and between them |
//! | `of_daemon_sets` | faults of what nodes wait for |
//! | `deadlocks` | what waits for itself |
//! | `of_nodes` | faults of what makes nodes: Karpenter, Cluster Autoscaler |
//! | `text` | all of it for people |

mod deadlocks;
mod fault;
mod field;
mod of_daemon_sets;
mod of_nodes;
mod of_rules;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use crate::cli::snapshot::Inventory;
pub use fault::{Check, Fault, Severity};
use field::Field;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lint {
    /// How many rules were looked over.
    pub rules: usize,
    /// How many `DaemonSet`s.
    pub daemon_sets: usize,
    /// What was found, errors first.
    pub findings: Vec<Fault>,
    /// What this answer goes without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Lint {
    /// How many findings are of this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let findings = self.findings.iter();
        findings.filter(|fault| fault.severity == severity).count()
    }
}

/// Looks over what there is.
#[must_use]
pub fn lint(inventory: &Inventory) -> Lint {
    let field = Field::new(inventory);
    let unreadable = inventory.unreadable.iter();
    let unreadable = unreadable
        .map(|(place, why)| Fault::new(Check::Unreadable, place, why, "mend it, and look again"));
    let mut findings: Vec<Fault> = unreadable
        .chain(of_rules::faults(&field))
        .chain(of_daemon_sets::faults(&field))
        .chain(deadlocks::faults(&field))
        .chain(of_nodes::faults(&field))
        .collect();
    findings.sort_by(|a, b| {
        let key = |fault: &Fault| (fault.severity, fault.id, fault.object.clone());
        key(a).cmp(&key(b))
    });
    findings.dedup();
    Lint {
        rules: inventory.rules.len(),
        daemon_sets: inventory.daemon_sets.len(),
        findings,
        notes: inventory.notes.clone(),
    }
}
