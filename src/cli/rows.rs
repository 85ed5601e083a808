//! What each rule makes of each node: one row, made once from the plan's outcome. Every command filters, counts and prints rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::explain::ConditionOnNode;
use super::page::{Line, Page, states};
use super::snapshot::Snapshot;
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::api::{ConditionStatus, EnforcementMode, TaintPolicy, TaintStatus};
use nodegate_core::condition::{Component, Source};
use nodegate_core::finding::{Finding, left_out_on, summed_up};
use nodegate_core::object::Node;
use nodegate_core::plan::{ConditionOutcome, Decision, Outcome, Standing, WaitReason};
use nodegate_core::repair::{Deadline, Verdict};
use nodegate_core::rule::ownership::BootstrapRecord;
use nodegate_core::rule::{Reach, Rule};
use nodegate_engine::holding;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleOnNode {
    pub(crate) node: Arc<str>,
    pub rule: Arc<str>,
    /// The other rules with the same effect, in lists that name each node once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) others: Vec<Arc<str>>,
    pub state: State,
    /// The rule's taint, as `key:effect`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) taint: String,
    pub(crate) mode: EnforcementMode,
    pub tainted: bool,
    /// Whether the rule is being deleted, and its taint is still to be removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deleting: bool,
    /// Since when, if the taint or the conditions show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// The controller's message about the unmet conditions, or why the taint stays although they are met.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
    /// The rule's conditions, unmet ones first; of many nodes only the unmet ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionOnNode>,
}

states! {
    pub enum State {
        /// The node has the taint and keeps it.
        Held = Bad "held",
        /// The node has the taint of a dry run, and no other rule governs it: no rule removes it.
        Abandoned = Bad "held",
        /// The node lacks the taint and is about to get it.
        Gating = Bad "about to be gated",
        /// The node has the taint and is about to lose it.
        Releasing = Good "about to be released",
        /// Conditions are unmet, but the node is not gated yet.
        Waiting = Poor "waiting to be gated",
        /// The node does not have the taint, and is not to get it.
        NotHeld = Good "not held",
        WouldHold = Poor "would be held",
        WouldNotHold = Good "would not be held",
        /// A rule with precedence governs the same taint.
        Conflicted = Poor "conflicted",
        /// The rule is suspended: the node stays as it is.
        Suspended = Poor "suspended",
    }
}

impl State {
    /// The controller's effect on a node, from what could be read; if evidence is missing, the taint shows what was decided.
    fn of(outcome: &Outcome<'_>, is_unknown: bool, is_governed: bool) -> Self {
        match outcome.standing {
            _ if outcome.rule.is_suspended() => Self::Suspended,
            Standing::Conflicted { .. } => Self::Conflicted,
            Standing::DryRun(_) if outcome.tainted && !is_governed => Self::Abandoned,
            Standing::DryRun(Decision::Hold | Decision::Gate | Decision::Wait(_)) => {
                Self::WouldHold
            }
            Standing::DryRun(_) => Self::WouldNotHold,
            Standing::Governs(_) if is_unknown && outcome.tainted => Self::Held,
            Standing::Governs(_) if is_unknown => Self::NotHeld,
            Standing::Governs(Decision::Hold) => Self::Held,
            Standing::Governs(Decision::Gate) => Self::Gating,
            Standing::Governs(Decision::Release | Decision::GiveUp) => Self::Releasing,
            Standing::Governs(Decision::Wait(_)) => Self::Waiting,
            Standing::Governs(Decision::NotHeld) => Self::NotHeld,
        }
    }

    /// Whether the rule holds the node, in the controller's sense: the node has the taint and keeps it, or is about to get it.
    pub(super) fn holds(self) -> bool {
        matches!(self, Self::Held | Self::Abandoned | Self::Gating)
    }

    /// Whether conditions are unmet and that has, or would have, an effect.
    pub(super) fn is_unmet(self) -> bool {
        self.holds() || matches!(self, Self::Waiting | Self::WouldHold | Self::Suspended)
    }
}

