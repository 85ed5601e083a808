//! A rule's status: exact counts, lists with a bound, and nothing rewritten that has not changed.
//!
//! Pure: what the controller found is put in, the status to be written comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::repairs::Prospects;
use crate::api::{
    ConditionResult, ConditionStatus, DryRunResults, EnforcementMode, NodeEvaluation, NodeFailure,
    NodeReadinessRuleStatus, TaintStatus,
};
use crate::guard::Report;
use crate::rule::{CompiledSpec, Decision, Held, Outcome, Rule, ShutOut, Standing};

/// What the lists of a status may take, in bytes as JSON, with the API server's record of who manages each item.
const LIST_BUDGET: usize = 40_000;
/// The longest failure message that is kept, in bytes.
const MAX_MESSAGE: usize = 256;

/// What a rule was found to do on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    role: Role,
    statuses: Vec<ConditionStatus>,
    tainted: bool,
    misses_a_condition: bool,
    /// Whether the rule would repair the node if it were no dry run and not too many others were unhealthy.
    would_repair: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Role {
    Governs { holds: bool },
    Conflicted { with: Arc<str> },
    DryRun(Decision),
}

impl Record {
    /// What a rule does on a node, and whether it would repair it if it were no dry run.
    pub fn new(outcome: &Outcome<'_>, would_repair: bool) -> Self {
        Self {
            role: match outcome.standing {
                Standing::Governs(decision) => Role::Governs {
                    holds: decision.holds(),
                },
                Standing::Conflicted { with } => Role::Conflicted {
                    with: with.name.clone(),
                },
                Standing::DryRun(decision) => Role::DryRun(decision),
            },
            statuses: outcome
                .evaluation
                .results
                .iter()
                .map(|result| result.current)
                .collect(),
            tainted: outcome.tainted,
            misses_a_condition: outcome.evaluation.misses_a_condition(),
            would_repair,
        }
    }

    /// Whether the node is closed under the rule's taint, once what was decided is done.
    fn is_held(&self) -> bool {
        match self.role {
            Role::Governs { holds } => holds,
            Role::Conflicted { .. } | Role::DryRun(_) => self.tainted,
        }
    }
}

/// Why a rule could not be carried out on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One word: `AddTaintError`, `RemoveTaintError` or `EvaluationError`.
    pub reason: &'static str,
    /// What the API server said.
    pub message: String,
}

/// What a rule does on all of its nodes.
#[derive(Debug, Default)]
pub struct Tally {
    nodes: BTreeMap<Arc<str>, (Record, Timestamp)>,
    failures: BTreeMap<Arc<str>, (Failure, Timestamp)>,
    /// Since when nodes have been closed under the rule's taint, or are to be.
    closed_since: BTreeMap<Arc<str>, Timestamp>,
}

impl Tally {
    /// Notes what the rule does on a node; answers whether that is news.
    pub fn record(&mut self, node: &Arc<str>, record: Record, now: Timestamp) -> bool {
        if self
            .nodes
            .get(node)
            .is_some_and(|(known, _)| *known == record)
        {
            return false;
        }
        if record.tainted || record.is_held() {
            self.closed_since.entry(node.clone()).or_insert(now);
        } else {
            self.closed_since.remove(node);
        }
        self.nodes.insert(node.clone(), (record, now));
        true
    }

    /// Notes that the rule could not be carried out on a node; answers whether that is news.
    pub fn fail(&mut self, node: &Arc<str>, failure: Failure, now: Timestamp) -> bool {
        if self
            .failures
            .get(node)
            .is_some_and(|(known, _)| *known == failure)
        {
            return false;
        }
        self.failures.insert(node.clone(), (failure, now));
        true
    }

    /// Notes that the rule has been carried out on a node after all; answers whether that is news.
    pub fn recover(&mut self, node: &Arc<str>) -> bool {
        self.failures.remove(node).is_some()
    }

