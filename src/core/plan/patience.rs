//! When a node with unmet conditions may be gated: at once while it is joining, otherwise after the grace period and with the
//! disruption guard's permission.

use jiff::{SignedDuration, Timestamp};

use super::decision::WaitReason;
use super::outcome::{ConditionOutcome, Memory, unmet};
use crate::api::ConditionPolicy;
use crate::rule::{CompiledSpec, Ownership, Rule};

/// A node that joined at most this long ago runs nothing yet: the kubelet and the scheduler take about as long to start pods.
const PROMPTLY: SignedDuration = SignedDuration::from_secs(5);

/// How long synthesized conditions must be unmet before a node is gated, if the rule has no grace period and no other condition
/// is unmet. A restarted kubelet reports its pods unready for a moment.
const FLICKER: SignedDuration = SignedDuration::from_secs(1);

/// Whether this process saw the node join so recently that it runs nothing yet.
pub fn is_new(joined: Option<Timestamp>, now: Timestamp) -> bool {
    joined.is_some_and(|joined| now.duration_since(joined) <= PROMPTLY)
}

/// Evidence of whether a continuous rule has ever released a node, and of since when its conditions have been unmet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past<'a> {
    pub rule: &'a Rule,
    pub created: Option<Timestamp>,
    /// When the node joined, if this process saw that.
    pub joined: Option<Timestamp>,
    pub memory: Option<&'a Memory>,
    /// Whether the node has been evaluated before: a rule without a memory has only now come to select it.
    pub is_known: bool,
    pub tainted: bool,
    /// The recorded owners of the taint.
    pub owners: &'a [Ownership<'a>],
    pub met: bool,
}

impl Past<'_> {
    /// Whether the rule has never released the node, so that gating it disrupts nothing. Either this process saw the node join
    /// while the rule was in force or with the taint on, or the record says so; and the conditions have never been met. The
    /// taint alone proves nothing: another controller may have gated a node that was in use.
    pub(super) fn is_joining(&self, now: Timestamp) -> bool {
        if self.tainted && !self.owners.is_empty() {
            return self.owners.iter().any(|owner| owner.joining);
        }
        let was_in_force = self.was_in_force();
        !self.met
            && match self.memory {
                // Whoever removed the taint released the node.
                Some(memory) => {
                    memory.joining
                        && !memory.was_met
                        && (self.tainted || (was_in_force && !memory.tainted))
                }
                None => is_new(self.joined, now) && (self.tainted || was_in_force),
            }
    }

    /// Whether the rule was in force when the node joined. If both are recent, the order of watch events proves nothing, but
    /// the API server's timestamps do.
    pub(super) fn was_in_force(&self) -> bool {
        let (Some(since), Some(joined)) = (self.rule.in_force_since, self.joined) else {
            return false;
        };
        since <= joined
            || (since.duration_since(joined) <= PROMPTLY && self.rule.created <= self.created)
    }

    /// Since when the conditions have been unmet; `None` if they are met.
    ///
    /// Counts from when this process saw them turn unmet. If it did not, the times on the Node count, so a restart neither
    /// prolongs nor shortens a grace period; but never from before the rule was in force.
    pub(super) fn unmet_since(
        &self,
        policy: ConditionPolicy,
        findings: &[ConditionOutcome<'_>],
        now: Timestamp,
    ) -> Option<Timestamp> {
        if self.met {
            return None;
        }
        let since = match self.memory {
            Some(memory) => memory.unmet_since,
            None if self.is_known => None,
            None => on_record(policy, findings),
        };
        let since = since.map_or(now, |since| since.min(now));
        Some(match self.rule.in_force_since.max(self.rule.created) {
            Some(in_force) if in_force <= now => since.max(in_force),
            // A clock lags: this process's memory is later than the rule anyway.
            Some(_) if self.memory.is_none() => now,
            _ => since,
        })
    }
}

