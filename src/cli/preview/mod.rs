//! `preview`: what rules would do here before they are created or edited. They are shown to the engine's own view of the cluster,
//! and what it then makes of every node is held against what it made before.
//!
//! | file | what it does |
//! |---|---|
//! | `input` | reads rules from files |
//! | `diff` | what an edit changes |
//! | `text` | the answer for people |

mod diff;
mod input;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::fleet::{OnNode, fleet};
use super::snapshot::Snapshot;
use super::standing::State;
use crate::engine::{PASSED_OVER, passed_over_message};
use crate::object::RuleObject;
use crate::rule::{CompiledSpec, Rejection, Rule};
pub use diff::{Difference, differences};
pub use input::{File, Written, rules};

/// The fields of a rule that the API server lets nobody change.
const IMMUTABLE: [&str; 4] = [
    "conditions",
    "enforcementMode",
    "nodeSelector",
    "conditionPolicy",
];

/// What rules would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Each rule.
    pub rules: Vec<RulePreview>,
    /// Nodes that are open now and would be closed, at once or later, by name.
    pub closes: Vec<Change>,
    /// Nodes that are closed now and would be opened.
    pub opens: Vec<Change>,
    /// Whether a rule would be refused.
    #[serde(skip)]
    pub is_refused: bool,
    /// What this answer goes without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What one rule would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RulePreview {
    /// Its name.
    pub rule: String,
    /// Whether it is there already.
    pub is_edit: bool,
    /// What an edit changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Why it would be refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// How many nodes it selects.
    pub selected: usize,
    /// What it does to them: how many are in which state.
    pub states: BTreeMap<&'static str, usize>,
    /// What open nodes that it would close lack: condition and reason, and on how many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lacking: BTreeMap<String, usize>,
    /// When the nodes would be closed that are within its grace period, at the earliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ends: Option<Timestamp>,
    /// What its disruption guard says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// What somebody should know: `DaemonSet`s that could not start, conflicts, nobody selected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A node that would be closed or opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The node.
    pub node: Arc<str>,
    /// The rule that does it.
    pub rule: Arc<str>,
    /// When.
    pub when: When,
    /// Why.
    pub why: String,
}

/// When a node would be closed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// As soon as the rule is there.
    AtOnce,
    /// When its grace period ends, or its disruption guard lets it.
    Later,
}

/// What there is before the rules are.
#[derive(Debug)]
pub struct Before {
    nodes: Vec<OnNode>,
    rules: BTreeMap<String, Option<RuleObject>>,
}

impl Before {
    /// What there is in this cluster before these rules are.
    #[must_use]
    pub fn of(snapshot: &Snapshot, written: &[Written]) -> Self {
        let there = |name: &str| {
            let mut rules = snapshot.rules.iter();
            rules
                .find(|it| it.metadata.name.as_deref() == Some(name))
                .cloned()
        };
        let rules = written.iter().map(|it| (it.name.clone(), there(&it.name)));
        Self {
            nodes: fleet(snapshot),
            rules: rules.collect(),
        }
    }

    /// The rule of this name that is there.
    #[must_use]
    pub fn rule(&self, name: &str) -> Option<&RuleObject> {
        self.rules.get(name)?.as_ref()
    }
}

/// What these rules would do in a cluster in which they are, other than before.
#[must_use]
pub fn preview(before: &Before, after: &Snapshot, written: &[Written]) -> Preview {
    let nodes = fleet(after);
    let previews: Vec<RulePreview> = written
        .iter()
        .map(|it| of_rule(it, before.rule(&it.name), after, &nodes))
        .collect();
    let closed_before = closed(&before.nodes);
    let closed_after = closed(&nodes);
    let is_closed = |it: &&OnNode| it.state.holds() && !closed_before.contains(&it.node);
    let is_spared = |it: &&OnNode| {
        let before = before.nodes.iter();
        let mut same = before.filter(|was| was.node == it.node && was.rule == it.rule);
        it.state == State::Spared
            && !closed_before.contains(&it.node)
            && same.all(|was| was.state != State::Spared)
    };
    let change = |it: &OnNode, when| Change {
        node: it.node.clone(),
        rule: it.rule.clone(),
        when,
        why: it.why.clone(),
    };
    let mut closes: Vec<Change> = nodes
        .iter()
        .filter(is_closed)
        .map(|it| change(it, When::AtOnce))
        .collect();
    let later = nodes.iter().filter(is_spared);
    closes.extend(later.map(|it| change(it, When::Later)));
    let mut seen = BTreeSet::new();
    closes.retain(|it| seen.insert(it.node.clone()));
    let opened = before.nodes.iter().filter(|it| it.state.holds());
    let opened = opened.filter(|it| !closed_after.contains(&it.node));
    let mut seen = BTreeSet::new();
    let opens: Vec<Change> = opened
        .filter(|it| seen.insert(it.node.clone()))
        .map(|it| Change {
            why: "its conditions are met, or the rule leaves it alone".into(),
            ..change(it, When::AtOnce)
        })
        .collect();
    Preview {
        is_refused: previews.iter().any(|it| !it.refusals.is_empty()),
        notes: notes(after, &previews),
        rules: previews,
        closes,
        opens,
    }
}

