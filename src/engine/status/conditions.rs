//! The conditions in a rule's status.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::tally::Tally;
use super::{Basis, would_gate};
use nodegate_core::api::NodeReadinessRuleStatus;
use nodegate_core::finding::{Check, Finding, summed_up};
use nodegate_core::object::whole_second;
use nodegate_core::plan::Standing;
use nodegate_core::rule::{CompiledSpec, Rule};
use nodegate_core::text::{counted, enumerated};

const ACCEPTED: &str = "Accepted";
pub(crate) const CONFLICTED: &str = "Conflicted";
pub(crate) const REPAIR_UNAVAILABLE: &str = "RepairUnavailable";
pub(crate) const DISRUPTION_LIMITED: &str = "DisruptionLimited";
/// The condition of a rule that would gate too many nodes in use as it comes into force.
pub const HELD_BACK: &str = "HeldBack";
/// The conditions that say what becomes of the rule's nodes.
const ABOUT_NODES: [&str; 3] = [CONFLICTED, REPAIR_UNAVAILABLE, DISRUPTION_LIMITED];
pub(crate) const NOT_MADE: &str = "ConditionsNotMade";
pub(crate) const SHUT_OUT: &str = "DaemonSetsShutOut";
pub(crate) const OUTSIDE_NAMESPACES: &str = "DaemonSetsOutsideNamespaces";
/// The conditions that say what a rule's author should know of what it waits for, in force or not. The command line prints these.
pub const REMARKS: [&str; 5] = [
    NOT_MADE,
    "NothingToWaitFor",
    SHUT_OUT,
    OUTSIDE_NAMESPACES,
    "HeartbeatTimeoutWaits",
];
const SUSPENDED: &str = "Suspended";
pub const MET_BY_NO_NODE: &str = Check::MET_BY_NO_NODE.published[0].0;
pub const SELECTS_NO_NODE: &str = Check::SELECTS_NO_NODE.published[0].0;
/// The reason for which a rule is neither accepted nor in force while another definition has dropped its fields.
pub(crate) const FIELDS_PRUNED: &str = "FieldsPruned";
/// The reason of that condition while all rules are suspended. The policy that gates nodes at birth goes by it.
const ALL_SUSPENDED: &str = "AllRulesSuspended";

/// What is wrong with what the rule waits for: one finding for each of these conditions.
pub(crate) fn remarks(findings: &[Finding]) -> Vec<Finding> {
    let of_kind = |kind| summed_up(findings.iter().filter(|it| it.is_published_as(kind)));
    REMARKS.into_iter().filter_map(of_kind).collect()
}

/// The condition of this type, if it holds.
pub fn holding<'a>(status: &'a NodeReadinessRuleStatus, kind: &str) -> Option<&'a Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|it| it.type_ == kind && it.status == "True")
}

/// Whether a rule's status says that all rules are suspended.
pub fn says_all_suspended(status: &NodeReadinessRuleStatus) -> bool {
    holding(status, SUSPENDED).is_some_and(|it| it.reason == ALL_SUSPENDED)
}

/// Whether a rule's status says that this condition holds for this generation of it.
pub fn says(status: &NodeReadinessRuleStatus, kind: &str, generation: i64) -> bool {
    holding(status, kind).is_some_and(|it| it.observed_generation == Some(generation))
}

impl Basis<'_> {
    fn condition(self, kind: &str, holds: bool, reason: &str, message: String) -> Condition {
        let status = if holds { "True" } else { "False" };
        let mut previous = self.previous.conditions.iter();
        let previous = previous.find(|known| known.type_ == kind && known.status == status);
        Condition {
            type_: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message,
            observed_generation: Some(self.rule.generation),
            last_transition_time: previous.map_or(Time(whole_second(self.now)), |known| {
                known.last_transition_time.clone()
            }),
        }
    }
}