    /// How many nodes are in which state.
    pub fn states(&self, mode: EnforcementMode) -> States {
        let mut states = States::default();
        for (name, (record, _)) in &self.nodes {
            match (self.is_held(name, record), mode) {
                (false, _) => states.ready += 1,
                (true, EnforcementMode::Continuous) => states.not_ready += 1,
                (true, EnforcementMode::BootstrapOnly) => states.bootstrapping += 1,
            }
        }
        states
    }

    /// Since when the node that has been closed longest has been closed, as far as this process has seen.
    pub fn longest_closed_since(&self) -> Option<Timestamp> {
        self.closed_since.values().min().copied()
    }

    /// Whether a node is closed under the rule's taint: as decided, or as it is where that could not be carried out.
    fn is_held(&self, node: &str, record: &Record) -> bool {
        if self.failures.contains_key(node) {
            record.tainted
        } else {
            record.is_held()
        }
    }

    /// The status of each condition as it was found on a node last.
    pub fn statuses(&self, node: &str) -> Option<&[ConditionStatus]> {
        self.nodes
            .get(node)
            .map(|(record, _)| record.statuses.as_slice())
    }

    /// The statuses of the rule's conditions, node by node.
    pub fn all_statuses(&self) -> impl Iterator<Item = (&Arc<str>, &[ConditionStatus])> {
        self.nodes
            .iter()
            .map(|(node, (record, _))| (node, record.statuses.as_slice()))
    }

    /// Whether the rule, a dry run, would repair some node.
    pub fn would_repair_any(&self) -> bool {
        self.nodes.values().any(|(record, _)| record.would_repair)
    }

    /// Whether the rule, a dry run, would repair this node.
    pub fn would_repair(&self, node: &str) -> bool {
        let record = self.nodes.get(node);
        record.is_some_and(|(record, _)| record.would_repair)
    }

    /// Whether the rule could not be carried out somewhere.
    pub fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Forgets a node that the rule does not select any more, with its failure once the node is clean; answers
    /// whether that is news.
    pub fn forget(&mut self, node: &Arc<str>, is_clean: bool) -> bool {
        let recovered = is_clean && self.recover(node);
        self.closed_since.remove(node);
        self.nodes.remove(node).is_some() || recovered
    }
}

/// How many nodes of a rule are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// Free of the taint.
    pub ready: usize,
    /// Held by a continuous rule.
    pub not_ready: usize,
    /// Held by a bootstrap-only rule.
    pub bootstrapping: usize,
}

/// What goes into a rule's status besides the tally.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The `DaemonSet`s that the rule's taint shuts out.
    pub shut_out: &'a [ShutOut],
    /// What the rule would do about nodes that are not ready in time, if it is a dry run.
    pub prospects: Prospects,
    /// What keeps the rule from repairing any node at all.
    pub obstacle: Option<&'a str>,
    /// How the zones of the rule's nodes do, where it has a disruption guard.
    pub disruption: Option<&'a Report>,
    /// The rules that come before this one on any node that both select.
    pub governors: &'a [Arc<str>],
    /// How many nodes each list may name.
    pub node_limit: usize,
    /// The status that was written last, from which times are kept where nothing else changed.
    pub previous: &'a NodeReadinessRuleStatus,
    /// The time for what did change.
    pub now: Timestamp,
}

/// The status that follows.
pub fn build(tally: &Tally, about: About<'_>) -> NodeReadinessRuleStatus {
    let rule = about.rule;
    let mut status = NodeReadinessRuleStatus {
        observed_generation: Some(rule.generation.max(1)),
        conditions: conditions(tally, about),
        ..NodeReadinessRuleStatus::default()
    };
    let Ok(spec) = &rule.spec else { return status };
    let held = tally
        .nodes
        .iter()
        .filter(|(name, (record, _))| tally.is_held(name, record))
        .count();
    status.matched_nodes = Some(count(tally.nodes.len()));
    status.held_nodes = Some(count(held));
    status.released_nodes = Some(count(tally.nodes.len() - held));
    status.failed_node_count = Some(count(tally.failures.len()));
    if spec.dry_run {
        status.dry_run_results = Some(dry_run_results(tally, about));
    }
    fill_lists(&mut status, spec, tally, about);
    status
}

