//! `suggest`: dry-run rules for the components of this cluster, recognised by their `DaemonSet`s.

mod known;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::page::{Page, Render};
use crate::snapshot::{Agent, Snapshot};
use known::{ComponentPurpose, purposes, type_of};
use nodegate_core::api::TaintEffect;
use nodegate_core::api::names::TAINT_PREFIX;
use nodegate_core::condition::{names_nothing, tolerates};
use nodegate_core::finding::remedy;
use nodegate_core::object::{ResourceKind, Taint};
use nodegate_core::rule::RuleSet;
use nodegate_core::text::{counted, printable};

/// Suggested rules; as JSON and YAML a list of them that can be applied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Suggestions {
    #[serde(rename = "items")]
    pub rules: Vec<Suggestion>,
    /// `DaemonSet`s that a rule already waits for, with the rule's name.
    #[serde(skip)]
    pub already: Vec<(String, String)>,
    #[serde(skip)]
    pub checked: usize,
    #[serde(skip)]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Suggestion {
    /// The rule, under a name that no existing rule has.
    pub rule: Value,
    /// What the rule is for, and what is left to do, line by line.
    #[serde(skip)]
    pub comments: Vec<String>,
}

/// Rules for known components that no rule waits for yet.
pub(super) fn suggest(snapshot: &Snapshot) -> Suggestions {
    let agents = &snapshot.manifests.daemon_sets;
    let mut answer = Suggestions {
        rules: Vec::new(),
        already: Vec::new(),
        checked: agents.len(),
        notes: snapshot.notes(),
    };
    for purpose in purposes() {
        let mut recognised = Vec::new();
        for agent in agents {
            let key = &agent.daemon_set.key;
            let known = purpose.recognise(agent, &snapshot.manifests);
            let Some((what, mut conditions)) = known else {
                continue;
            };
            let waits = snapshot.view.rules().rules().iter().find(|rule| {
                rule.spec.as_ref().is_ok_and(|spec| {
                    let kinds: Vec<&str> = spec.conditions.iter().map(|it| &*it.kind).collect();
                    let is_there = |it: &String| kinds.iter().any(|kind| type_of(it) == *kind);
                    let has_all = conditions.iter().all(is_there);
                    has_all || snapshot.waits_for(spec, agent)
                })
            });
            if let Some(rule) = waits {
                let known = (key.to_string(), rule.name.to_string());
                answer.already.push(known);
                continue;
            }
            conditions.retain(|it| names_nothing(type_of(it)).is_none());
            if !conditions.is_empty() {
                recognised.push((agent, conditions, what));
            }
        }
        recognised.sort_by(|a, b| a.1.cmp(&b.1));
        if !recognised.is_empty() {
            let name = free_name(purpose.name, snapshot.view.rules());
            let adds_tolerations = snapshot.adds_tolerations;
            let suggestion = suggestion(&name, &purpose, &recognised, adds_tolerations);
            answer.rules.push(suggestion);
        }
    }
    answer.already.sort();
    answer
}

/// A name that no rule has: applying a suggestion must not overwrite an existing rule.
fn free_name(name: &str, rules: &RuleSet) -> String {
    let is_taken = |name: &str| {
        let key = format!("{TAINT_PREFIX}{name}");
        rules.rules().iter().any(|rule| {
            let reach = rule.reach.as_ref();
            *rule.name == *name || reach.is_some_and(|reach| reach.key == key)
        })
    };
    let others = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(others);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// The rule that waits for these `DaemonSet`s, each with its conditions and a description.
fn suggestion(
    name: &str,
    purpose: &ComponentPurpose,
    recognised: &[(&Agent, Vec<String>, String)],
    adds_tolerations: bool,
) -> Suggestion {
    let key = format!("{TAINT_PREFIX}{name}");
    let taint = Taint::new(&*key, "", TaintEffect::NoSchedule);
    let mut comments: Vec<String> = purpose.why.iter().map(ToString::to_string).collect();
    for (Agent { daemon_set, .. }, _, what) in recognised {
        comments.push(format!("{}: {what}", daemon_set.key));
        if !tolerates(daemon_set, &taint) {
            let remedy = remedy(&daemon_set.key, name, &key, adds_tolerations);
            comments.push(
                "  It does not tolerate the taint yet, and cannot start on a node that has it:"
                    .into(),
            );
            comments.push(format!("  {remedy}"));
        }
    }
    let conditions: BTreeSet<&String> = recognised.iter().flat_map(|it| &it.1).collect();
    let required = |condition: &String| match condition.split_once('=') {
        Some((kind, value)) => {
            json!({"type": kind, "requiredStatus": "True", "nodegate": {"values": [value]}})
        }
        None => json!({"type": condition, "requiredStatus": "True"}),
    };
    let conditions: Value = conditions.into_iter().map(required).collect();
    let (label, value) = purpose.label;
    let rule = json!({
        "apiVersion": ResourceKind::Rules.api_version(),
        "kind": ResourceKind::Rules.kind(),
        "metadata": {"name": name},
        "spec": {
            "dryRun": true,
            "enforcementMode": "bootstrap-only",
            "conditions": conditions,
            "taint": {"key": key, "value": "pending", "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {label: value}},
            "nodegate": {"existingNodes": "Leave"},
        },
    });
    Suggestion { rule, comments }
}

const HEAD: &str = "\
# Rules for what runs in this cluster, as dry runs: they change nothing, and say in their status what they would do.
#
#   kubectl nodegate suggest > rules.yaml && kubectl apply -f rules.yaml
#   kubectl nodegate status
#
# Where a rule says what you expect, set its dryRun to false in the file, and apply it again. A node that was released then stays so while
# its components are updated (bootstrap-only), and nodes that exist already are left alone until they join again (existingNodes).
";

/// What is applied where nothing is suggested: `kubectl apply` fails without an object, an empty list included.
const NOTHING: &str = "\
# kubectl apply fails without an object. This one asks the API server who you are, and is not stored.
apiVersion: authentication.k8s.io/v1
kind: SelfSubjectReview
metadata:
  name: nothing-to-suggest
";

impl Render for Suggestions {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "List";

    fn text(&self, _: &Page) -> String {
        let mut out = if self.rules.is_empty() {
            let checked = counted(self.checked, "DaemonSet");
            let verb = if self.checked == 1 { "was" } else { "were" };
            format!("# No known component lacks a rule; {checked} {verb} checked.\n")
        } else {
            HEAD.to_owned()
        };
        let already = self.already.iter().map(|(daemon_set, rule)| {
            format!("{daemon_set} is waited for by rule {rule} already.")
        });
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        comment(&mut out, already.chain(notes));
        for Suggestion { rule, comments } in &self.rules {
            out.push_str("---\n");
            comment(&mut out, comments);
            out.push_str(&serde_saphyr::to_string(rule).unwrap_or_default());
        }
        if self.rules.is_empty() {
            out.push_str(NOTHING);
        }
        out
    }
}

fn comment<T: Into<String>>(out: &mut String, lines: impl IntoIterator<Item = T>) {
    for line in lines {
        out.push_str("# ");
        out.push_str(&printable(line));
        out.push('\n');
    }
}
