//! Evaluations, as `docs/evaluations.md` describes them. At the end each node on which a rule governs a taint has one, it agrees
//! with the node's taints and its rules, and no other node has one. None is written without a change, and without the feature gate
//! there is no request about any.

use std::collections::BTreeSet;

use serde_json::Value;

use super::end::is_interfered_with;
use super::ledger::Glances;
use super::ours;
use super::rule::{Rule, TaintId, governing};
use super::truth::{Answer, Facts};
use super::writes::target;
use crate::sim::actors::ask::{items, text, uid};
use crate::sim::law::{Law, Moment};
use crate::{Key, Kind};

/// Evaluations agree with the nodes.
pub struct Evaluations;

impl Law for Evaluations {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for (instance, write) in ours(moment) {
            let key = target(&write.request);
            let Some(key) = key.filter(|key| key.kind == Kind::NodeReadinessEvaluation) else {
                continue;
            };
            if !moment.settings.node_readiness_evaluation {
                return Err(format!("instance {instance} writes {key}, which is off"));
            }
            let is_idle = write.code < 300 && write.changes.is_empty();
            if is_idle && moment.faults.is_empty() {
                return Err(format!("instance {instance} writes {key} as it was"));
            }
        }
        Ok(())
    }

    fn finally(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        if !moment.settings.node_readiness_evaluation {
            return Ok(());
        }
        let (cluster, now) = (moment.cluster, moment.cluster.now());
        for (key, held) in cluster.objects(Kind::NodeReadinessEvaluation) {
            let node = cluster.get(&Key::cluster(Kind::Node, &key.name));
            let owner = text(&held["metadata"]["ownerReferences"][0]["uid"]);
            if node.is_none_or(|node| uid(node) != owner) {
                return Err(format!("{key} is of no node that is there"));
            }
        }
        for (key, _) in cluster.objects(Kind::Node) {
            if is_interfered_with(moment, key, now) {
                continue;
            }
            let held = cluster.get(&Key::cluster(Kind::NodeReadinessEvaluation, &key.name));
            let held = held.map(|held| &**held);
            let glances = Glances::all(cluster.revision());
            let judged = moment.ask(&key.name, glances, now, |facts| judge(facts, held));
            let judged = judged.unwrap_or(Ok(()));
            judged.map_err(|what| format!("the evaluation of {key}: {what}"))?;
        }
        Ok(())
    }
}

fn judge(facts: &Facts<'_>, held: Option<&Value>) -> Result<(), String> {
    if facts.node["metadata"].get("deletionTimestamp").is_some() {
        return Ok(());
    }
    let governs = |rule: &&std::sync::Arc<Rule>| {
        rule.is_live()
            && rule.selects(facts.node)
            && governing(facts.rules, &rule.taint(), facts.node)
                .is_some_and(|it| it.uid == rule.uid)
    };
    let rules: Vec<&Rule> = facts.rules.iter().filter(governs).map(|it| &**it).collect();
    let status = match (held, rules.is_empty()) {
        (None, true) => return Ok(()),
        (Some(_), true) => return Err("no rule governs a taint on the node".into()),
        (None, false) => return Err("there is none".into()),
        (Some(held), false) => &held["status"],
    };
    let said = items(&status["rules"]);
    let uids: BTreeSet<&str> = said.iter().map(|it| text(&it["ruleRef"]["uid"])).collect();
    let expected: BTreeSet<&str> = rules.iter().map(|rule| &*rule.uid).collect();
    if uids != expected {
        return Err(format!("it is about {uids:?} instead of {expected:?}"));
    }
    for entry in said {
        let is_of = |rule: &&&Rule| entry["ruleRef"]["uid"] == *rule.uid;
        if let Some(rule) = rules.iter().find(is_of) {
            judge_rule(facts, rule, entry)?;
        }
    }
    let is_any = |state: &str| said.iter().any(|entry| entry["state"] == *state);
    let states = ["NotReady", "Pending", "Ready"];
    let worst = states.into_iter().find(|state| is_any(state));
    if worst == status["state"].as_str() {
        Ok(())
    } else {
        Err(format!("{} of rules that are {worst:?}", status["state"]))
    }
}

