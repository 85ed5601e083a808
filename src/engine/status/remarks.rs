//! What a rule's author should know of what the rule waits for, whether or not it is in force. The rule's status has it as
//! conditions, and the command line prints the same.

use crate::finding::{Finding, of_backing, of_passed_over, summed_up};
use crate::plan::{Backing, PassedOver, WhyPassedOver};
use crate::rule::CompiledSpec;
use crate::wording::counted;

/// Types of the conditions that findings become.
pub(crate) const REMARKS: [&str; 4] = [
    "ConditionsNotMade",
    "NothingToWaitFor",
    "DaemonSetsShutOut",
    "DaemonSetsOutsideNamespaces",
];

/// What is wrong with what the rule waits for: one finding for each condition of its status.
pub(crate) fn remarks(spec: &CompiledSpec, backing: &Backing) -> Vec<Finding> {
    let findings = of_backing("", spec, backing);
    let of_kind = |kind: &'static str| {
        let is_of_it = |it: &&Finding| it.condition.is_some_and(|(of, _)| of == kind);
        summed_up(findings.iter().filter(is_of_it))
    };
    REMARKS.into_iter().filter_map(of_kind).collect()
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
    let of_it = passed_over.iter().filter(|it| it.why == why);
    let findings: Vec<Finding> = of_it.map(|it| of_passed_over(spec, it)).collect();
    summed_up(findings.iter()).map(|it| it.message)
}