/// Fills the lists of nodes, those that are held first, until a bound is met.
fn fill_lists(
    status: &mut NodeReadinessRuleStatus,
    spec: &CompiledSpec,
    tally: &Tally,
    about: About<'_>,
) {
    let mut budget = LIST_BUDGET;
    let mut spend = |bytes: usize| {
        let fits = bytes <= budget;
        budget = if fits { budget - bytes } else { 0 };
        fits
    };
    for (name, (failure, at)) in tally.failures.iter().take(about.node_limit) {
        let previous = about
            .previous
            .failed_nodes
            .iter()
            .find(|known| known.node_name == **name);
        let mut failed = NodeFailure {
            node_name: name.to_string(),
            reason: Some(failure.reason.into()),
            message: Some(shortened(&failure.message)),
            last_evaluation_time: Time(whole_second(*at)),
        };
        if let Some(previous) = previous
            && previous.reason == failed.reason
            && previous.message == failed.message
        {
            failed.last_evaluation_time = previous.last_evaluation_time.clone();
        }
        if !spend(2 * (name.len() + 80) + failure.message.len().min(MAX_MESSAGE)) {
            break;
        }
        status.failed_nodes.push(failed);
    }
    let previous: BTreeMap<&str, &NodeEvaluation> = about
        .previous
        .node_evaluations
        .iter()
        .map(|evaluation| (evaluation.node_name.as_str(), evaluation))
        .collect();
    let per_node: usize = spec
        .conditions
        .iter()
        .map(|condition| 2 * (condition.kind.len() + 130))
        .sum();
    let of = |held: bool| {
        tally
            .nodes
            .iter()
            .filter(move |(name, (record, _))| tally.is_held(name, record) == held)
    };
    for (name, (record, at)) in of(true).chain(of(false)).take(about.node_limit) {
        if !spend(per_node + 4 * name.len() + 260) {
            break;
        }
        if matches!(record.role, Role::Governs { .. }) && !tally.failures.contains_key(name) {
            status.applied_nodes.push(name.to_string());
        }
        let mut evaluation = evaluation(name, spec, record, *at);
        if let Some(previous) = previous.get(&**name)
            && previous.condition_results == evaluation.condition_results
            && previous.taint_status == evaluation.taint_status
        {
            evaluation.last_evaluation_time = previous.last_evaluation_time.clone();
        }
        status.node_evaluations.push(evaluation);
    }
}

fn evaluation(name: &str, spec: &CompiledSpec, record: &Record, at: Timestamp) -> NodeEvaluation {
    NodeEvaluation {
        node_name: name.into(),
        condition_results: spec
            .conditions
            .iter()
            .zip(&record.statuses)
            .map(|(requirement, current)| ConditionResult {
                type_: requirement.kind.to_string(),
                current_status: *current,
                required_status: requirement.required,
                default_status: requirement.default,
            })
            .collect(),
        taint_status: if record.tainted {
            TaintStatus::Present
        } else {
            TaintStatus::Absent
        },
        last_evaluation_time: Time(whole_second(at)),
    }
}