fn judge_rule(facts: &Facts<'_>, rule: &Rule, entry: &Value) -> Result<(), String> {
    let is_on = TaintId::all(facts.node).any(|(taint, _)| rule.is_about(&taint));
    let is_dated = !entry["taintAddedAt"].is_null() && entry["taintRemovedAt"].is_null();
    let state = text(&entry["state"]);
    let is_certain = facts.waits(rule) == Answer::No;
    let expected = match (is_on, facts.met(rule)) {
        (true, Answer::No) if is_certain => &["NotReady"][..],
        (false, Answer::Yes) if is_certain => &["Ready"],
        (true, _) => &["NotReady", "Pending"],
        (false, _) => &["Ready", "Pending"],
    };
    if is_dated == is_on && expected.contains(&state) {
        return Ok(());
    }
    Err(format!(
        "{entry}, and the taint is {}there; {}",
        if is_on { "" } else { "not " },
        facts.why(rule)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::Who;
    use crate::sim::laws::testing::{Story, close, node, rule};
    use crate::{Part, Patch, Request};

    const NODEGATE: Who = Who::Nodegate(0);

    fn story() -> Story {
        let mut story = Story::default();
        story.settings.node_readiness_evaluation = true;
        story.create(rule(json!({})));
        story.create(node("n"));
        story.report("n", "Net", "False");
        close(&mut story, "n");
        story.at(10);
        story
    }

    fn key() -> Key {
        Key::cluster(Kind::NodeReadinessEvaluation, "n")
    }

    /// Nodegate says that the rule is in this state, with a taint that is still there.
    fn says(story: &mut Story, state: &str) {
        let entry = json!({
            "ruleRef": {"name": "r", "uid": story.uid_of_rule("r")},
            "state": state,
            "taintAddedAt": "2026-01-01T00:00:00Z",
        });
        let status = json!({"status": {"state": state, "rules": [entry]}});
        let (part, patch) = (Part::Status, Patch::Merge(status));
        let key = key();
        story.request(NODEGATE, &Request::Patch { key, part, patch });
    }

    fn creates(story: &mut Story, owner: &str) {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": owner});
        let object = json!({"metadata": {"ownerReferences": [owner]}, "spec": {"nodeName": "n"}});
        let key = key();
        story.request(NODEGATE, &Request::Create { key, object });
    }

    #[test]
    fn each_node_has_one_that_agrees() {
        let mut story = story();
        story.judged_end(&mut Evaluations, false, "there is none");
        let owner = story.uid_of_node("n");
        creates(&mut story, &owner);
        for (state, is_right) in [("Ready", false), ("Pending", false), ("NotReady", true)] {
            says(&mut story, state);
            story.judged_end(&mut Evaluations, is_right, state);
        }
        story.delete_rule("r");
        story.judged_end(&mut Evaluations, false, "the rule is being deleted");
    }

    #[test]
    fn one_of_no_node_is_collected() {
        let mut story = story();
        creates(&mut story, "another");
        says(&mut story, "NotReady");
        story.judged_end(&mut Evaluations, false, "its owner is another node");
    }

    #[test]
    fn none_is_written_without_a_change_or_without_the_gate() {
        let mut story = story();
        let owner = story.uid_of_node("n");
        creates(&mut story, &owner);
        says(&mut story, "NotReady");
        story.judged(&mut Evaluations, true, "first");
        says(&mut story, "NotReady");
        story.judged(&mut Evaluations, false, "again");
        story.settings.node_readiness_evaluation = false;
        story.judged(&mut Evaluations, false, "the gate is off");
    }
}