/// Since when the conditions have been unmet by the times on the Node.
fn on_record(policy: ConditionPolicy, findings: &[ConditionOutcome<'_>]) -> Option<Timestamp> {
    let mut transitions = unmet(findings).map(ConditionOutcome::transition);
    match policy {
        // One unmet condition suffices, so the first transition counts.
        ConditionPolicy::AllOf => transitions.flatten().min(),
        // All must be unmet, so the last transition counts.
        ConditionPolicy::AnyOf => transitions
            .try_fold(Timestamp::MIN, |last, at| Some(last.max(at?)))
            .filter(|last| *last > Timestamp::MIN),
    }
}

/// Why a node with unmet conditions is not gated yet; `None` if it may be. The rule may begin to gate nodes in use, and its disruption
/// guard permits this one.
pub(super) fn held_back(
    spec: &CompiledSpec,
    findings: &[ConditionOutcome<'_>],
    unmet_since: Timestamp,
    (may_begin, may_gate): (bool, bool),
    now: Timestamp,
) -> Option<WaitReason> {
    if !may_begin {
        return Some(WaitReason::FirstGating);
    }
    let is_ours = |finding: &ConditionOutcome<'_>| finding.requirement.source.is_synthesized();
    let grace = match spec.ours.grace_period {
        Some(period) => unmet_since.checked_add(period.as_std()).ok(),
        None if unmet(findings).all(is_ours) => unmet_since.checked_add(FLICKER).ok(),
        None => None,
    };
    match grace {
        Some(until) if now < until => Some(WaitReason::Grace { until }),
        _ if spec.ours.guard().is_some() && !may_gate => Some(WaitReason::Disruption),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Outcome;
    use crate::testing::{Builder, NodeBuilder, at, node, rule, world};
    use serde_json::json;

    fn condition(node: NodeBuilder, kind: &str, status: &str, since: i64) -> NodeBuilder {
        node.condition_with(
            json!({ "type": kind, "status": status, "lastTransitionTime": at(since) }),
        )
    }

    fn remembers(was_met: bool, unmet_since: i64) -> Memory {
        Memory {
            rule: "r-uid".into(),
            was_met,
            joining: false,
            tainted: false,
            unmet_since: Some(at(unmet_since)),
        }
    }

    fn since(
        rule: &Rule,
        outcome: &Outcome<'_>,
        memory: Option<&Memory>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let past = Past {
            rule,
            created: None,
            joined: None,
            memory,
            is_known: false,
            tainted: false,
            owners: &[],
            met: outcome.met,
        };
        past.unmet_since(outcome.spec.policy, &outcome.findings, now)
    }

    #[test]
    fn a_grace_period_ends_though_the_clock_was_set_back_to_before_the_rule() {
        let rule = rule("r").created(at(9000)).waits_for("A");
        for turned in [100, 9500] {
            let node = condition(node("n"), "A", "False", turned);
            let world = world(&node).rule(&rule).now(at(200));
            let plan = world.plan();
            let since = |memory, now| since(&world.rules()[0], &plan.outcomes[0], memory, at(now));
            assert_eq!(since(None, 200), Some(at(200)), "turned at {turned}");
            assert_eq!(since(Some(&remembers(true, 200)), 300), Some(at(200)));
        }
    }

    #[test]
    fn the_time_on_the_node_counts_where_this_process_has_not_seen_the_conditions_turn() {
        let with = |conditions: &[(&str, &str, i64)]| {
            conditions
                .iter()
                .fold(node("n"), |node, (kind, status, since)| {
                    condition(node, kind, status, *since)
                })
        };
        let now = 1000;
        #[rustfmt::skip]
        let cases = [
            ("met", "allOf", &[("A", "True", 5), ("B", "True", 9)][..], None, None),
            ("by the node", "allOf", &[("A", "False", 5), ("B", "True", 9)], None, Some(5)),
            ("the first that turned", "allOf", &[("A", "False", 5), ("B", "False", 9)], None, Some(5)),
            ("any: the last that turned", "anyOf", &[("A", "False", 5), ("B", "False", 9)], None, Some(9)),
            ("any: one with no time", "anyOf", &[("A", "False", 5)], None, Some(now)),
            ("never reported", "allOf", &[], None, Some(now)),
            ("never reported, remembered", "allOf", &[], Some(remembers(false, 700)), Some(700)),
            ("seen to turn", "allOf", &[("A", "False", 5), ("B", "True", 9)], Some(remembers(true, 600)), Some(600)),
            (
                "unmet for longer than either condition",
                "allOf",
                &[("A", "False", 800), ("B", "True", 900)],
                Some(remembers(false, 300)),
                Some(300),
            ),
            ("a clock that is ahead", "allOf", &[("A", "False", 5000), ("B", "True", 9)], None, Some(now)),
        ];
        for (name, policy, conditions, memory, expected) in cases {
            let rule = rule("r")
                .created(at(-9000))
                .taint("readiness.k8s.io/gate", "NoSchedule")
                .waits_for("A")
                .waits_for("B")
                .spec(&format!("conditionPolicy: {policy}"));
            let world = world(&with(conditions)).rule(&rule).now(at(now));
            let plan = world.plan();
            let rule = &world.rules()[0];
            let since = since(rule, &plan.outcomes[0], memory.as_ref(), at(now));
            assert_eq!(since, expected.map(at), "{name}");
        }
    }
}
