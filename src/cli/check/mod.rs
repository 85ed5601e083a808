//! `check`: whether the installation works, and what is wrong across rules, `DaemonSet`s, nodes and what makes nodes. Each
//! finding has an id, a fix and a section in the documentation.

mod deadlocks;
mod installation;
mod of_daemon_sets;
mod of_nodes;
mod of_rules;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::page::{Block, Branch, Line, Look, Page, Render, notes};
use crate::snapshot::Snapshot;
pub(super) use installation::installation;
pub(super) use nodegate_core::finding::{Check, Finding, Severity};
use nodegate_core::text::counted;
pub(super) use of_rules::upstream;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkup {
    pub rules: usize,
    pub daemon_sets: usize,
    /// The parts of the installation, and what is wrong with rules and cluster, errors first.
    pub findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Which lists were refused, if any: they may hold more faults.
    #[serde(skip)]
    pub unread: Option<String>,
}

impl Checkup {
    fn count(&self, severity: Severity) -> usize {
        let findings = self.findings.iter();
        findings.filter(|it| it.check.severity == severity).count()
    }
}

/// Runs every check. `installation` has the parts of the installation; files and dumps have none.
pub(super) fn check(installation: Vec<Finding>, snapshot: &Snapshot) -> Checkup {
    let places = snapshot.manifests.unreadable.iter().cloned();
    let broken = snapshot.unreadable.iter();
    let broken = broken.map(|it| (it.object(), it.why.to_string()));
    let unreadable = places.chain(broken).map(|(object, why)| {
        let fix = "correct it, and run check again";
        Finding::new(Check::UNREADABLE, object, why, fix)
    });
    let mut found: Vec<Finding> = unreadable
        .chain(of_rules::findings(snapshot))
        .chain(of_daemon_sets::findings(snapshot))
        .chain(deadlocks::findings(snapshot))
        .chain(of_nodes::findings(snapshot))
        .collect();
    found.sort_by_cached_key(|it| (it.check.severity, it.check.id, it.object.clone()));
    found.dedup();
    let unknown = installation.iter();
    let unknown = unknown.filter(|it| it.check.severity == Severity::Unknown);
    let unknown: Vec<&str> = unknown.map(|it| it.check.title).collect();
    let unknown = (!unknown.is_empty()).then(|| format!("unknown: {}", unknown.join(", ")));
    let unread: Vec<String> = unknown.into_iter().chain(snapshot.unread()).collect();
    Checkup {
        rules: snapshot.view.cached_rules().len(),
        daemon_sets: snapshot.manifests.daemon_sets.len(),
        findings: installation.into_iter().chain(found).collect(),
        notes: snapshot.gaps.iter().map(ToString::to_string).collect(),
        unread: (!unread.is_empty()).then(|| unread.join("; ")),
    }
}

impl Render for Checkup {
    const KIND: &'static str = "Check";

    fn blocks(&self, _: &Page) -> Vec<Block> {
        let rules = counted(self.rules, "rule");
        let daemon_sets = counted(self.daemon_sets, "DaemonSet");
        let line = Line::new().plain(format!("checked {rules} and {daemon_sets}: "));
        let line = match (self.count(Severity::Error), self.count(Severity::Warning)) {
            (0, 0) if self.unread.is_some() => line.poor("no faults found in what could be read"),
            (0, 0) => line.good("no faults found"),
            (errors, warnings) => {
                let look = if errors > 0 { Look::Bad } else { Look::Poor };
                let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
                line.with(look, format!("{errors}, {warnings}"))
            }
        };
        let findings = self.findings.iter().map(|it| of_finding(it).into());
        let notes = notes(&self.notes);
        findings.chain(notes).chain([line.into()]).collect()
    }

    fn is_no(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}

fn of_finding(finding: &Finding) -> Branch {
    let (look, word) = match finding.check.severity {
        Severity::Error => (Look::Bad, "error"),
        Severity::Warning => (Look::Poor, "warning"),
        Severity::Unknown => (Look::Poor, "unknown"),
        Severity::Ok => {
            let line = Line::new().good("ok  ").strong(&finding.object);
            return line.plain(format!(": {}", finding.message)).into();
        }
    };
    let head = Line::new().with(look, format!("{word} {}", finding.check.id));
    let head = head.plain("  ").strong(&finding.object);
    let head = match finding.check.title {
        title if title == finding.object => head,
        title => head.faint(format!("  {title}")),
    };
    let fix = (!finding.fix.is_empty()).then(|| Line::new().strong("fix: ").plain(&finding.fix));
    Branch::from(head)
        .over([finding.message.as_str()])
        .over(fix)
        .over([Line::new().faint(&finding.page)])
}
