//! Explains a rule: its state, its effect on its nodes, and what those lack.

use serde::Serialize;
use std::sync::Arc;

use super::node::{clean_up, go_on, way_out};
use super::told;
use crate::page::{Block, Branch, Line, NextStep, Page, Render};
use crate::rows::{RuleOnNode, State, rows};
use crate::snapshot::Snapshot;
use crate::status::{RuleState, RuleStatus};
use nodegate_core::rule::{CompiledSpec, Rule};
use nodegate_core::text::counted;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RuleExplanation {
    #[serde(flatten)]
    pub status: RuleStatus,
    /// Why the rule cannot be used; `None` if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    pub selector: String,
    pub conditions: Vec<ConditionOfRule>,
    /// The rules that take precedence on nodes that both match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<Arc<str>>,
    /// Nodes that it holds or would, longest first, and nodes that lack a condition but are not gated yet.
    pub nodes: Vec<RuleOnNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ConditionOfRule {
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    pub requirement: String,
    /// On how many nodes it is not met.
    pub unmet: usize,
}

pub(crate) fn explain_rule(snapshot: &Snapshot, name: &str) -> Option<RuleExplanation> {
    let view = &snapshot.view;
    let cached = view.cached_rules().get(name)?;
    let rule = &*cached.rule;
    let mut nodes = rows(snapshot);
    nodes.retain(|it| *it.rule == *name);
    let status = RuleStatus::of(snapshot, cached, &nodes);
    let spec = rule.spec.as_ref().ok();
    let requirements = spec.into_iter().flat_map(|spec| &spec.conditions);
    let conditions = requirements.map(|it| {
        let lacks = |row: &&RuleOnNode| row.conditions.iter().any(|lack| lack.kind == it.kind);
        ConditionOfRule {
            kind: it.kind.clone(),
            requirement: it.to_string(),
            unmet: nodes.iter().filter(lacks).count(),
        }
    });
    let conditions = conditions.collect();
    nodes.retain(|it| {
        it.state.is_unmet() || matches!(it.state, State::Releasing | State::Conflicted)
    });
    nodes.sort_by_key(|it| (!it.holds(), it.since, it.node.clone()));
    let mut notes = snapshot.notes();
    notes.extend(snapshot.idle());
    notes.extend(way_out(cached));
    Some(RuleExplanation {
        next: next(snapshot, rule, &status, &nodes),
        rejection: rule.trouble(),
        selector: spec.map_or_else(String::new, |spec: &CompiledSpec| spec.selector.to_string()),
        conditions,
        governors: view.rules().governors_of(rule),
        nodes,
        notes,
        status,
    })
}

fn next(
    snapshot: &Snapshot,
    rule: &Rule,
    status: &RuleStatus,
    nodes: &[RuleOnNode],
) -> Option<NextStep> {
    let name = &rule.name;
    Some(match status.state {
        RuleState::Suspended => go_on(snapshot, name),
        RuleState::Deleting => clean_up(snapshot.leader.as_ref(), name),
        RuleState::Invalid if rule.pruned => NextStep::new(
            "apply Nodegate's definition again, and then the rule",
            "kubectl apply --server-side --force-conflicts -k config/crd",
        ),
        RuleState::Invalid if rule.spec.is_ok() => NextStep::new(
            "give the controller the configuration that has the class",
            "kubectl nodegate check",
        ),
        // Most of its fields are immutable.
        RuleState::Invalid => NextStep::new(
            "delete the rule, which releases its nodes, and create it again with that corrected",
            format!("kubectl delete nodereadinessrule {name}"),
        ),
        RuleState::NotTakenOn => {
            NextStep::new("see whether a controller runs", "kubectl nodegate status")
        }
        _ => match nodes.first() {
            Some(first) => NextStep::see_node(&first.node),
            None if status.published.is_empty() => return None,
            None => NextStep::new(
                "see what else is wrong, and how to correct it",
                "kubectl nodegate check",
            ),
        },
    })
}

impl Render for RuleExplanation {
    const KIND: &'static str = "RuleExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        let told = |tree| told(tree, self.next.as_ref(), &self.notes);
        let status = &self.status;
        let mode = status.mode.map_or("", |mode| mode.as_str());
        let head = Line::about(format!("rule/{}", status.rule));
        let (look, state) = status.state.words();
        let head = head.with(look, state);
        let tree = Branch::from(head.faint(format!("  {} {mode}", status.taint)));
        if let Some(why) = &self.rejection {
            return told(tree.over([Line::mark(false).plain(why)]));
        }
        let is_deleted = status.state == RuleState::Deleting;
        let effect = if is_deleted {
            format!("its taint is still on {}", counted(status.held, "node"))
        } else {
            let waiting = match status.waiting {
                0 => String::new(),
                waiting => format!(", {waiting} of these waiting to be gated"),
            };
            format!(
                "selects {} by {}: {} held, {} not held{waiting}",
                counted(status.matched, "node"),
                self.selector,
                status.held,
                status.not_held,
            )
        };
        // The conditions of a rule that is being deleted no longer count.
        let conditions = self.conditions.iter().filter(|_| !is_deleted);
        let conditions = conditions.map(|condition| {
            let line = match status.matched {
                0 => Line::new(),
                _ => Line::mark(condition.unmet == 0),
            };
            let line = line.plain(format!("{} {}", condition.kind, condition.requirement));
            let lacks = status.lacks.iter();
            let lacks = lacks.filter(|it| it.condition == condition.kind);
            let lacks = lacks.map(|it| format!("{} on {}", it.reason, counted(it.nodes, "node")));
            let mut lacks: Vec<String> = lacks.collect();
            if lacks.is_empty() && condition.unmet > 0 {
                let nodes = counted(condition.unmet, "node");
                lacks.push(format!("not met on {nodes} that it does not hold"));
            }
            Branch::from(line).over(lacks)
        });
        let published = status.published.iter().map(|it| {
            let line = Line::new().poor(format!("{}: ", it.kind));
            line.plain(&it.message)
        });
        let remarks = status.remarks.iter().map(String::as_str);
        let nodes = page.some(&self.nodes, |row| row.of_node(page, false));
        let tree = tree.over([effect]).over(conditions);
        told(tree.over(published).over(remarks).over(nodes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::Leader;
    use crate::testing::Scene;
    use crate::testing::{Builder, GATE, RuleBuilder, at, node, rule};
    use nodegate_core::api::names::SUSPEND_ALL;

    /// A rule of which the status says that it holds so many of its three nodes.
    fn holding(held: usize) -> RuleBuilder {
        let mut rule = rule("r").waits_for("Net");
        let counts =
            json!({"matchedNodes": 3, "heldNodes": held, "releasedNodes": 0, "failedNodeCount": 0});
        rule.json()["status"] = json!({"nodegate": counts});
        rule
    }

    #[test]
    fn the_next_step_is_a_way_out_and_never_an_edit_of_what_cannot_be_changed() {
        let rejected = || holding(3).spec("conditions: []");
        let mut pruned = holding(3);
        pruned.json()["metadata"]["managedFields"] =
            json!([{"fieldsV1": {"f:spec": {"f:nodegate": {}}}}]);
        let lease = json!({
            "metadata": {"annotations": {SUSPEND_ALL: "true"}},
            "spec": {"holderIdentity": "a", "renewTime": "2026-01-01T00:01:00.000000Z"},
        });
        let lease = || Leader::of(serde_json::from_value(lease.clone()).unwrap());
        let mut held_back = holding(2);
        held_back.json()["status"]["conditions"] = json!([{"type": "HeldBack", "status": "True", "reason": "A",
            "message": "", "observedGeneration": 1, "lastTransitionTime": at(0)}]);
        #[rustfmt::skip]
        let cases = [
            ("rejected", rejected(), false, "kubectl delete nodereadinessrule r"),
            ("pruned", pruned, false, "kubectl apply --server-side --force-conflicts -k config/crd"),
            ("braked, holds all", holding(3), true, "kubectl delete nodereadinessrule r"),
            ("braked, holds some", holding(2), true, "annotate lease"),
            ("holds all", holding(3), false, "kubectl nodegate explain node/n"),
            ("suspended", holding(2).suspended(), false, "kubectl nodegate preview -f FILE"),
            ("held back", held_back, false, "kubectl nodegate explain node/n"),
        ];
        for (what, rule, brakes, expected) in cases {
            let tainted = node("n").dated_taint(GATE, "NoSchedule");
            let mut snapshot = Scene::default().rule(&rule).node(tainted).read(at(60));
            snapshot.leader = brakes.then(lease);
            snapshot.view.suspend_all(brakes);
            snapshot.view.prepare();
            let it = explain_rule(&snapshot, "r").unwrap();
            let command = it.next.unwrap().command;
            assert!(command.contains(expected), "{what}: {command}");
            let way_out = it.notes.iter().any(|it| it.contains("holds all 3 nodes"));
            assert_eq!(
                way_out,
                !["braked, holds some", "suspended", "held back"].contains(&what),
                "{what}: {:?}",
                it.notes
            );
        }
    }

    #[test]
    fn a_condition_that_is_not_met_is_counted_also_on_nodes_that_are_not_held() {
        let leaving = rule("r").waits_for("Net").bootstrap_only();
        let leaving = leaving.nodegate("existingNodes: Leave");
        let scene = Scene::default()
            .rule(&leaving)
            .node(node("n").created(at(-60)));
        let text = explain_rule(&scene.read(at(60)), "r").unwrap();
        let text = text.text(&Page::plain(at(60)));
        let expected = "\u{2717} Net must be True\n   └─ not met on 1 node that it does not hold";
        assert!(text.contains(expected), "{text}");
    }
}