/// The conditions in the rule's status. `Accepted` and `Conflicted` are always present, the others only while they apply.
pub(super) fn conditions(tally: &Tally<'_>, basis: Basis<'_>) -> Vec<Condition> {
    let rule = basis.rule;
    let spec = match &rule.spec {
        Ok(spec) => spec,
        Err(rejection) => {
            return vec![basis.condition(ACCEPTED, false, "Invalid", rejection.to_string())];
        }
    };
    let limit = basis.first_limit.filter(|_| !rule.is_suspended());
    let held_back = limit.zip(basis.held_back).map(|(limit, lately)| {
        let would_gate = would_gate(rule, tally.matched(), tally.found());
        would_gate.after(lately).held_back(limit)
    });
    let conflict = conflict(tally, spec, basis.governors);
    let remarks = remarks(&basis.backing.findings);
    let without = without_nodes(tally, spec, basis);
    let without = without.filter(|_| held_back.is_none() && conflict.is_none());
    // `kubectl get -o wide` shows this message and no other.
    let state = match (rule.is_suspended(), spec.dry_run, &held_back, &conflict) {
        (true, ..) => "the rule is suspended",
        (false, true, ..) => "the rule is a dry run: no node is changed",
        (false, false, Some(message), _) => &format!("the rule is held back: it {message}"),
        (false, false, None, Some((_, message))) => message.as_str(),
        (false, false, None, None) => "the rule is in force",
    };
    // What nothing makes is met by no node.
    let news = without.iter().filter(|_| remarks.is_empty());
    let wrong = remarks.iter().chain(news).map(|it| it.message.clone());
    let parts = std::iter::once(state.to_owned()).chain(wrong);
    let parts: Vec<String> = parts.chain(basis.backing.notes.iter().cloned()).collect();
    let accepted = match rule.trouble() {
        Some(trouble) if rule.pruned => basis.condition(ACCEPTED, false, FIELDS_PRUNED, trouble),
        Some(trouble) => basis.condition(ACCEPTED, false, "NoSuchClass", trouble),
        None => basis.condition(ACCEPTED, true, "Valid", parts.join("; ")),
    };
    let no_other = "no other rule governs the same taint";
    let conflicted = match conflict {
        Some((reason, message)) => basis.condition(CONFLICTED, true, reason, message),
        None => basis.condition(CONFLICTED, false, "NoConflict", no_other.into()),
    };
    let mut conditions = vec![accepted, conflicted];
    if let Some(message) = held_back {
        conditions.push(basis.condition(HELD_BACK, true, "WouldGateTooMany", message));
    }
    if let Some(obstacle) = basis.obstacle {
        let message = format!("no node can be repaired: {obstacle}");
        conditions.push(basis.condition(REPAIR_UNAVAILABLE, true, "NoNodeClaims", message));
    }
    if let Some(report) = basis.disruption {
        let limits = report.waiting > 0;
        let reason = match limits {
            true if report.all_zones_disrupted => "AllZonesDisrupted",
            true => "NodesHeldBack",
            false => "NoNodeHeldBack",
        };
        let message = report.to_string();
        conditions.push(basis.condition(DISRUPTION_LIMITED, limits, reason, message));
    }
    for remark in remarks.into_iter().chain(without) {
        if let [(kind, reason)] = remark.check.published {
            conditions.push(basis.condition(kind, true, reason, remark.message));
        }
    }
    if rule.is_suspended() {
        let all = "all rules are suspended: they change no node";
        let it = "the rule changes no node";
        let (reason, message) = match (basis.suspends_all, rule.pruned) {
            (true, _) => (ALL_SUSPENDED, all),
            (false, true) => (FIELDS_PRUNED, it),
            (false, false) => (SUSPENDED, it),
        };
        conditions.push(basis.condition(SUSPENDED, true, reason, message.into()));
    }
    conditions
}

