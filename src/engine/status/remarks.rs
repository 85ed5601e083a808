//! What a rule's author should know of what the rule waits for, whether or not it is in force. The rule's status has it as
//! conditions, and the command line prints the same.

use crate::finding::{Finding, summed_up};

pub(crate) const SHUT_OUT: &str = "DaemonSetsShutOut";
pub(crate) const OUTSIDE_NAMESPACES: &str = "DaemonSetsOutsideNamespaces";

/// Types of the conditions that findings become.
pub(crate) const REMARKS: [&str; 4] = [
    "ConditionsNotMade",
    "NothingToWaitFor",
    SHUT_OUT,
    OUTSIDE_NAMESPACES,
];

/// What is wrong with what the rule waits for: one finding for each condition of its status.
pub(crate) fn remarks(findings: &[Finding]) -> Vec<Finding> {
    let of_kind = |kind| summed_up(findings.iter().filter(|it| it.is_published_as(kind)));
    REMARKS.into_iter().filter_map(of_kind).collect()
}
