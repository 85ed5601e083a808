//! `suggest`: dry-run rules for the components of this cluster, recognised by their `DaemonSet`s.

mod known;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::json;

use super::page::{Page, Render};
use super::printable::printable;
use crate::api::names::{GROUP, KIND, TAINT_PREFIX, VERSION};
use crate::cli::snapshot::{Agent, Inventory};
use crate::condition::{names_nothing, tolerates};
use crate::object::Taint;
use crate::rule::Rule;
use crate::wording::counted;
pub(super) use known::ComponentPurpose;

/// The prefix of conditions that name a `DaemonSet`.
const CONDITION: &str = "daemonset.nodegate.dev/";

/// Suggested rules; as JSON and YAML a list of them that can be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Suggestions {
    #[serde(rename = "items", serialize_with = "manifests")]
    pub rules: Vec<Suggestion>,
    /// `DaemonSet`s that a rule already waits for, with the rule's name.
    #[serde(skip)]
    pub already: Vec<(String, String)>,
    /// How many `DaemonSet`s were checked.
    #[serde(skip)]
    pub checked: usize,
    /// Remarks on what was read.
    #[serde(skip)]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// The rule's name, which no existing rule has.
    pub name: String,
    /// The purpose of the components.
    pub purpose: ComponentPurpose,
    /// The key of the rule's taint.
    pub taint: String,
    /// The `DaemonSet`s that the rule waits for.
    pub daemon_sets: Vec<Recognised>,
}

/// A recognised `DaemonSet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recognised {
    /// `namespace/name`.
    pub daemon_set: String,
    /// The condition that waits for it.
    pub condition: String,
    /// A description.
    pub what: String,
    /// Whether it tolerates the rule's taint.
    pub tolerates: bool,
}

/// Rules for known components that no rule waits for yet.
pub(super) fn suggest(inventory: &Inventory) -> Suggestions {
    let rules: Vec<Rule> = (inventory.rules.iter())
        .map(|rule| Rule::compile(&rule.metadata, rule.spec.clone(), &inventory.classes))
        .collect();
    let mut answer = Suggestions {
        rules: Vec::new(),
        already: Vec::new(),
        checked: inventory.daemon_sets.len(),
        notes: inventory.notes.clone(),
    };
    for purpose in ComponentPurpose::ALL {
        let name = free_name(purpose.name(), &rules);
        let taint = format!("{TAINT_PREFIX}{name}");
        let mut daemon_sets = Vec::new();
        for agent in &inventory.daemon_sets {
            let Some(what) = known::recognise(agent, purpose) else {
                continue;
            };
            let key = &agent.daemon_set.key;
            if let Some(rule) = rules.iter().find(|rule| waits_for(rule, agent, inventory)) {
                let known = (key.to_string(), rule.name.to_string());
                answer.already.push(known);
                continue;
            }
            let condition = format!("{CONDITION}{}.{}", key.namespace, key.name);
            if names_nothing(&condition).is_some() {
                continue;
            }
            let of_rule = Taint {
                key: taint.clone(),
                value: String::new(),
                effect: "NoSchedule".into(),
                time_added: None,
            };
            daemon_sets.push(Recognised {
                daemon_set: key.to_string(),
                condition,
                what,
                tolerates: tolerates(&agent.daemon_set, &of_rule),
            });
        }
        daemon_sets.sort_by(|a, b| a.daemon_set.cmp(&b.daemon_set));
        if !daemon_sets.is_empty() {
            answer.rules.push(Suggestion {
                name,
                purpose,
                taint,
                daemon_sets,
            });
        }
    }
    answer.already.sort();
    answer
}

/// A name that no rule has: applying a suggestion must not overwrite an existing rule.
fn free_name(name: &str, rules: &[Rule]) -> String {
    let is_taken = |name: &str| {
        let key = format!("{TAINT_PREFIX}{name}");
        rules.iter().any(|rule| {
            let reach = rule.reach.as_ref();
            *rule.name == *name || reach.is_some_and(|reach| reach.key == key)
        })
    };
    let others = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(others);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// Whether a rule waits for a `DaemonSet`, by its name or by a class.
fn waits_for(rule: &Rule, agent: &Agent, inventory: &Inventory) -> bool {
    let Ok(spec) = &rule.spec else {
        return false;
    };
    let mut classes = inventory.classes.iter().enumerate();
    spec.daemon_sets().any(|key| *key == agent.daemon_set.key)
        || classes.any(|(index, class)| {
            spec.waits_for_class(index)
                && class.selector.matches(&agent.labels)
                && class.has(&agent.daemon_set)
        })
}

const HEAD: &str = "\
# Rules for what runs in this cluster, as dry runs: they change nothing, and say in their status what they would do.
#
#   kubectl nodegate suggest | kubectl apply -f -
#   kubectl nodegate status
#
# Where a rule says what you expect, set its dryRun to false.
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
        for (daemon_set, rule) in &self.already {
            let line = printable(format!(
                "# {daemon_set} is waited for by rule {rule} already."
            ));
            let _ = writeln!(out, "{line}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "# note: {}", printable(note));
        }
        for rule in &self.rules {
            of_rule(rule, &mut out);
        }
        if self.rules.is_empty() {
            out.push_str(NOTHING);
        }
        out
    }
}

/// The rules as objects.
fn manifests<S: Serializer>(rules: &[Suggestion], serializer: S) -> Result<S::Ok, S::Error> {
    let manifest = |rule: &Suggestion| {
        let conditions = rule.daemon_sets.iter();
        let conditions: Vec<_> = conditions
            .map(|it| json!({"type": it.condition, "requiredStatus": "True"}))
            .collect();
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": KIND,
            "metadata": {"name": rule.name},
            "spec": {
                "dryRun": true,
                "enforcementMode": "bootstrap-only",
                "conditions": conditions,
                "taint": {"key": rule.taint, "value": "pending", "effect": "NoSchedule"},
                "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
                "nodegate": {"existingNodes": "Leave"},
            },
        })
    };
    serializer.collect_seq(rules.iter().map(manifest))
}

fn of_rule(rule: &Suggestion, out: &mut String) {
    let Suggestion {
        name,
        taint,
        purpose,
        daemon_sets,
    } = rule;
    let conditions: String = daemon_sets.iter().map(of_daemon_set).collect();
    let mut tolerations = String::new();
    for it in daemon_sets.iter().filter(|it| !it.tolerates) {
        let _ = writeln!(
            tolerations,
            "  # {} does not tolerate it yet, and cannot start on a node that has it: add to its pod template\n  \
             #   tolerations: [{{key: {taint}, operator: Exists}}]",
            it.daemon_set
        );
    }
    let _ = write!(
        out,
        "---
# {why}
apiVersion: {GROUP}/{VERSION}
kind: {KIND}
metadata:
  name: {name}
spec:
  dryRun: true
  # A node that has been ready once is not gated while these are updated.
  enforcementMode: bootstrap-only
  conditions:
{conditions}{tolerations}  taint:
    key: {taint}
    value: pending
    effect: NoSchedule
  nodeSelector:
    matchLabels:
      kubernetes.io/os: linux
  nodegate:
    # Nodes that exist already are left alone until they join again.
    existingNodes: Leave
",
        why = purpose.why(),
    );
}

fn of_daemon_set(it: &Recognised) -> String {
    format!(
        "  # {}\n  - type: {}\n    requiredStatus: \"True\"\n",
        printable(&it.what),
        it.condition
    )
}