/// That no node meets what the rule asks for, or that it selects none; unknown while some have yet to be evaluated.
fn without_nodes(tally: &Tally<'_>, spec: &CompiledSpec, basis: Basis<'_>) -> Option<Finding> {
    let (name, matched) = (&basis.rule.name, tally.matched());
    if basis.rule.is_suspended() || basis.rule.deleting || matched < basis.selected {
        return None;
    }
    let (check, message) = if matched == 0 && basis.nodes > 0 {
        let (nodes, selector) = (counted(basis.nodes, "node"), &spec.selector);
        let message = format!("it selects none of {nodes}, by {selector}");
        (Check::SELECTS_NO_NODE, message)
    } else if matched > 0 && tally.found().all(|it| it.unmet) {
        let nodes = counted(matched, "node");
        let message = format!("none of the {nodes} that it selects meets what it asks for");
        (Check::MET_BY_NO_NODE, message)
    } else {
        return None;
    };
    Some(Finding::of_rule(check, name, message, ""))
}

/// What `kubectl get` shows of a rule with these conditions.
pub(super) fn state(rule: &Rule, conditions: &[Condition]) -> &'static str {
    let holding = conditions.iter().filter(|it| it.status == "True");
    let holding: Vec<&str> = holding.map(|it| &*it.type_).collect();
    let is = |kind: &str| holding.contains(&kind);
    let states = [
        (rule.deleting, "being deleted"),
        (!is(ACCEPTED), "invalid"),
        (is(SUSPENDED), "suspended"),
        (rule.spec.as_ref().is_ok_and(|it| it.dry_run), "dry run"),
        (is(HELD_BACK), "held back"),
        (is(CONFLICTED), "conflicted"),
        (is(MET_BY_NO_NODE), "nothing meets it"),
        (is(SELECTS_NO_NODE), "selects no node"),
    ];
    let mut states = states.into_iter().filter(|(holds, _)| *holds);
    states.next().map_or("in force", |(_, state)| state)
}

/// Adds, for tools that know kstatus, that nothing goes on until a person acts.
pub(super) fn stall(conditions: &mut Vec<Condition>, basis: Basis<'_>) {
    let stalls = |it: &&Condition| match &*it.type_ {
        ACCEPTED => it.status == "False",
        CONFLICTED | HELD_BACK => it.status == "True",
        _ => false,
    };
    if let Some(it) = conditions.iter().find(stalls) {
        let stalled = basis.condition("Stalled", true, &it.reason, it.message.clone());
        conditions.push(stalled);
    }
}

/// The conditions of a suspended rule. What they say of its nodes stays unchanged; what they say of what it waits for does not.
pub(super) fn suspended(tally: &Tally<'_>, basis: Basis<'_>) -> Vec<Condition> {
    let mut conditions = conditions(tally, basis);
    let stays = |kind: &str| ABOUT_NODES.contains(&kind);
    let before: Vec<_> = basis.previous.conditions.iter().collect();
    conditions.retain(|it| !stays(&it.type_) || before.iter().all(|known| known.type_ != it.type_));
    let kept = before.into_iter().filter(|known| stays(&known.type_));
    conditions.splice(1..1, kept.cloned());
    conditions
}

/// Which earlier rules govern this rule's taint on existing nodes or, failing that, on possible nodes, as reason and message.
fn conflict(
    tally: &Tally<'_>,
    spec: &CompiledSpec,
    governors: &[Arc<str>],
) -> Option<(&'static str, String)> {
    let governed = tally.found().filter_map(|found| match &found.standing {
        Standing::Conflicted { with } => Some(with),
        _ => None,
    });
    let governed: Vec<&Arc<str>> = governed.collect();
    let taint = &spec.taint;
    let quoted = |name: &Arc<str>| format!("'{name}'");
    if !governed.is_empty() {
        let names: BTreeSet<&Arc<str>> = governed.iter().copied().collect();
        let message = format!(
            "an earlier rule governs taint {taint} on {} of {} selected nodes: {}",
            governed.len(),
            tally.matched(),
            enumerated(names.into_iter().map(quoted)),
        );
        Some(("TaintGovernedByAnotherRule", message))
    } else if !governors.is_empty() {
        let message = format!(
            "an earlier rule governs taint {taint} on every node that both select, though there is none now: {}",
            enumerated(governors.iter().map(quoted)),
        );
        Some(("SelectorsOverlap", message))
    } else {
        None
    }
}