states! {
    /// The state of a node over all rules, the worst first, and what else may be said of it.
    pub(crate) enum NodeVerdict {
        Held = Bad "held",
        /// Its conditions are met, and its last taint is about to be removed.
        Releasing = Good "about to be released",
        Waiting = Poor "waiting to be gated",
        /// No rule holds it, and nothing else keeps pods away.
        NotHeld = Good "not held",
        NotSelected = Plain "not selected",
        /// The controller leaves it alone because an object could not be parsed.
        LeftAlone = Bad "left alone",
        /// No rule holds it, and a taint that looks like a rule's is on it: nothing removes it.
        Stray = Bad "tainted",
        /// No rule holds it, but something else keeps pods away.
        Obstructed = Poor "not held",
        Deleting = Poor "being deleted",
    }
}

impl NodeVerdict {
    pub(super) fn of(rows: &[RuleOnNode], is_left_alone: bool) -> Self {
        let of_row = |row: &RuleOnNode| match row.state {
            _ if row.holds() => Self::Held,
            State::Releasing => Self::Releasing,
            State::Waiting => Self::Waiting,
            _ => Self::NotHeld,
        };
        if is_left_alone {
            return Self::LeftAlone;
        }
        rows.iter().map(of_row).min().unwrap_or(Self::NotSelected)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Lacking {
    pub condition: Arc<str>,
    pub reason: String,
    pub nodes: usize,
}

/// What the nodes of these rows lack, most frequent first.
pub(super) fn lacking<'a>(rows: impl Iterator<Item = &'a RuleOnNode>) -> Vec<Lacking> {
    let mut counts: BTreeMap<(&Arc<str>, &str), usize> = BTreeMap::new();
    for unmet in rows.flat_map(|row| &row.conditions).filter(|it| !it.met) {
        let reason = match &*unmet.reason {
            "" => "NotReported",
            reason => reason,
        };
        *counts.entry((&unmet.kind, reason)).or_default() += 1;
    }
    let lacking = counts.into_iter();
    let lacking = lacking.map(|((condition, reason), nodes)| Lacking {
        condition: condition.clone(),
        reason: reason.to_owned(),
        nodes,
    });
    let mut lacking: Vec<Lacking> = lacking.collect();
    lacking.sort_by_key(|it| Reverse(it.nodes));
    lacking
}

/// The first row of each node, with the rules of the others.
pub(super) fn first_of_nodes<'a>(all: impl IntoIterator<Item = &'a RuleOnNode>) -> Vec<RuleOnNode> {
    let mut first: Vec<RuleOnNode> = Vec::new();
    let mut places = BTreeMap::new();
    for row in all {
        let place = *places.entry(&row.node).or_insert(first.len());
        match first.get_mut(place) {
            Some(known) => known.others.push(row.rule.clone()),
            None => first.push(row.clone()),
        }
    }
    first
}

/// The rows of all nodes, by node name. They have only unmet conditions, and no remarks.
pub(super) fn rows(snapshot: &Snapshot) -> Vec<RuleOnNode> {
    let mut nodes: Vec<&str> = snapshot.view.nodes().map(|node| &*node.name).collect();
    nodes.sort_unstable();
    let rows = |node| of_node(snapshot, node, false);
    nodes.into_iter().filter_map(rows).flatten().collect()
}

/// The rows of one node, with all that is known of them; `None` if it does not exist.
pub fn rows_of(snapshot: &Snapshot, node: &str) -> Option<Vec<RuleOnNode>> {
    of_node(snapshot, node, true)
}