fn dry_run_results(tally: &Tally, about: About<'_>) -> DryRunResults {
    let About {
        disruption,
        prospects,
        ..
    } = about;
    let counting = |decides: fn(Decision) -> bool| {
        let matches =
            |record: &Record| matches!(record.role, Role::DryRun(decision) if decides(decision));
        tally
            .nodes
            .values()
            .filter(|(record, _)| matches(record))
            .count()
    };
    let adds =
        counting(|decision| matches!(decision, Decision::Gate | Decision::Wait(Held::Disruption)));
    let in_grace = counting(|decision| matches!(decision, Decision::Wait(Held::Grace { .. })));
    let held_back = disruption.filter(|report| report.waiting > 0);
    let removes = counting(|decision| matches!(decision, Decision::Release { .. }));
    let risky = tally
        .nodes
        .values()
        .filter(|(record, _)| record.misses_a_condition)
        .count();
    let parts: Vec<_> = [
        (adds, format!("would add {adds} taints")),
        (
            held_back.map_or(0, |report| report.waiting),
            held_back.map_or_else(String::new, Report::to_string),
        ),
        (
            in_grace,
            format!("{in_grace} nodes are within their grace period"),
        ),
        (removes, format!("would remove {removes} taints")),
        (risky, format!("{risky} nodes have missing conditions")),
        (
            prospects.repaired,
            format!("would repair {} nodes", prospects.repaired),
        ),
        (
            prospects.blocked,
            format!(
                "would not repair {} nodes while so many are unhealthy",
                prospects.blocked
            ),
        ),
    ]
    .into_iter()
    .filter_map(|(number, text)| (number > 0).then_some(text))
    .collect();
    DryRunResults {
        affected_nodes: Some(count(tally.nodes.len())),
        taints_to_add: Some(count(adds)),
        taints_to_remove: Some(count(removes)),
        risky_operations: Some(count(risky)),
        summary: if parts.is_empty() {
            "No changes needed".into()
        } else {
            parts.join(", ")
        },
    }
}

/// The conditions of the rule itself. `Accepted` and `Conflicted` are always there; the others only while they have
/// something to say.
fn conditions(tally: &Tally, about: About<'_>) -> Vec<Condition> {
    let rule = about.rule;
    let condition = |kind: &str, holds: bool, reason: &str, message: String| {
        let status = if holds { "True" } else { "False" };
        let previous = about
            .previous
            .conditions
            .iter()
            .find(|known| known.type_ == kind && known.status == status);
        Condition {
            type_: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message,
            observed_generation: Some(rule.generation),
            last_transition_time: previous.map_or(Time(whole_second(about.now)), |known| {
                known.last_transition_time.clone()
            }),
        }
    };
    let spec = match &rule.spec {
        Ok(spec) => spec,
        Err(rejection) => {
            return vec![condition(
                "Accepted",
                false,
                "Invalid",
                rejection.to_string(),
            )];
        }
    };
    let mut conditions = vec![condition(
        "Accepted",
        true,
        "Valid",
        "the rule is in force".into(),
    )];

    conditions.push(match conflict(tally, spec, about.governors) {
        Some((reason, message)) => condition("Conflicted", true, reason, message),
        None => condition(
            "Conflicted",
            false,
            "NoConflict",
            "no other rule governs the same taint".into(),
        ),
    });
    if let Some(obstacle) = about.obstacle {
        let message = format!("no node can be repaired: {obstacle}");
        conditions.push(condition(
            "RepairUnavailable",
            true,
            "NoNodeClaims",
            message,
        ));
    }
    if let Some(report) = about.disruption {
        let limits = report.waiting > 0;
        let reason = match limits {
            true if report.all_zones_disrupted => "AllZonesDisrupted",
            true => "NodesHeldBack",
            false => "NoNodeHeldBack",
        };
        conditions.push(condition(
            "DisruptionLimited",
            limits,
            reason,
            report.to_string(),
        ));
    }
    if !about.shut_out.is_empty() {
        conditions.push(condition(
            "DaemonSetsShutOut",
            true,
            "TaintNotTolerated",
            shut_out_message(spec, about.shut_out),
        ));
    }
    conditions
}

