//! `status`: the cluster on one screen. It computes held nodes as the controller does; failed writes and guards are from statuses.

pub(super) mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::page::states;
use super::rows::{Lacking, NodeVerdict, RuleOnNode, State, first_of_nodes, lacking, rows};
use super::snapshot::{Leader, LeaderHealth, Snapshot};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::api::EnforcementMode;
use nodegate_core::finding::Backing;
use nodegate_core::rule::WhyStray;
use nodegate_core::text::counted;
use nodegate_engine::{CachedRule, HELD_BACK, MET_BY_NO_NODE, REMARKS, SELECTS_NO_NODE, says};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterStatus {
    pub versions: Versions,
    /// The leader; `None` without a Lease, and if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderStatus>,
    /// Why it is unknown whether a controller leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_unknown: Option<String>,
    pub nodes: NodeCounts,
    pub rules: Vec<RuleStatus>,
    /// The held nodes, each once, longest first.
    pub held: Vec<RuleOnNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stray_taints: Vec<StrayTaint>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Versions {
    pub client: &'static str,
    /// The images of the controller's pods, if they may be listed.
    pub controllers: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LeaderStatus {
    #[serde(flatten)]
    pub lease: Leader,
    pub health: LeaderHealth,
    /// How many controller instances exist, and how many of them are Ready.
    pub instances: (usize, usize),
}

/// How many nodes are in which state. A node that several rules match counts once, in its worst state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NodeCounts {
    pub total: usize,
    #[serde(flatten)]
    pub by_verdict: BTreeMap<NodeVerdict, usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleStatus {
    pub rule: Arc<str>,
    pub state: RuleState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<EnforcementMode>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub taint: String,
    pub matched: usize,
    /// How many matched nodes have its taint and keep it, or are about to get it.
    pub held: usize,
    /// How many matched nodes lack its taint.
    pub not_held: usize,
    /// How many of these lack a condition: within their grace period, or delayed by the guard.
    pub waiting: usize,
    /// On how many nodes the controller failed to apply the rule, as published.
    pub failing: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_held: Option<Timestamp>,
    /// What its nodes lack, most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Lacking>,
    /// Conditions that need attention: as published, and what is wrong now with what the rule waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedCondition>,
    /// What else its author may not expect of what the rule waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PublishedCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
}

states! {
    pub(super) enum RuleState {
        InForce = Good "in force",
        /// In force, and another rule governs its taint on some of its nodes, or on all.
        Conflicted = Bad "conflicted",
        /// Would gate too many nodes in use as it comes into force, and gates none of them.
        HeldBack = Bad "held back",
        /// None of its nodes meets what it asks for.
        MetByNoNode = Bad "nothing meets it",
        SelectsNoNode = Poor "selects no node",
        DryRun = Poor "dry run",
        Suspended = Poor "suspended",
        Invalid = Bad "invalid",
        /// The rule's finalizer is missing, so no controller acts on it.
        NotTakenOn = Poor "not picked up yet",
        Deleting = Poor "being deleted",
    }
}

/// A taint on nodes that looks like a rule's and that no rule removes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct StrayTaint {
    pub taint: String,
    pub why: String,
    pub nodes: usize,
    /// The first of these nodes by name.
    pub example: Arc<str>,
}

pub(super) fn status(snapshot: &Snapshot) -> ClusterStatus {
    let all = rows(snapshot);
    let rules = snapshot.view.cached_rules().values();
    let rules = rules.map(|cached| RuleStatus::of(snapshot, cached, &all));
    let mut rules: Vec<RuleStatus> = rules.collect();
    rules.sort_by(|a, b| a.rule.cmp(&b.rule));
    let mut held: Vec<&RuleOnNode> = all.iter().filter(|it| it.holds()).collect();
    // Unknown times come last.
    held.sort_by_key(|it| (it.since.is_none(), it.since, &it.node));
    let (leader, instances) = (snapshot.leader.as_ref(), &snapshot.controllers);
    let ready = instances.iter().filter(|(_, is_ready)| *is_ready);
    ClusterStatus {
        versions: Versions {
            client: env!("CARGO_PKG_VERSION"),
            controllers: instances.iter().map(|it| it.0.clone()).collect(),
        },
        leader: leader.map(|lease| LeaderStatus {
            lease: lease.clone(),
            health: lease.health(snapshot.at),
            instances: (instances.len(), ready.count()),
        }),
        leader_unknown: snapshot.gap(ResourceKind::Leases).map(Gap::refusal),
        nodes: NodeCounts::of(snapshot, &all),
        rules,
        held: first_of_nodes(held),
        stray_taints: stray_taints(snapshot),
        notes: snapshot.notes(),
    }
}

impl ClusterStatus {
    /// The nodes that are not released yet, and the first of them with its reason; `None` if there are none.
    pub(super) fn awaited(&self) -> Option<String> {
        let awaited = [NodeVerdict::Held, NodeVerdict::Releasing];
        let count @ 1.. = awaited.iter().map(|it| self.nodes.by_verdict[it]).sum() else {
            return None;
        };
        let awaited = format!("{} not released yet", counted(count, "node"));
        let Some(first) = self.held.first() else {
            return Some(awaited);
        };
        let (node, rule, why) = (&first.node, &first.rule, &first.why);
        let separator = if why.is_empty() { "" } else { ": " };
        Some(format!(
            "{awaited}, longest node/{node}, held by rule/{rule}{separator}{why}"
        ))
    }
}

impl RuleStatus {
    /// The status of a rule, whose rows are among these.
    pub(super) fn of(snapshot: &Snapshot, cached: &CachedRule, rows: &[RuleOnNode]) -> Self {
        let rule = &*cached.rule;
        let spec = rule.spec.as_ref().ok();
        let counts = cached.object.status.nodegate.as_ref();
        let own: Vec<&RuleOnNode> = rows.iter().filter(|it| it.rule == rule.name).collect();
        let own = || own.iter().copied();
        let holding = own().filter(|it| it.holds());
        // Whoever governs its taint: as in the rule's own status.
        let is_held =
            |it: &&RuleOnNode| it.state.holds() || it.tainted && it.state != State::Releasing;
        let is_conflicted = own().any(|it| it.state == State::Conflicted);
        let remarks = snapshot.remarks(rule);
        Self {
            rule: rule.name.clone(),
            state: RuleState::of(cached, is_conflicted),
            mode: spec.map(|spec| spec.mode),
            taint: spec.map_or_else(String::new, |spec| spec.taint.to_string()),
            matched: own().count(),
            held: own().filter(is_held).count(),
            not_held: own().filter(|it| !it.tainted).count(),
            waiting: own().filter(|it| it.state == State::Waiting).count(),
            failing: counts.map_or(0, |it| it.failed_node_count),
            longest_held: holding.filter_map(|it| it.since).min(),
            lacks: lacking(own().filter(|it| it.state.is_unmet())),
            published: conditions(cached, remarks.as_ref()),
            remarks: (remarks.into_iter().flat_map(|it| it.notes))
                .chain(snapshot.kept_out(&rule.name))
                .collect(),
        }
    }
}

/// The conditions that need attention. What is wrong with what the rule waits for is as of now, or as published if unknown.
fn conditions(cached: &CachedRule, remarks: Option<&Backing>) -> Vec<PublishedCondition> {
    let conditions = cached.object.status.conditions.iter();
    let is_news = |kind: &str, status: &str| match kind {
        "Accepted" => status == "False",
        "Suspended" => false,
        kind if REMARKS.contains(&kind) => status == "True" && remarks.is_none(),
        _ => status == "True",
    };
    let published = conditions.filter(|it| is_news(&it.type_, &it.status));
    let condition = |kind: &str, message: &str| PublishedCondition {
        kind: kind.into(),
        message: message.into(),
    };
    let published = published.map(|it| condition(&it.type_, &it.message));
    let wrong = remarks.into_iter().flat_map(|it| &it.findings);
    let wrong = wrong.filter_map(|it| Some(condition(it.check.published.first()?.0, &it.message)));
    published.chain(wrong).collect()
}

/// The taints on nodes that no rule removes, those on most nodes first.
pub(super) fn stray_taints(snapshot: &Snapshot) -> Vec<StrayTaint> {
    let mut nodes: BTreeMap<(String, WhyStray), Vec<&Arc<str>>> = BTreeMap::new();
    let rules = snapshot.view.rules();
    for node in snapshot.view.nodes().filter(|node| !node.deleting) {
        for (taint, why) in rules.stray(node) {
            let of_taint = nodes.entry((taint.to_string(), why)).or_default();
            of_taint.push(&node.name);
        }
    }
    let stray = nodes.into_iter().filter_map(|((taint, why), nodes)| {
        Some(StrayTaint {
            taint,
            why: why.to_string(),
            nodes: nodes.len(),
            example: nodes.into_iter().min()?.clone(),
        })
    });
    let mut stray: Vec<StrayTaint> = stray.collect();
    stray.sort_by_key(|it| std::cmp::Reverse(it.nodes));
    stray
}

impl RuleState {
    fn of(cached: &CachedRule, is_conflicted: bool) -> Self {
        let rule = &*cached.rule;
        let says = |kind| says(&cached.object.status, kind, rule.generation);
        match &rule.spec {
            _ if rule.deleting => Self::Deleting,
            _ if rule.trouble().is_some() => Self::Invalid,
            _ if rule.is_suspended() => Self::Suspended,
            _ if !rule.is_taken_on() => Self::NotTakenOn,
            Ok(spec) if spec.dry_run => Self::DryRun,
            _ if says(HELD_BACK) => Self::HeldBack,
            _ if is_conflicted => Self::Conflicted,
            _ if says(MET_BY_NO_NODE) => Self::MetByNoNode,
            _ if says(SELECTS_NO_NODE) => Self::SelectsNoNode,
            _ => Self::InForce,
        }
    }
}

impl NodeCounts {
    /// Counts nodes; `all` are the rows of all nodes.
    fn of(snapshot: &Snapshot, all: &[RuleOnNode]) -> Self {
        use NodeVerdict::{Held, LeftAlone, NotHeld, NotSelected, Releasing, Waiting};
        let rows = all.chunk_by(|a, b| a.node == b.node);
        let rows: BTreeMap<&str, &[RuleOnNode]> = rows.map(|it| (&*it[0].node, it)).collect();
        // Those that rules and the controller alone give are always there.
        let always = [Held, Releasing, Waiting, NotHeld, NotSelected, LeftAlone];
        let mut by_verdict = BTreeMap::from(always.map(|it| (it, 0)));
        for node in snapshot.view.nodes() {
            let rows = rows.get(&*node.name).copied().unwrap_or_default();
            let is_left_alone = snapshot.view.left_alone(&node.name).is_some();
            let verdict = NodeVerdict::of(rows, is_left_alone);
            *by_verdict.entry(verdict).or_default() += 1;
        }
        Self {
            total: by_verdict.values().sum(),
            by_verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::explain_node;
    use crate::testing::Scene;
    use crate::testing::{Builder, GATE, at, node, rule};

    #[test]
    fn taints_that_no_rule_removes_are_told_with_what_to_do() {
        let misspelt = "readiness.k8s.io/gaet";
        let scene = Scene::default()
            .rule(&rule("r").waits_for("Net"))
            .node(
                node("a")
                    .condition("Net", "True")
                    .taint(misspelt, "NoSchedule"),
            )
            .node(
                node("b")
                    .condition("Net", "True")
                    .taint(misspelt, "NoSchedule"),
            )
            .node(node("c").taint(GATE, "NoSchedule"));
        let read = scene.read(at(60));
        let expected = StrayTaint {
            taint: format!("{misspelt}:NoSchedule"),
            why: "no rule has this taint".into(),
            nodes: 2,
            example: "a".into(),
        };
        assert_eq!(status(&read).stray_taints, [expected]);
        let next = explain_node(&read, "a").and_then(|it| it.next).unwrap();
        let command = next.command;
        assert_eq!(
            command,
            format!("kubectl taint node a {misspelt}:NoSchedule-")
        );
    }

    #[test]
    fn a_rule_being_deleted_still_holds_its_nodes() {
        let deleted = rule("r").waits_for("Net").deleting();
        let tainted = || node("a").dated_taint(GATE, "NoSchedule");
        let rejected = deleted.clone().spec("conditions: []");
        let owned = tainted().owned_by("r", GATE, "NoSchedule");
        let elsewhere = deleted.clone().selects("pool", "other");
        let dry = deleted.clone().dry_run();
        for (what, rule, node, is_held) in [
            ("selected", &deleted, tainted(), true),
            ("unusable", &rejected, tainted(), true),
            ("owned", &elsewhere, owned, true),
            ("another's taint", &elsewhere, tainted(), false),
            ("not held", &deleted, node("a"), false),
            (
                "a dry run's taint",
                &dry,
                tainted().owned_by("r", GATE, "NoSchedule"),
                true,
            ),
            ("a dry run", &dry, tainted(), false),
            ("going itself", &deleted, tainted().deleting(), false),
        ] {
            let read = Scene::default().rule(rule).node(node).read(at(60));
            let status = status(&read);
            let held = usize::from(is_held);
            assert_eq!(
                (
                    status.nodes.by_verdict[&NodeVerdict::Held],
                    status.rules[0].held
                ),
                (held, held),
                "{what}"
            );
            assert_eq!(status.held.len(), held, "{what}");
            let explained = explain_node(&read, "a").unwrap();
            let verdict = serde_json::to_value(explained.verdict).unwrap();
            assert_eq!(verdict == "held", is_held, "{what}: {verdict}");
            if is_held {
                let why = "the rule is being deleted since 2026-01-01T00:00:00Z: its taint stays until a controller removes it";
                assert_eq!(explained.rules[0].remarks, [why], "{what}");
                assert_eq!(status.held[0].why, why, "{what}");
                let next = explained.next.unwrap();
                assert!(next.say.contains("start a controller"), "{what}: {next:?}");
            }
        }
        // Where another rule governs the taint, that rule holds the node.
        let heir = rule("s").waits_for("Net");
        let scene = Scene::default().rule(&deleted).rule(&heir).node(tainted());
        let held = &status(&scene.read(at(60))).held;
        assert_eq!((held.len(), &*held[0].rule), (1, "s"));
    }

    #[test]
    fn a_rule_that_another_governs_counts_the_nodes_with_its_taint_as_its_status_does() {
        let first = rule("a").waits_for("Net").created(at(-60));
        let scene = Scene::default()
            .rule(&first)
            .rule(&rule("b").waits_for("Net"));
        let scene = scene.node(node("n").dated_taint(GATE, "NoSchedule"));
        let rules = status(&scene.read(at(60))).rules;
        let counts = rules.iter().map(|it| (it.matched, it.held, it.not_held));
        assert_eq!(counts.collect::<Vec<_>>(), [(1, 1, 0), (1, 1, 0)]);
        let states = rules.iter().map(|it| it.state);
        assert_eq!(
            states.collect::<Vec<_>>(),
            [RuleState::InForce, RuleState::Conflicted]
        );
    }

    #[test]
    fn a_dry_run_says_what_is_missing_before_any_controller_has() {
        let waits = rule("r").waits_for("daemonset.nodegate.dev/kube-system.cillium");
        let leaving = waits
            .bootstrap_only()
            .nodegate("existingNodes: Leave")
            .dry_run();
        let read = Scene::default().rule(&leaving).node(node("a")).read(at(60));
        let published = &status(&read).rules[0].published;
        assert_eq!(published[0].kind, "ConditionsNotMade", "{published:?}");
        assert!(
            published[0]
                .message
                .contains("no DaemonSet kube-system/cillium")
        );
    }
}