/// Rows of a node: of rules that match it, and of deleted ones that still hold it. `whole`: with remarks, all conditions, causes.
fn of_node(snapshot: &Snapshot, node: &str, whole: bool) -> Option<Vec<RuleOnNode>> {
    let node = snapshot.view.node(node)?.node;
    let plan = snapshot.view.plan(&node.name)?;
    let is_governed = |key: &str, effect| {
        let mut outcomes = plan.outcomes.iter();
        outcomes.any(|it| it.governs().is_some() && it.rule.is_about(key, effect))
    };
    let deleted = snapshot.view.rules().lingering(node);
    // Where another rule governs the taint, that rule holds the node.
    let deleted = deleted
        .filter(|(_, reach)| !node.deleting && !is_governed(&reach.key, reach.effect))
        .map(|(rule, reach)| RuleOnNode::of_deleted(node, rule, reach, snapshot));
    let rows = plan.outcomes.iter().map(|it| {
        let is_governed = is_governed(&it.spec.taint.key, it.spec.effect);
        RuleOnNode::of(node, it, snapshot, is_governed, whole)
    });
    Some(rows.chain(deleted).collect())
}

/// For how long it may be said that the controller is about to do something.
const PROMISED: SignedDuration = SignedDuration::from_secs(5);
const ABANDONED: &str =
    "the rule is a dry run: it leaves its taint on the node, and no other rule removes it";

impl RuleOnNode {
    fn of(
        node: &Node,
        outcome: &Outcome<'_>,
        snapshot: &Snapshot,
        is_governed: bool,
        whole: bool,
    ) -> Self {
        let Outcome { rule, spec, .. } = *outcome;
        let conditions = outcome.findings.iter();
        let conditions = conditions.map(|it| ConditionOnNode::of(it, node, snapshot, whole));
        let mut conditions: Vec<ConditionOnNode> = conditions.collect();
        let is_unknown = conditions.iter().any(|it| it.unknown.is_some());
        conditions.retain(|it| whole || !it.met);
        conditions.sort_by_key(|it| it.met);
        let since = if outcome.tainted {
            node.tainted_since(&spec.taint.key, spec.effect, rule.created)
        } else {
            outcome.unmet_since()
        };
        let decided = State::of(outcome, is_unknown, is_governed);
        let stuck = || {
            let known = snapshot.stuck(&rule.name, &node.name);
            known.or_else(|| overdue(outcome, node, snapshot))
        };
        let (state, stays) = match decided {
            State::Abandoned => (decided, Some(ABANDONED.to_owned())),
            State::Releasing => (State::Held, stuck()),
            State::Gating => (State::Waiting, stuck()),
            _ => (decided, None),
        };
        let state = if stays.is_some() { state } else { decided };
        let why = match &stays {
            Some(stays) => stays.clone(),
            None if is_unknown => String::new(),
            None if outcome.met => settles(outcome).unwrap_or_default(),
            None => outcome.why(),
        };
        Self {
            node: node.name.clone(),
            rule: rule.name.clone(),
            others: Vec::new(),
            state,
            taint: spec.taint.to_string(),
            mode: spec.mode,
            tainted: outcome.tainted,
            deleting: false,
            since,
            remarks: match stays {
                _ if !whole => Vec::new(),
                Some(stays) => vec![stays],
                None => remarks(outcome, node, snapshot, is_unknown),
            },
            why,
            conditions,
        }
    }

    /// Whether the rule keeps its taint on the node, or is about to add it.
    pub(super) fn holds(&self) -> bool {
        self.state.holds() || self.state == State::Suspended && self.tainted
    }

    /// The rule, and the others with the same effect.
    pub(super) fn by(&self) -> String {
        let rules = [&self.rule].into_iter().chain(&self.others);
        let rules: Vec<String> = rules.map(|rule| format!("rule/{rule}")).collect();
        rules.join(", ")
    }

