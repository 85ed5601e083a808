//! `lint`: finds faults across rules, `DaemonSet`s and node provisioners. Each finding has an id, a fix and a section in the
//! documentation.

mod deadlocks;
mod fault;
mod input;
mod of_daemon_sets;
mod of_nodes;
mod of_rules;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::page::{Branch, Line, Look, Page, Render};
use crate::cli::snapshot::Inventory;
use crate::wording::counted;
pub(super) use fault::{Fault, FaultKind, Severity};
use input::LintInput;

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lint {
    /// How many rules were checked.
    pub rules: usize,
    /// How many `DaemonSet`s were checked.
    pub daemon_sets: usize,
    /// The findings, errors first.
    pub findings: Vec<Fault>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Which lists were refused, if any: they may hold more faults.
    #[serde(skip)]
    pub unread: Option<String>,
}

impl Lint {
    pub(super) fn count(&self, severity: Severity) -> usize {
        let findings = self.findings.iter();
        findings.filter(|fault| fault.severity == severity).count()
    }
}

/// Runs every check.
pub(super) fn lint(inventory: &Inventory) -> Lint {
    let field = LintInput::new(inventory);
    let unreadable = inventory.unreadable.iter();
    let unreadable = unreadable.map(|(place, why)| {
        Fault::new(
            FaultKind::UNREADABLE,
            place,
            why,
            "correct it, and run lint again",
        )
    });
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
        unread: inventory.unread(),
    }
}

impl Render for Lint {
    const KIND: &'static str = "Lint";

    fn text(&self, page: &Page) -> String {
        let mut out = String::new();
        for fault in &self.findings {
            page.tree(&mut out, &of_fault(fault));
        }
        page.notes(&mut out, &self.notes);
        let seen = format!(
            "checked {} and {}: ",
            counted(self.rules, "rule"),
            counted(self.daemon_sets, "DaemonSet")
        );
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let line = match (errors, warnings) {
            (0, 0) if self.unread.is_some() => Line::new()
                .plain(seen)
                .poor("no faults found in what could be read"),
            (0, 0) => Line::new().plain(seen).good("no faults found"),
            (errors, warnings) => {
                let look = if errors > 0 { Look::Bad } else { Look::Poor };
                let found = format!(
                    "{}, {}",
                    counted(errors, "error"),
                    counted(warnings, "warning")
                );
                Line::new().plain(seen).with(look, found)
            }
        };
        page.line(&mut out, line);
        out
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.findings.iter().map(|it| it.object.clone()).collect();
        names.dedup();
        names
    }

    fn is_no(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    fn unread(&self) -> Option<String> {
        self.unread.clone()
    }
}

fn of_fault(fault: &Fault) -> Branch {
    let (look, word) = match fault.severity {
        Severity::Error => (Look::Bad, "error"),
        Severity::Warning => (Look::Poor, "warning"),
    };
    let head = Line::new()
        .with(look, format!("{word} {}", fault.id))
        .plain("  ")
        .strong(&fault.object)
        .faint(format!("  {}", fault.title));
    Branch::new(head).over([
        Branch::new(fault.what.as_str()),
        Branch::new(Line::new().strong("fix: ").plain(&fault.fix)),
        Branch::new(Line::new().faint(&fault.page)),
    ])
}