/// The nodes that any rule keeps closed.
fn closed(nodes: &[OnNode]) -> BTreeSet<Arc<str>> {
    let closed = nodes
        .iter()
        .filter(|it| it.state.holds() || it.state == State::Opening);
    closed.map(|it| it.node.clone()).collect()
}

fn of_rule(
    written: &Written,
    there: Option<&RuleObject>,
    after: &Snapshot,
    nodes: &[OnNode],
) -> RulePreview {
    let new = written.object.get("spec").unwrap_or(&Value::Null);
    let view = &after.view;
    let cached = view.cached_rules().get(&*written.name);
    let rule = cached.map(|cached| &*cached.rule);
    let spec = rule.and_then(|rule| rule.spec.as_ref().ok());
    let differences = there
        .and_then(|there| serde_json::to_value(there.spec.as_ref().ok()?).ok())
        .map_or_else(Vec::new, |old| diff::differences(&old, &canonical(new)));
    let own: Vec<&OnNode> = nodes
        .iter()
        .filter(|it| *it.rule == *written.name)
        .collect();
    let mut states: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut lacking: BTreeMap<String, usize> = BTreeMap::new();
    for it in &own {
        *states.entry(it.state.word()).or_default() += 1;
        if matches!(it.state, State::Closing | State::Spared | State::WouldHold) {
            for lack in &it.lacks {
                let name = format!("{}: {}", lack.kind, lack.reason);
                *lacking.entry(name).or_default() += 1;
            }
        }
    }
    let grace = spec.and_then(|spec| spec.grace_period);
    let is_spared = own.iter().any(|it| it.state == State::Spared);
    RulePreview {
        rule: written.name.clone(),
        is_edit: there.is_some(),
        refusals: refusals(new, rule, there.is_some(), &differences),
        differences,
        selected: own.len(),
        states,
        lacking,
        grace_ends: grace
            .filter(|_| is_spared)
            .and_then(|grace| after.at.checked_add(grace.as_std()).ok()),
        guard: rule
            .and_then(|rule| view.guard(rule))
            .map(|it| it.to_string()),
        warnings: match (rule, spec) {
            (Some(rule), Some(spec)) => warnings(rule, spec, after, own.len()),
            _ => Vec::new(),
        },
    }
}

/// What the answer goes without.
fn notes(after: &Snapshot, rules: &[RulePreview]) -> Vec<String> {
    let mut notes = after.notes();
    if after.limits.is_none() && rules.iter().any(|rule| rule.guard.is_some()) {
        notes.push(
            "the controller's arguments could not be read from its Deployment: its disruption limits are taken to be the \
             default ones"
                .into(),
        );
    }
    notes
}

/// A spec as the API server would keep it, with its defaults, as far as it can be read.
fn canonical(spec: &Value) -> Value {
    let read = serde_json::from_value::<crate::api::NodeReadinessRuleSpec>(spec.clone());
    let read = read.ok().and_then(|spec| serde_json::to_value(spec).ok());
    read.unwrap_or_else(|| spec.clone())
}

/// Why a rule would be refused.
fn refusals(
    new: &Value,
    rule: Option<&Rule>,
    is_edit: bool,
    differences: &[Difference],
) -> Vec<String> {
    let mut refusals = Vec::new();
    if let Ok(spec) = serde_json::from_value(new.clone()) {
        let all = Rejection::all(&spec).into_iter();
        let all = all.chain(Rejection::of_conditions(&spec));
        refusals.extend(all.map(|it| it.to_string()));
    } else {
        let rejection = rule.and_then(|rule| rule.spec.as_ref().err());
        refusals.extend(rejection.map(ToString::to_string));
    }
    for field in IMMUTABLE.into_iter().filter(|_| is_edit) {
        let path = format!("spec.{field}");
        let is_changed = |it: &Difference| {
            it.field == path
                || it
                    .field
                    .strip_prefix(&path)
                    .is_some_and(|it| it.starts_with('.'))
        };
        if differences.iter().any(is_changed) {
            refusals.push(format!(
                "{path} is immutable: delete the rule and create it anew, or create another one"
            ));
        }
    }
    refusals.sort();
    refusals.dedup();
    refusals
}

/// What somebody should know of a rule that would be taken.
fn warnings(rule: &Rule, spec: &CompiledSpec, after: &Snapshot, selected: usize) -> Vec<String> {
    let view = &after.view;
    let mut warnings = Vec::new();
    let passed_over = view.passed_over(rule);
    for (why, ..) in PASSED_OVER {
        warnings.extend(passed_over_message(spec, &passed_over, why));
    }
    for other in view.rules().rules() {
        if other.uid != rule.uid
            && let Some(conflict) = spec.conflict_with(other)
        {
            warnings.push(conflict.to_string());
        }
    }
    if selected == 0 {
        warnings.push(format!("no node is selected by {}", spec.selector));
    }
    if rule.is_suspended() {
        warnings.push("it is suspended: nothing is changed for it".into());
    }
    warnings
}