/// Which earlier rules govern this one's taint, on nodes that there are or, failing that, on nodes that there may be:
/// as reason and message.
fn conflict(
    tally: &Tally,
    spec: &CompiledSpec,
    governors: &[Arc<str>],
) -> Option<(&'static str, String)> {
    let governed: Vec<&Arc<str>> = tally
        .nodes
        .values()
        .filter_map(|(record, _)| match &record.role {
            Role::Conflicted { with } => Some(with),
            _ => None,
        })
        .collect();
    let (key, effect) = (&spec.taint.key, spec.effect);
    let quoted = |name: &Arc<str>| format!("'{name}'");
    if !governed.is_empty() {
        let names: BTreeSet<&Arc<str>> = governed.iter().copied().collect();
        let message = format!(
            "{} of {} nodes have taint {key}:{effect} governed by an earlier rule: {}",
            governed.len(),
            tally.nodes.len(),
            enumerated(names.into_iter().map(quoted)),
        );
        Some(("TaintGovernedByAnotherRule", message))
    } else if !governors.is_empty() {
        let message = format!(
            "an earlier rule governs taint {key}:{effect} on every node that both select, though there is none now: {}",
            enumerated(governors.iter().map(quoted)),
        );
        Some(("SelectorsOverlap", message))
    } else {
        None
    }
}

/// Says which critical `DaemonSet`s a rule does not wait for, and what to do about it.
pub fn shut_out_message(spec: &CompiledSpec, shut_out: &[ShutOut]) -> String {
    let names = shut_out
        .iter()
        .map(|shut_out| shut_out.daemon_set.to_string());
    format!(
        "not waited for, because they do not tolerate taint {}:{}: DaemonSet {} (add the toleration to their pod template)",
        spec.taint.key,
        spec.effect,
        enumerated(names),
    )
}