    /// A rule that is being deleted, and whose taint is still on the node: its conditions no longer count.
    fn of_deleted(node: &Node, rule: &Rule, reach: &Reach, snapshot: &Snapshot) -> Self {
        let spec = rule.spec.as_ref().ok();
        let cached = snapshot.view.cached_rules().get(&rule.name);
        let since = cached.and_then(|it| it.object.metadata.deletion_timestamp.as_ref());
        let since = since.map_or_else(String::new, |since| format!(" since {:.0}", since.0));
        let stays = snapshot.stuck(&rule.name, &node.name);
        let stays = stays.unwrap_or("its taint stays until a controller removes it".into());
        let why = format!("the rule is being deleted{since}: {stays}");
        Self {
            node: node.name.clone(),
            rule: rule.name.clone(),
            others: Vec::new(),
            state: State::Held,
            taint: format!("{}:{}", reach.key, reach.effect),
            mode: spec.map_or(EnforcementMode::Continuous, |spec| spec.mode),
            tainted: true,
            deleting: true,
            since: node.tainted_since(&reach.key, reach.effect, rule.created),
            remarks: vec![why.clone()],
            why,
            conditions: Vec::new(),
        }
    }

    /// The state, and since when.
    pub(super) fn effect(&self, line: Line, page: &Page) -> Line {
        let (look, words) = self.state.words();
        let line = line.with(look, words);
        let line = match self.state {
            State::Suspended if self.tainted => line.plain(", held"),
            State::Suspended => return line.plain(", not held"),
            _ => line,
        };
        match (self.state, self.since) {
            (State::NotHeld | State::WouldNotHold | State::WouldHold, _) | (_, None) => line,
            (_, Some(since)) => line.plain(format!(" for {}", page.age(since))),
        }
    }

    /// The node, the state, by which rule if `by`, and why.
    pub(super) fn of_node(&self, page: &Page, by: bool) -> Line {
        let mut line = self.effect(Line::about(format!("node/{}", self.node)), page);
        if by {
            line = line.plain(format!(" by {}", self.by()));
        }
        match &*self.why {
            "" => line,
            why => line.plain(format!(": {why}")),
        }
    }
}

/// The kind of a condition's source, in one word, and the lists that are its evidence.
pub(super) fn evidence(source: &Source) -> (&'static str, &'static [ResourceKind]) {
    use ResourceKind::{CsiNodes, DaemonSets, Pods, ResourceSlices};
    match source {
        Source::Node => ("reporter", &[]),
        Source::Class { .. } => ("criticalComponents", &[DaemonSets, Pods, CsiNodes]),
        Source::CsiDriver(_) => ("csiNode", &[CsiNodes]),
        Source::Resource(_) => ("allocatable", &[]),
        Source::Label(_) => ("label", &[]),
        Source::Component(Component::DaemonSet(_)) => ("daemonSet", &[DaemonSets, Pods]),
        Source::Component(Component::AllDaemonSets) | Source::DaemonSetsScheduled => {
            ("daemonSets", &[DaemonSets, Pods])
        }
        Source::Component(Component::Check(_)) => ("check", &[Pods]),
        Source::Component(Component::Devices(_)) => ("resourceSlices", &[ResourceSlices]),
        Source::Nobody | Source::NoClass => ("nobody", &[]),
    }
}

pub(super) fn gap<'a>(source: &Source, snapshot: &'a Snapshot) -> Option<&'a Gap> {
    let (_, kinds) = evidence(source);
    kinds.iter().find_map(|kind| snapshot.gap(*kind))
}

