//! `preview`: what rules would do before they are created or edited. It puts the rules into the engine's view of the cluster,
//! and compares the plans before and after.

mod input;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::read::DryRunAnswer;
use super::rows::{RuleOnNode, State, gap, rows};
use super::snapshot::Snapshot;
use crate::engine::{NOT_MADE, Remark, SHUT_OUT};
use crate::object::RuleObject;
use crate::rule::{CompiledSpec, Rejection, Rule};
use crate::wording::counted;
pub(super) use input::{File, Written, rules};

const IMMUTABLE: [&str; 4] = [
    "conditions",
    "enforcementMode",
    "nodeSelector",
    "conditionPolicy",
];

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Preview {
    pub rules: Vec<RulePreview>,
    /// Nodes that no rule holds and that would be gated, at once or later, by name.
    pub gates: Vec<RuleOnNode>,
    /// Held nodes that would be released, as they are now.
    pub releases: Vec<RuleOnNode>,
    #[serde(skip)]
    pub is_refused: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Which lists were refused, if any: more nodes may be gated than it says.
    #[serde(skip)]
    pub unread: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RulePreview {
    pub rule: String,
    pub is_edit: bool,
    /// Whether the rule is a dry run, and everything else says what would happen if it were not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_shown_in_force: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    pub selected: usize,
    pub states: BTreeMap<State, usize>,
    /// How many of the nodes that it would gate are held by another rule already.
    pub held_already: usize,
    /// What the nodes that it would gate lack, as condition and reason, and on how many nodes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unmet: BTreeMap<String, usize>,
    /// The earliest time at which nodes in their grace period would be gated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ends: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// What is wrong with what it waits for, and why a node that joins would stay held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Conflicts, a selector without matches, and what its author may not expect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Before {
    nodes: Vec<RuleOnNode>,
    rules: BTreeMap<String, Option<RuleObject>>,
}

impl Before {
    pub(super) fn of(snapshot: &Snapshot, written: &[Written]) -> Self {
        let there = |name: &str| {
            let mut rules = snapshot.rules.iter();
            rules
                .find(|it| it.metadata.name.as_deref() == Some(name))
                .cloned()
        };
        let rules = written.iter().map(|it| (it.name.clone(), there(&it.name)));
        Self {
            nodes: rows(snapshot),
            rules: rules.collect(),
        }
    }

    pub(super) fn rule(&self, name: &str) -> Option<&RuleObject> {
        self.rules.get(name)?.as_ref()
    }
}

/// What these rules change, compared to the state before. `answers` is what the API server says of each.
pub(super) fn preview(
    before: &Before,
    after: &Snapshot,
    written: &[Written],
    answers: &[DryRunAnswer],
) -> Preview {
    let nodes = rows(after);
    let held_before = held(&before.nodes);
    let mut previews: Vec<RulePreview> = written
        .iter()
        .map(|it| of_rule(it, before.rule(&it.name), after, &nodes, &held_before))
        .collect();
    let mut notes = notes(after, &previews);
    for ((preview, answer), written) in previews.iter_mut().zip(answers).zip(written) {
        match answer {
            // It says all that is wrong with the fields, but not where an unknown one belongs.
            DryRunAnswer::Refused(why) => {
                let spec = written.object.get("spec").unwrap_or(&Value::Null);
                preview.refusals = crate::api::misplaced(spec);
                preview.refusals.push(why.clone());
            }
            DryRunAnswer::NotAsked(why) => {
                let note = format!("whether the API server takes the rules was not asked: {why}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            DryRunAnswer::Accepted => {}
        }
    }
    let held_after = held(&nodes);
    let was_waiting = |it: &RuleOnNode| {
        let mut before = before.nodes.iter();
        before.any(|was| (&was.node, &was.rule, was.state) == (&it.node, &it.rule, State::Waiting))
    };
    let mut gates: Vec<RuleOnNode> = nodes
        .iter()
        .filter(|it| !held_before.contains(&it.node))
        .filter(|it| it.state.holds() || it.state == State::Waiting && !was_waiting(it))
        .cloned()
        .collect();
    gates.sort_by_key(|it| it.state == State::Waiting);
    let releases = before.nodes.iter().filter(|it| it.state.holds());
    let mut releases: Vec<RuleOnNode> = releases
        .filter(|it| !held_after.contains(&it.node))
        .cloned()
        .collect();
    for changes in [&mut gates, &mut releases] {
        let mut seen = BTreeSet::new();
        changes.retain(|it| seen.insert(it.node.clone()));
    }
    Preview {
        is_refused: previews.iter().any(|it| !it.refusals.is_empty()),
        notes,
        unread: after.unread(),
        rules: previews,
        gates,
        releases,
    }
}

/// The nodes that have a rule's taint, or are about to get it.
fn held(nodes: &[RuleOnNode]) -> BTreeSet<Arc<str>> {
    let held = nodes.iter();
    let held = held.filter(|it| it.state.holds() || it.state == State::Releasing);
    held.map(|it| it.node.clone()).collect()
}

fn of_rule(
    written: &Written,
    there: Option<&RuleObject>,
    after: &Snapshot,
    nodes: &[RuleOnNode],
    held_before: &BTreeSet<Arc<str>>,
) -> RulePreview {
    let new = written.object.get("spec").unwrap_or(&Value::Null);
    let view = &after.view;
    let cached = view.cached_rules().get(&*written.name);
    let rule = cached.map(|cached| &*cached.rule);
    let spec = rule.and_then(|rule| rule.spec.as_ref().ok());
    let differences = there
        .and_then(|there| serde_json::to_value(there.spec.as_ref().ok()?).ok())
        .map_or_else(Vec::new, |old| differences(&old, &canonical(new)));
    let own: Vec<&RuleOnNode> = nodes
        .iter()
        .filter(|it| *it.rule == *written.name)
        .collect();
    let mut states: BTreeMap<State, usize> = BTreeMap::new();
    let mut held_already = 0;
    let mut unmet: BTreeMap<String, usize> = BTreeMap::new();
    for it in &own {
        *states.entry(it.state).or_default() += 1;
        held_already += usize::from(it.state == State::Gating && held_before.contains(&it.node));
        if matches!(it.state, State::Gating | State::Waiting) {
            for condition in &it.conditions {
                let name = format!("{}: {}", condition.kind, condition.cause());
                *unmet.entry(name).or_default() += 1;
            }
        }
    }
    let grace = spec.and_then(|spec| spec.grace_period);
    let is_waiting = own.iter().any(|it| it.state == State::Waiting);
    RulePreview {
        rule: written.name.clone(),
        is_edit: there.is_some(),
        is_shown_in_force: written.is_shown_in_force(there),
        refusals: refusals(new, rule, there.is_some(), &differences),
        differences,
        selected: own.len(),
        states,
        held_already,
        unmet,
        grace_ends: grace
            .filter(|_| is_waiting)
            .and_then(|grace| after.at.checked_add(grace.as_std()).ok()),
        guard: rule
            .and_then(|rule| view.guard(rule))
            .map(|it| it.to_string()),
        faults: match (rule, spec) {
            (Some(rule), Some(spec)) => faults(rule, spec, after, &own),
            _ => Vec::new(),
        },
        warnings: match (rule, spec) {
            (Some(rule), Some(spec)) => warnings(rule, spec, after, own.len()),
            _ => Vec::new(),
        },
    }
}

fn notes(after: &Snapshot, rules: &[RulePreview]) -> Vec<String> {
    let mut notes = after.notes();
    if after.limits.is_none() && rules.iter().any(|rule| rule.guard.is_some()) {
        notes.push(
            "the controller's arguments could not be read from its Deployment: the default disruption limits are assumed"
                .into(),
        );
    }
    notes
}

/// A spec with the API server's defaults, if it can be parsed.
fn canonical(spec: &Value) -> Value {
    let read = serde_json::from_value::<crate::api::NodeReadinessRuleSpec>(spec.clone());
    let read = read.ok().and_then(|spec| serde_json::to_value(spec).ok());
    read.unwrap_or_else(|| spec.clone())
}

fn refusals(
    new: &Value,
    rule: Option<&Rule>,
    is_edit: bool,
    differences: &[Difference],
) -> Vec<String> {
    let mut refusals = crate::api::misplaced(new);
    if let Ok(spec) = serde_json::from_value(new.clone()) {
        let all = Rejection::all(&spec).into_iter();
        let all = all.chain(Rejection::of_conditions(&spec));
        refusals.extend(all.map(|it| it.to_string()));
    }
    let rejection = rule.and_then(|rule| rule.spec.as_ref().err());
    refusals.extend(rejection.map(ToString::to_string));
    for field in IMMUTABLE.into_iter().filter(|_| is_edit) {
        let path = format!("spec.{field}");
        let is_changed = |it: &Difference| {
            it.field == path && upstream_part(it.from.as_ref()) != upstream_part(it.to.as_ref())
                || it
                    .field
                    .strip_prefix(&path)
                    .is_some_and(|it| it.starts_with('.'))
        };
        if differences.iter().any(is_changed) {
            refusals.push(format!(
                "{path} is immutable: delete the rule and create it again, or create another one"
            ));
        }
    }
    refusals.sort();
    refusals.dedup();
    refusals
}

/// A field without what is ours in its items, which can be changed.
fn upstream_part(field: Option<&Value>) -> Option<Value> {
    let mut field = field.cloned()?;
    for item in field.as_array_mut().into_iter().flatten() {
        if let Some(item) = item.as_object_mut() {
            item.remove("nodegate");
        }
    }
    Some(field)
}

/// Whether a remark says that the rule cannot do what its author means.
fn is_fault(remark: &Remark) -> bool {
    [NOT_MADE, SHUT_OUT].contains(&remark.kind)
}

/// What is wrong with what the rule waits for, and whether a node that joins can be expected to be released.
fn faults(rule: &Rule, spec: &CompiledSpec, after: &Snapshot, own: &[&RuleOnNode]) -> Vec<String> {
    let remarks = after.remarks(rule).unwrap_or_default();
    let wrong = remarks.wrong.into_iter().filter(is_fault);
    let mut faults: Vec<String> = wrong.map(|it| it.message).collect();
    let are_known = spec
        .conditions
        .iter()
        .all(|it| gap(&it.source, after).is_none());
    // Where nodes would be gated, they tell.
    let are_left_alone = own.iter().all(|it| it.state == State::NotHeld);
    if faults.is_empty() && are_known && are_left_alone && !own.is_empty() {
        let first = own.iter().find(|it| !it.why.is_empty());
        let is_met_nowhere = own.iter().all(|it| !it.why.is_empty());
        if let Some(first) = first.filter(|_| is_met_nowhere) {
            faults.push(format!(
                "none of the {} that it selects meets its conditions, and nodes that join would wait for the same: {}",
                counted(own.len(), "node"),
                first.why
            ));
        }
    }
    faults
}

fn warnings(rule: &Rule, spec: &CompiledSpec, after: &Snapshot, selected: usize) -> Vec<String> {
    let view = &after.view;
    let mut warnings = Vec::new();
    if let Some(remarks) = after.remarks(rule) {
        let wrong = remarks.wrong.into_iter().filter(|it| !is_fault(it));
        warnings.extend(wrong.map(|it| it.message).chain(remarks.notes));
    }
    for other in view.rules().rules() {
        if other.uid != rule.uid
            && let Some(conflict) = rule.conflict_with(other)
        {
            warnings.push(conflict.to_string());
        }
    }
    if selected == 0 {
        warnings.push(format!("no node is selected by {}", spec.selector));
    }
    if rule.is_suspended() {
        let suspended = || "it is suspended: it changes nothing".into();
        warnings.push(rule.trouble().unwrap_or_else(suspended));
    }
    warnings
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    pub field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

fn differences(from: &Value, to: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("spec", Some(from), Some(to), &mut all);
    all
}

fn compare(field: &str, from: Option<&Value>, to: Option<&Value>, all: &mut Vec<Difference>) {
    if from == to {
        return;
    }
    if let (Some(Value::Object(from)), Some(Value::Object(to))) = (from, to) {
        let added = to.keys().filter(|key| !from.contains_key(*key));
        for key in from.keys().chain(added) {
            compare(&format!("{field}.{key}"), from.get(key), to.get(key), all);
        }
        return;
    }
    all.push(Difference {
        field: field.to_owned(),
        from: from.cloned(),
        to: to.cloned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::page::{Page, Render};
    use crate::cli::testing::Scene;
    use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, node, rule};
    use serde_json::json;

    /// The preview of a rule on these nodes, as text, and whether the exit code says no.
    fn previewed(
        rule: &RuleBuilder,
        there: Option<&RuleBuilder>,
        nodes: &[NodeBuilder],
    ) -> (String, bool) {
        let scene = || {
            let nodes = nodes.iter().cloned();
            nodes.fold(Scene::default(), Scene::node)
        };
        let before = there.into_iter().fold(scene(), Scene::rule).read(at(60));
        let written = Written {
            name: "r".into(),
            object: rule.clone().json().clone(),
        };
        let there = there.map(RuleBuilder::object);
        let applied = written.applied(there.as_ref(), at(60)).unwrap();
        let after = scene().object(applied).read(at(60));
        let written = [written];
        let preview = preview(&Before::of(&before, &written), &after, &written, &[]);
        let page = Page::plain(at(60));
        (preview.text(&page), preview.is_no())
    }

    #[test]
    fn a_dry_run_is_previewed_as_it_would_be_in_force() {
        let nodes = [node("a"), node("b"), node("c").condition("Net", "True")];
        let leaving = || rule("r").bootstrap_only().nodegate("existingNodes: Leave");
        let misspelt = || leaving().waits_for("daemonset.nodegate.dev/kube-system.cillium");
        let unheard_of = || leaving().waits_for("Nett");
        let fine = || leaving().waits_for("Net");
        let gating = || rule("r").waits_for("Net");
        for (name, rule, says_no, says) in [
            (
                "misspelt",
                misspelt(),
                true,
                "fault: there is no DaemonSet kube-system/cillium today",
            ),
            (
                "unheard of",
                unheard_of(),
                true,
                "fault: none of the 3 nodes that it selects meets its conditions",
            ),
            ("fine", fine(), false, "selects 3 nodes: does not hold 3"),
            (
                "gating",
                gating(),
                true,
                "selects 3 nodes: gates 2, does not hold 1",
            ),
        ] {
            let (live, is_no) = previewed(&rule, None, &nodes);
            assert_eq!(is_no, says_no, "{name}: {live}");
            assert!(live.contains(says), "{name}: {live}");
            let (dry, is_no) = previewed(&rule.clone().dry_run(), None, &nodes);
            assert_eq!(is_no, says_no, "{name}: {dry}");
            let note = "  (a dry run: what follows is what it would do in force)";
            assert_eq!(dry.replace(note, ""), live, "{name}");
            assert!(!dry.contains("would be held"), "{dry}");
        }
    }

    #[test]
    fn a_rule_in_force_that_becomes_a_dry_run_changes_no_node() {
        let held = node("a").taint(crate::testing::GATE, "NoSchedule");
        let there = rule("r").waits_for("Net");
        let (text, is_no) = previewed(&there.clone().dry_run(), Some(&there), &[held, node("b")]);
        assert!(
            text.contains("selects 2 nodes: leaves 2 as they are"),
            "{text}"
        );
        assert!(!is_no, "{text}");
    }

    #[test]
    fn fields_are_named_that_differ() {
        let from = json!({"a": 1, "b": {"c": [1], "d": 2}});
        let to = json!({"a": 1, "b": {"c": [2], "e": 3}});
        let fields: Vec<_> = differences(&from, &to)
            .into_iter()
            .map(|it| (it.field, it.from, it.to))
            .collect();
        assert_eq!(
            fields,
            [
                ("spec.b.c".to_owned(), Some(json!([1])), Some(json!([2]))),
                ("spec.b.d".to_owned(), Some(json!(2)), None),
                ("spec.b.e".to_owned(), None, Some(json!(3))),
            ]
        );
    }
}