/// The first few of some names, and how many more there are.
fn enumerated(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 {
        format!("{shown} (+{more} more)")
    } else {
        shown
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The API writes times in whole seconds, so that is what is compared.
fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn shortened(message: &str) -> String {
    let end = (0..=MAX_MESSAGE.min(message.len()))
        .rev()
        .find(|end| message.is_char_boundary(*end));
    message[..end.unwrap_or_default()].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, node, rule, world};

    const KEY: &str = "readiness.k8s.io/gate";

    /// A node that the rules here select.
    fn member(name: &str) -> NodeBuilder {
        node(name).label("pool", "a")
    }

    fn gate() -> RuleBuilder {
        rule("gate")
            .selects("pool", "a")
            .taint(KEY, "NoSchedule")
            .waits_for("Net")
    }

    /// What the rule makes of these nodes.
    fn tally(rule: &RuleBuilder, nodes: &[NodeBuilder]) -> (Tally, Arc<Rule>) {
        let mut tally = Tally::default();
        for node in nodes {
            let world = world(node).rule(rule);
            for outcome in world.plan().outcomes {
                tally.record(&world.node.name, Record::new(&outcome, false), at(0));
            }
        }
        (tally, world(&nodes[0]).rule(rule).rules()[0].clone())
    }

    fn about<'a>(rule: &'a Rule, previous: &'a NodeReadinessRuleStatus) -> About<'a> {
        About {
            rule,
            shut_out: &[],
            prospects: Prospects::default(),
            obstacle: None,
            disruption: None,
            governors: &[],
            node_limit: 100,
            previous,
            now: at(60),
        }
    }

    #[test]
    fn counts_are_exact_and_held_nodes_come_first() {
        let nodes = [
            member("a").condition("Net", "True"),
            member("b")
                .condition("Net", "False")
                .taint(KEY, "NoSchedule"),
            member("c").condition("Net", "False"),
        ];
        let (mut tally, rule) = tally(&gate(), &nodes);
        let failure = Failure {
            reason: "AddTaintError",
            message: "no".into(),
        };
        tally.fail(&"c".into(), failure, at(0));
        let none = NodeReadinessRuleStatus::default();
        let status = build(&tally, about(&rule, &none));
        let counts = (
            status.matched_nodes,
            status.held_nodes,
            status.released_nodes,
            status.failed_node_count,
        );
        assert_eq!(counts, (Some(3), Some(1), Some(2), Some(1)));
        let evaluated: Vec<_> = status
            .node_evaluations
            .iter()
            .map(|node| node.node_name.as_str())
            .collect();
        assert_eq!(evaluated, ["b", "a", "c"]);
        assert_eq!(
            status.applied_nodes,
            ["b", "a"],
            "a node that failed is not among them"
        );
        assert_eq!(status.failed_nodes[0].node_name, "c");
        let limited = About {
            node_limit: 1,
            ..about(&rule, &none)
        };
        let limited = build(&tally, limited);
        assert_eq!(
            (limited.matched_nodes, limited.applied_nodes),
            (Some(3), vec!["b".to_owned()])
        );
    }

    #[test]
    fn a_dry_run_is_summed_up() {
        let met = || member("met").condition("Net", "True");
        let unmet = || member("unmet").condition("Net", "False");
        let gated = |node: NodeBuilder| node.taint(KEY, "NoSchedule");
        for (nodes, summary) in [
            (vec![met(), gated(unmet())], "No changes needed"),
            (
                vec![unmet(), member("x").condition("Net", "False")],
                "would add 2 taints",
            ),
            (vec![gated(met())], "would remove 1 taints"),
            (
                vec![gated(met()), unmet(), member("silent")],
                "would add 2 taints, would remove 1 taints, 1 nodes have missing conditions",
            ),
        ] {
            let (tally, rule) = tally(&gate().dry_run(), &nodes);
            let none = NodeReadinessRuleStatus::default();
            let results = build(&tally, about(&rule, &none)).dry_run_results;
            assert_eq!(
                results.map(|results| results.summary).as_deref(),
                Some(summary)
            );
        }
    }

    #[test]
    fn what_has_not_changed_keeps_its_time() {
        let nodes = [member("a").condition("Net", "True")];
        let (tally, rule) = tally(&gate(), &nodes);
        let first = build(&tally, about(&rule, &NodeReadinessRuleStatus::default()));
        let mut later = Tally::default();
        for (node, (record, _)) in tally.nodes {
            later.record(&node, record, at(3600));
        }
        let again = About {
            now: at(3600),
            ..about(&rule, &first)
        };
        assert_eq!(build(&later, again), first);
    }

    #[test]
    fn a_node_is_closed_from_when_it_was_first_seen_so_until_it_is_open() {
        let mut tally = Tally::default();
        let mut see = |status: &str, tainted: bool, now: i64| {
            let mut node = member("a").condition("Net", status);
            if tainted {
                node = node.taint(KEY, "NoSchedule");
            }
            let world = world(&node).rule(&gate());
            let outcome = &world.plan().outcomes[0];
            tally.record(&world.node.name, Record::new(outcome, false), at(now));
            tally.longest_closed_since()
        };
        assert_eq!(see("True", false, 0), None);
        assert_eq!(see("False", false, 10), Some(at(10)));
        assert_eq!(see("Unknown", true, 20), Some(at(10)));
        assert_eq!(see("True", true, 30), Some(at(10)), "not lifted yet");
        assert_eq!(see("True", false, 40), None);
    }

    #[test]
    fn the_lists_stay_small_however_many_nodes_and_conditions_there_are() {
        let mut rule = rule("gate").selects("pool", "a").taint(KEY, "NoSchedule");
        for index in 0..32 {
            rule = rule.waits_for(&format!("{}.example.com/Condition{index}", "c".repeat(60)));
        }
        let names: Vec<String> = (0..200)
            .map(|index| format!("{}-{index}", "n".repeat(60)))
            .collect();
        let nodes: Vec<_> = names.iter().map(|name| member(name)).collect();
        let (tally, rule) = tally(&rule, &nodes);
        let status = build(&tally, about(&rule, &NodeReadinessRuleStatus::default()));
        let size = serde_json::to_string(&status).unwrap().len();
        assert!(size < 32 * 1024, "{size} bytes");
        assert_eq!(status.matched_nodes, Some(200));
    }
}
