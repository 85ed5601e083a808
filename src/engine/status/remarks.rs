//! What a rule's author should know of what the rule waits for, whether or not it is in force. The rule's status has it as
//! conditions, and the command line prints the same.

use crate::finding::{Finding, of_backing, of_passed_over, summed_up};
use crate::plan::{Backing, PassedOver, WhyPassedOver};
use crate::rule::CompiledSpec;
use crate::wording::counted;

/// The condition type of a rule with conditions that are met on no node.
pub(crate) const NOT_MADE: &str = "ConditionsNotMade";
/// The condition type of a rule whose taint shuts out a `DaemonSet` that it waits for.
pub(crate) const SHUT_OUT: &str = "DaemonSetsShutOut";

/// Types of the conditions that remarks become.
pub(crate) const REMARKS: [&str; 4] = [
    NOT_MADE,
    "NothingToWaitFor",
    SHUT_OUT,
    "DaemonSetsOutsideNamespaces",
];

/// A remark, as a condition of the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// The condition's type.
    pub kind: &'static str,
    pub reason: &'static str,
    pub message: String,
}

/// What is wrong with what the rule waits for.
pub(crate) fn remarks(spec: &CompiledSpec, backing: &Backing) -> Vec<Remark> {
    let findings = of_backing("", spec, backing);
    let remark = |kind: &'static str| {
        let is_of_it = |it: &&Finding| it.condition.is_some_and(|(of, _)| of == kind);
        let of_it: Vec<&Finding> = findings.iter().filter(is_of_it).collect();
        let (_, reason) = of_it.first()?.condition?;
        let message = summed_up(&of_it);
        Some(Remark {
            kind,
            reason,
            message,
        })
    };
    REMARKS.into_iter().filter_map(remark).collect()
}

/// Which `DaemonSet`s run on only some of the rule's nodes. Nothing is wrong with that, but its author may not expect it.
pub(crate) fn partial_placements(backing: &Backing) -> impl Iterator<Item = String> {
    let partial = backing.placements.iter().filter(|it| it.runs_on > 0);
    partial.map(|it| {
        let (name, runs_on, nodes) = (&it.daemon_set, it.runs_on, counted(it.selected, "node"));
        format!("DaemonSet {name} runs on {runs_on} of the {nodes} that the rule selects; the others do not wait for it")
    })
}

/// The message about `DaemonSet`s that a rule does not wait for, or in vain, and how to fix that; `None` if there are none.
pub(crate) fn passed_over_message(
    spec: &CompiledSpec,
    passed_over: &[PassedOver],
    why: WhyPassedOver,
) -> Option<String> {
    let of_it: Vec<PassedOver> = passed_over
        .iter()
        .filter(|it| it.why == why)
        .cloned()
        .collect();
    let findings: Vec<Finding> = of_passed_over(spec, &of_it).collect();
    let findings: Vec<&Finding> = findings.iter().collect();
    (!findings.is_empty()).then(|| summed_up(&findings))
}
