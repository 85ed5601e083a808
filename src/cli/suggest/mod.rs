//! `suggest`: rules for what runs in this cluster, recognised by its `DaemonSet`s, as dry runs.
//!
//! | file | what it does |
//! |---|---|
//! | `known` | what is recognised, and what for |
//! | `text` | rules as YAML, with comments that say why |

mod known;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use crate::api::names::TAINT_PREFIX;
use crate::cli::snapshot::{Agent, Inventory};
use crate::condition::{names_no_daemon_set, tolerates};
use crate::object::Taint;
use crate::rule::Rule;
pub use known::Purpose;

/// What a `DaemonSet`'s condition begins with.
const CONDITION: &str = "daemonset.nodegate.dev/";

/// Rules for what runs here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestions {
    /// The rules.
    pub rules: Vec<Suggestion>,
    /// `DaemonSet`s that a rule waits for already, with its name.
    pub already: Vec<(String, String)>,
    /// What this answer goes without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A rule that is suggested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// Its name, which no rule has yet.
    pub name: String,
    /// What for.
    pub purpose: Purpose,
    /// The key of its taint.
    pub taint: String,
    /// What it waits for.
    pub daemon_sets: Vec<Recognised>,
}

/// A `DaemonSet` that is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recognised {
    /// As `namespace/name`.
    pub daemon_set: String,
    /// The condition that waits for it.
    pub condition: String,
    /// What it is.
    pub what: String,
    /// Whether it tolerates the rule's taint.
    pub tolerates: bool,
}

/// Rules for what runs here and is not waited for yet.
#[must_use]
pub fn suggest(inventory: &Inventory) -> Suggestions {
    let rules: Vec<Rule> = (inventory.rules.iter())
        .map(|rule| Rule::compile(&rule.metadata, rule.spec.clone(), &inventory.classes))
        .collect();
    let mut answer = Suggestions {
        rules: Vec::new(),
        already: Vec::new(),
        notes: inventory.notes.clone(),
    };
    for purpose in Purpose::ALL {
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
            if names_no_daemon_set(&condition) {
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

/// A name that no rule has: whoever applies what is suggested must not overwrite a rule of theirs.
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
