//! When a node with unmet conditions may be gated: at once as it joins, else after the grace period and by the disruption guard.
//! And when one with met conditions may be released: after the settle period.

use jiff::{SignedDuration, Timestamp};

use super::decision::WaitReason;
use super::make::Draft;
use super::outcome::{ConditionOutcome, Memory, unmet};
use super::taint::Claim;
use crate::api::{ConditionPolicy, EnforcementMode};
use crate::rule::{CompiledSpec, RequiredCondition, Rule};

/// A node that joined at most this long ago runs nothing yet: the kubelet and the scheduler take about as long to start pods.
const PROMPTLY: SignedDuration = SignedDuration::from_secs(5);

/// A node that joined at most this long ago does not count as in use: labels may come late, and so may its evaluation.
const LATELY: SignedDuration = SignedDuration::from_secs(20);

/// How long synthesized conditions alone must be unmet, without a grace period: restarted kubelets report unready pods briefly.
const FLICKER: SignedDuration = SignedDuration::from_secs(1);

/// Whether this process saw the node join so recently that it runs nothing yet.
pub fn is_new(joined: Option<Timestamp>, now: Timestamp) -> bool {
    joined.is_some_and(|joined| now.duration_since(joined) <= PROMPTLY)
}

impl<'a> Draft<'a> {
    /// What to remember of the node, why the rule may not gate it yet, and whether it is in use. `rebooted`: when a reboot was seen
    /// that counts.
    pub(super) fn patience(
        &self,
        claim: Claim<'_, 'a>,
        met: bool,
        findings: &[ConditionOutcome<'_>],
        rebooted: Option<Timestamp>,
    ) -> (Option<Memory>, Option<WaitReason>, bool) {
        let (rule, spec, now) = (claim.rule, claim.spec, self.now);
        let held_back = self.history.held_back.contains(&rule.uid);
        let mut memories = self.history.memories.iter();
        let known = memories.find(|memory| memory.rule == rule.uid);
        let is_known = self.history.is_known;
        let settles = met && spec.ours.settle_period.is_some();
        let met_since = settles.then(|| {
            let since = met_since(spec.policy, findings, known, is_known, now);
            rebooted.map_or(since, |rebooted| since.max(rebooted))
        });
        let unmet_since = (!met).then(|| unmet_since(rule, spec, findings, known, is_known, now));
        let remember = |joining| Memory {
            rule: rule.uid.clone(),
            was_met: met || known.is_some_and(|known| known.was_met),
            joining,
            tainted: claim.tainted,
            unmet_since,
            met_since,
        };
        let is_lately = |joined| now.duration_since(joined) <= LATELY;
        let joined_lately = self.state.joined.is_some_and(is_lately) && self.was_in_force(rule);
        if spec.mode == EnforcementMode::BootstrapOnly {
            // It gates nodes as they join and reboot, and those that come under it later.
            let in_use = !joined_lately && rebooted.is_none();
            let wait = (in_use && held_back).then_some(WaitReason::FirstGating);
            return (settles.then(|| remember(false)), wait, in_use);
        }
        let joining = self.is_joining(claim, met, known);
        let in_use = !joining && !joined_lately;
        let may_gate = || self.history.may_gate.contains(&rule.uid);
        let wait = match unmet_since {
            Some(_) if in_use && held_back => Some(WaitReason::FirstGating),
            Some(since) if !joining => wait_reason(spec, findings, since, may_gate, now),
            _ => None,
        };
        // Another rule, which governs the taint, may have released the node: pods may come, whatever this rule finds.
        let joining = joining && (claim.tainted || claim.governs || spec.dry_run);
        (Some(remember(joining)), wait, in_use)
    }

    /// Whether the rule has never released the node, so that gating it disrupts nothing: conditions never met, and this process or
    /// the record saw it join under the rule. The taint alone proves nothing: another controller may have gated a node in use.
    fn is_joining(&self, claim: Claim<'_, 'a>, met: bool, memory: Option<&Memory>) -> bool {
        let (tainted, owners) = (claim.tainted, claim.owners);
        if tainted && !owners.is_empty() {
            return owners.iter().any(|owner| owner.joining);
        }
        let was_in_force = self.was_in_force(claim.rule);
        !met && match memory {
            // Whoever removed the taint released the node.
            Some(memory) => {
                memory.joining && !memory.was_met && (tainted || (was_in_force && !memory.tainted))
            }
            None => is_new(self.state.joined, self.now) && (tainted || was_in_force),
        }
    }

    /// Whether the rule was in force when the node joined: if both are recent, by the API server's times, not the order of events.
    fn was_in_force(&self, rule: &Rule) -> bool {
        let (Some(since), Some(joined)) = (rule.in_force_since, self.state.joined) else {
            return false;
        };
        since <= joined
            || (since.duration_since(joined) <= PROMPTLY && rule.created <= self.node.created)
    }
}

/// Since when the conditions have been unmet: as this process saw, else by the times on the Node, so that a restart changes no
/// grace period; but never from before the rule was in force. A known node without a `memory` has only now been selected.
fn unmet_since(
    rule: &Rule,
    spec: &CompiledSpec,
    findings: &[ConditionOutcome<'_>],
    memory: Option<&Memory>,
    is_known: bool,
    now: Timestamp,
) -> Timestamp {
    let since = match memory {
        Some(memory) => memory.unmet_since,
        None if is_known => None,
        None => on_record(spec.policy, findings),
    };
    let since = since.map_or(now, |since| since.min(now));
    match rule.in_force_since.max(rule.created) {
        Some(in_force) if in_force <= now => since.max(in_force),
        // A clock lags: this process's memory is later than the rule anyway.
        Some(_) if memory.is_none() => now,
        _ => since,
    }
}

/// Since when the conditions have been unmet by the times on the Node.
fn on_record(policy: ConditionPolicy, findings: &[ConditionOutcome<'_>]) -> Option<Timestamp> {
    let transitions = unmet(findings).map(ConditionOutcome::transition);
    match policy {
        // One unmet condition suffices, so the first transition counts.
        ConditionPolicy::AllOf => transitions.flatten().min(),
        // All must be unmet, so the last transition counts.
        ConditionPolicy::AnyOf => last(transitions),
    }
}

/// The last of these times; `None` if one is unknown, or there are none.
fn last(mut times: impl Iterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
    let last = times.try_fold(Timestamp::MIN, |last, at| Some(last.max(at?)));
    last.filter(|last| *last > Timestamp::MIN)
}

/// Since when the conditions have been met without a break: as this process saw, else by the times on the Node, which are of
/// statuses alone; from now on where one is unknown. A reporter's later transition tells of a break that was not seen.
fn met_since(
    policy: ConditionPolicy,
    findings: &[ConditionOutcome<'_>],
    memory: Option<&Memory>,
    is_known: bool,
    now: Timestamp,
) -> Timestamp {
    let met = || findings.iter().filter(|it| it.is_met());
    let Some(known) = memory.and_then(|it| it.met_since) else {
        let is_plain = |it: &RequiredCondition| it.reasons.is_empty() && it.values.is_empty();
        let times = met().map(|it| it.transition().filter(|_| is_plain(it.requirement)));
        let recorded = last(times).filter(|_| !is_known);
        return recorded.map_or(now, |since| since.min(now));
    };
    // With `AnyOf`, another one that is met may have stayed so.
    let is_proof = |it: &&ConditionOutcome<'_>| {
        policy == ConditionPolicy::AllOf && !it.requirement.source.is_synthesized()
    };
    let turned = met().filter(is_proof);
    let turned = turned.filter_map(ConditionOutcome::transition);
    turned.filter(|at| *at <= now).fold(known, Timestamp::max)
}

/// Why a continuous rule that has come into force may not gate a node in use yet; `None` if it may.
fn wait_reason(
    spec: &CompiledSpec,
    findings: &[ConditionOutcome<'_>],
    unmet_since: Timestamp,
    may_gate: impl FnOnce() -> bool,
    now: Timestamp,
) -> Option<WaitReason> {
    let is_ours = |finding: &ConditionOutcome<'_>| finding.requirement.source.is_synthesized();
    let grace = match spec.ours.grace_period {
        Some(period) => unmet_since.checked_add(period.as_std()).ok(),
        None if unmet(findings).all(is_ours) => unmet_since.checked_add(FLICKER).ok(),
        None => None,
    };
    match grace {
        Some(until) if now < until => Some(WaitReason::Grace { until }),
        _ if spec.ours.guard().is_some() && !may_gate() => Some(WaitReason::Disruption),
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
            met_since: None,
        }
    }

    fn since(
        rule: &Rule,
        outcome: &Outcome<'_>,
        memory: Option<&Memory>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (spec, findings) = (outcome.spec, &outcome.findings);
        (!outcome.met).then(|| unmet_since(rule, spec, findings, memory, false, now))
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