fn remarks(outcome: &Outcome<'_>, node: &Node, snapshot: &Snapshot, unknown: bool) -> Vec<String> {
    let rule = outcome.rule;
    let mut remarks: Vec<String> = if unknown && !rule.is_suspended() {
        vec!["some lists are forbidden: this is what the controller published on the node".into()]
    } else {
        remark(outcome, node).into_iter().collect()
    };
    let cached = snapshot.view.cached_rules().get(&rule.name);
    let suspended = cached.and_then(|it| holding(&it.object.status, "Suspended"));
    remarks.extend(suspended.map(|it| format!("suspended since {:.0}", it.last_transition_time.0)));
    if !unknown {
        let (view, spec) = (&snapshot.view, outcome.spec);
        let state = view.node(&node.name).into_iter();
        let left_out = state.flat_map(|state| left_out_on(spec, view.cluster(), state));
        let left_out: Vec<Finding> = left_out.collect();
        remarks.extend(summed_up(left_out.iter()).map(|it| it.message));
    }
    let pause = snapshot.pause(&rule.name, &node.name);
    let pause = pause.filter(|_| !rule.is_suspended());
    remarks.extend(pause.map(|it| it.message.clone()));
    let kept_out = snapshot.kept_out(&rule.name);
    remarks.extend(kept_out.filter(|_| outcome.tainted));
    if let Some(deadline) = outcome.deadline.as_ref().filter(|_| outcome.tainted) {
        remarks.push(match deadline {
            Ok(Deadline::At(at)) => format!("its readiness TTL ends at {at:.0}"),
            Ok(Deadline::Never) => "it may take any time to become ready".into(),
            Err(why) => format!("its readiness TTL is unknown: {why}"),
        });
    }
    let spared = match outcome.verdict {
        Some(Verdict::Spare(why)) if outcome.tainted => Some(why.to_string()),
        Some(Verdict::Blocked(why)) => Some(why.to_string()),
        _ => None,
    };
    remarks.extend(spared.map(|why| format!("it is not repaired: {why}")));
    if outcome.rebooted.is_some() {
        remarks.push(
            "the node has rebooted since its bootstrap: evidence from before counts only once it is renewed. This command \
             judges that by the times on the node, the controller by what it sees"
                .into(),
        );
    }
    // Why a node is gated again whose bootstrap was complete, other than for a reboot.
    match outcome.bootstrap {
        _ if outcome.met => {}
        BootstrapRecord::Revised { daemon_set } => remarks.push(format!(
            "its bootstrap was completed with another revision of DaemonSet {daemon_set}, whose pod has gone: it does not count \
             any more (regateOn: Revision)"
        )),
        BootstrapRecord::Maintained => remarks.push(
            "its bootstrap was completed before a maintenance: it does not count any more (regateOn: Maintenance)"
                .to_owned(),
        ),
        _ => {}
    }
    remarks
}

/// Says that the controller has found the node as it is here for longer than a change takes.
fn overdue(outcome: &Outcome<'_>, node: &Node, snapshot: &Snapshot) -> Option<String> {
    let rule = outcome.rule;
    let status = &snapshot.view.cached_rules().get(&rule.name)?.object.status;
    let mut known = status.node_evaluations.iter();
    let known = known.find(|it| it.node_name == *node.name)?;
    let results = known.condition_results.iter().map(|it| it.current_status);
    let found = outcome.findings.iter().map(ConditionOutcome::observed);
    let since = known.last_evaluation_time.0;
    let is_overdue = status.observed_generation == Some(rule.generation.max(1))
        && (known.taint_status == TaintStatus::Present) == outcome.tainted
        && results.eq(found.map(|it| it.unwrap_or(ConditionStatus::Unknown)))
        && snapshot.at.duration_since(since) > PROMISED;
    is_overdue.then(|| {
        format!("the controller has known this since {since:.0} and has not changed the taint: its log says why")
    })
}

/// When a node is released whose conditions have to stay met until then.
fn settles(outcome: &Outcome<'_>) -> Option<String> {
    let until = outcome.settles.filter(|_| outcome.tainted)?;
    Some(format!(
        "its conditions are met: it is released at {until:.0} if they stay so (settlePeriod), judged by the times on the node"
    ))
}

/// Why the rule has this effect, as far as its conditions do not explain it.
fn remark(outcome: &Outcome<'_>, node: &Node) -> Option<String> {
    let rule = outcome.rule;
    if rule.is_suspended() {
        let suspended = || "the rule is suspended: it changes nothing on this node".into();
        return Some(rule.trouble().unwrap_or_else(suspended));
    }
    let decision = match &outcome.standing {
        Standing::Governs(decision) | Standing::DryRun(decision) => *decision,
        Standing::Conflicted { with } => {
            return Some(format!("rule '{with}' is older and governs the same taint"));
        }
    };
    let met = outcome.met;
    Some(match decision {
        // The state of a dry run says what it would do.
        Decision::Gate | Decision::Release | Decision::GiveUp if outcome.is_dry_run() => {
            return None;
        }
        Decision::Wait(WaitReason::Grace { until }) => format!(
            "its grace period ends at {until:.0}, judged by the times on the node"
        ),
        Decision::Wait(WaitReason::FirstGating) => format!(
            "the rule has come into force and may gate no node in use yet: see kubectl nodegate explain rule/{}",
            rule.name
        ),
        Decision::Wait(WaitReason::Disruption) => {
            "its disruption limit holds it back: see the rule's condition DisruptionLimited".into()
        }
        Decision::Wait(WaitReason::Stale) => "the controller re-reads the node first".into(),
        Decision::GiveUp => "it was not ready in time: the controller releases it anyway. After an interruption it waits for as long as that lasted".into(),
        Decision::Release => {
            "its conditions are met: the controller is about to remove the taint".into()
        }
        Decision::Gate => "the controller is about to add the taint".into(),
        Decision::NotHeld if met => return None,
        Decision::NotHeld => {
            if outcome.spec.ours.taint_policy == TaintPolicy::RemoveOnly {
                "the rule only removes its taint, and never adds it".into()
            } else if rule.leaves_alone(node.created) {
                "the node is older than the rule, which leaves such nodes alone (existingNodes: Leave)".into()
            } else {
                "its bootstrap is on record: from then on the rule does not hold the node".into()
            }
        }
        Decision::Hold if met => settles(outcome).unwrap_or_else(|| {
            "its conditions are met, and another rule about the same taint goes first".into()
        }),
        Decision::Hold => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::explain_node;
    use crate::page::Render;
    use crate::snapshot::Leader;
    use crate::status::status;
    use crate::testing::Scene;
    use crate::testing::{Builder, GATE, RuleBuilder, at, node, rule};
    use k8s_openapi::api::coordination::v1::Lease;
    use serde_json::json;

    #[test]
    fn why_a_node_that_lacks_a_condition_is_not_held() {
        let bootstrap = || rule("r").bootstrap_only().waits_for("example.com/Ready");
        let leaves = || bootstrap().nodegate("existingNodes: Leave");
        let older = || node("n").created(at(-60));
        #[rustfmt::skip]
        let cases = [
            (bootstrap(), node("n").completed("r-uid"), "its bootstrap is on record"),
            (leaves(), older(), "the node is older than the rule"),
            (leaves(), node("n").completed("r-uid"), "its bootstrap is on record"),
        ];
        for (rule, node, expected) in cases {
            let snapshot = Scene::default().rule(&rule).node(node).read(at(60));
            let plan = snapshot.view.plan("n").unwrap();
            let known = snapshot.view.node("n").unwrap().node;
            let said = remark(&plan.outcomes[0], known).unwrap_or_default();
            assert!(said.starts_with(expected), "{expected}: {said}");
        }
    }

    /// A rule that has failed on node n.
    fn failing(mut rule: RuleBuilder, message: &str) -> RuleBuilder {
        rule.json()["status"] = json!({"failedNodes": [{
            "nodeName": "n",
            "message": message,
            "lastEvaluationTime": at(0),
        }]});
        rule
    }

    /// A rule whose status says this of node n.
    fn saying(mut rule: RuleBuilder, status: serde_json::Value) -> RuleBuilder {
        rule.json()["status"] = status;
        rule
    }

    /// A rule that somebody keeps from changing node n.
    fn paused(reason: &str, until: Option<jiff::Timestamp>) -> RuleBuilder {
        let pause = json!({"nodeName": "n", "reason": reason, "message": UNDONE, "until": until});
        let counts = json!({"matchedNodes": 1, "heldNodes": 0, "releasedNodes": 1, "failedNodeCount": 0, "pauses": [pause]});
        saying(rule("r").waits_for("Net"), json!({"nodegate": counts}))
    }

    /// A rule that has found this of node n at that time.
    fn found(status: &str, taint: &str, second: i64) -> RuleBuilder {
        let result = json!({"type": "Net", "currentStatus": status, "requiredStatus": "True"});
        let evaluation = json!({
            "nodeName": "n", "conditionResults": [result], "taintStatus": taint, "lastEvaluationTime": at(second),
        });
        let status = json!({"observedGeneration": 1, "nodeEvaluations": [evaluation]});
        saying(rule("r").waits_for("Net"), status)
    }

    const UNDONE: &str = "somebody else keeps changing the taint back";

    #[test]
    fn explanations_promise_nothing_that_does_not_happen() {
        const DENIED: &str = "failed to remove taint: refused by the provider";
        const NOT_ADDED: &str = "failed to add taint: refused by the provider";
        const NOBODY: &str = "no controller leads, so no taint is added or removed";
        const PROMISE: &str = "its conditions are met: the controller is about to remove the taint";
        let rule = || rule("r").waits_for("Net");
        let held = || node("n").dated_taint(GATE, "NoSchedule");
        let met = || held().condition("Net", "True");
        let deleted = "the rule is being deleted since 2026-01-01T00:00:00Z: ";
        let late = || {
            format!(
                "the controller has known this since {:.0} and has not changed the taint: its log says why",
                at(54)
            )
        };
        #[rustfmt::skip]
        let cases = [
            ("fine", rule(), met(), true, "releasing", PROMISE.to_owned(), ""),
            ("denied", failing(rule(), DENIED), met(), true, "held", DENIED.to_owned(), "admit"),
            ("headless", rule(), met(), false, "held", NOBODY.to_owned(), "check the controller"),
            ("a dry run", rule().dry_run(), met(), true, "held", ABANDONED.to_owned(), "turn the rule on"),
            ("a dry run, unmet", rule().dry_run(), held(), true, "held", ABANDONED.to_owned(), "turn the rule on"),
            ("not added", failing(rule(), NOT_ADDED), node("n"), true, "waiting", NOT_ADDED.to_owned(), "admit"),
            ("deleted", failing(rule(), DENIED).deleting(), met(), true, "held", deleted.to_owned() + DENIED, "admit"),
            ("put back", paused("Contended", Some(at(103))), met(), true, "held", UNDONE.to_owned() + "; it tries again in 43 s", "what else writes"),
            ("taken off", paused("Contended", Some(at(59))), node("n"), true, "waiting", UNDONE.to_owned(), "what else writes"),
            ("waited out", paused("AbsenceNotLasted", Some(at(103))), met(), true, "held", UNDONE.to_owned() + "; it counts as gone in 43 s", ""),
            ("just found", found("True", "Present", 56), met(), true, "releasing", PROMISE.to_owned(), ""),
            ("found otherwise", found("False", "Present", 0), met(), true, "releasing", PROMISE.to_owned(), ""),
            ("overdue", found("True", "Present", 54), met(), true, "held", late(), ""),
            ("not gated", found("Unknown", "Absent", 54), node("n"), true, "waiting", late(), ""),
        ];
        for (what, rule, node, leads, verdict, said, next) in cases {
            let mut snapshot = Scene::default().rule(&rule).node(node).read(at(60));
            snapshot.leader = (!leads).then(|| Leader::of(Lease::default()));
            let it = explain_node(&snapshot, "n").unwrap();
            assert_eq!(serde_json::to_value(it.verdict).unwrap(), verdict, "{what}");
            assert_eq!(it.rules[0].remarks[..], [&*said], "{what}");
            let step = it.next.map_or_else(String::new, |it| it.say);
            assert!(step.contains(next), "{what}: {step}");
            let status = status(&snapshot);
            let is_held = usize::from(verdict == "held");
            assert_eq!(status.rules[0].held, is_held, "{what}");
            assert_eq!(status.held.len(), is_held, "{what}");
            assert!(status.held.iter().all(|it| it.why == said), "{what}");
            assert_eq!(status.awaited().is_some(), verdict != "waiting", "{what}");
        }
    }

    #[test]
    fn of_a_suspended_rule_it_is_said_whether_it_holds_the_node_and_since_when_it_is_suspended() {
        let suspended = json!({"conditions": [{"type": "Suspended", "status": "True", "reason": "Suspended", "message": "",
            "lastTransitionTime": at(40)}]});
        let rule = saying(rule("r").waits_for("Net").suspended(), suspended);
        let held = node("n").dated_taint(GATE, "NoSchedule");
        for (node, expected) in [
            (held, "suspended, held for "),
            (node("n"), "suspended, not held"),
        ] {
            let snapshot = Scene::default().rule(&rule).node(node).read(at(60));
            let text = explain_node(&snapshot, "n").unwrap();
            let text = text.text(&Page::plain(at(60)));
            let since = format!("suspended since {:.0}", at(40));
            assert!(text.contains(expected) && text.contains(&since), "{text}");
        }
    }

    #[test]
    fn a_dry_run_beside_a_rule_that_governs_its_taint_holds_nothing() {
        let old = rule("old").waits_for("Net").dry_run();
        let scene = Scene::default()
            .rule(&old)
            .rule(&rule("new").waits_for("Net"));
        let node = node("n")
            .dated_taint(GATE, "NoSchedule")
            .condition("Net", "True");
        let snapshot = scene.node(node).read(at(60));
        let it = explain_node(&snapshot, "n").unwrap();
        assert_eq!(it.verdict, NodeVerdict::Releasing);
        let states: Vec<State> = it.rules.iter().map(|it| it.state).collect();
        assert_eq!(states, [State::Releasing, State::WouldNotHold]);
    }

    #[test]
    fn every_rule_that_holds_a_node_is_named_and_since_when_it_can_have_held_it() {
        let (mut scene, mut tainted) = (Scene::default(), node("n").created(at(-600)));
        for name in ["a", "b", "c"] {
            let taint = format!("readiness.k8s.io/{name}");
            let rule = rule(name).waits_for("Net").taint(&taint, "NoSchedule");
            scene = scene.rule(&rule.created(at(30)));
            tainted = tainted.taint(&taint, "NoSchedule");
        }
        let snapshot = scene.node(tainted).read(at(60));
        let text = status(&snapshot).text(&Page::plain(at(60)));
        let held = "node/n  held for 30s by rule/a, rule/b, rule/c: ";
        assert!(text.contains(held), "{text}");
    }

    #[test]
    fn why_a_completed_bootstrap_does_not_count_is_said_while_conditions_are_unmet() {
        let regates = rule("r").bootstrap_only().waits_for("Net");
        let regates = regates.nodegate("regateOn: [Maintenance]");
        let held = node("n").dated_taint(GATE, "NoSchedule").annotation(
            "readiness.k8s.io/bootstrap-completed-r-uid",
            r#"{"rule-name":"r","maintenance":true}"#,
        );
        let met = held.clone().condition("Net", "True");
        for (node, expected) in [(held, 1), (met, 0)] {
            let snapshot = Scene::default().rule(&regates).node(node).read(at(60));
            let rules = explain_node(&snapshot, "n").unwrap().rules;
            let said = rules[0].remarks.iter();
            let said = said.filter(|it| it.contains("before a maintenance"));
            assert_eq!(said.count(), expected, "{rules:?}");
        }
    }

    #[test]
    fn what_a_node_was_released_without_and_what_no_rule_removes_is_said() {
        let scheduled = rule("r").waits_for("node.gardener.cloud/CriticalDaemonSetsScheduled");
        let stray = node("stray").taint("readiness.k8s.io/gaet", "NoSchedule");
        let scene = Scene::default().rule(&scheduled).node(node("n"));
        let snapshot = scene.node(stray).read(at(60));
        for (name, expected) in [
            ("n", "no critical DaemonSet is meant for this node"),
            (
                "stray",
                "node/stray  tainted with a rule's taint that no rule removes",
            ),
        ] {
            let text = explain_node(&snapshot, name).unwrap();
            let text = text.text(&Page::plain(at(60)));
            assert!(text.contains(expected), "{text}");
        }
    }
}
