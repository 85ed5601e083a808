//! Nodegate deletes no claim whose node was ever released, is not held, or cannot be late yet; and none while too many nodes of
//! its pool are late. It hurries the termination of no claim that is not being deleted. It calls no other node late either, by
//! the condition on which others act, and takes that back with the taint.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use nodegate_core::api::RepairAction;
use nodegate_core::api::names::{NOT_READY_IN_TIME, READY_DEADLINE_PREFIX};
use serde_json::Value;

use super::disruption::zone;
use super::ledger::is_ours;
use super::rule::{Rule, forbids_repair};
use super::{is_deleted, longest_age, seconds, steps};
use crate::sim::actors::ask::{annotations, is_going, items, text};
use crate::sim::cluster::{Change, View};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, wall};
use crate::{Key, Kind};

const TERMINATION: &str = "karpenter.sh/nodeclaim-termination-timestamp";

/// The shortest deadline that a rule may set.
const SHORTEST: Duration = Duration::from_secs(60);

pub(super) struct Claims;

impl Law for Claims {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for change in moment.new_changes {
            if !is_ours(change.who) {
                continue;
            }
            if change.key.kind == Kind::Node
                && let (Some(before), Some(after)) = (&change.before, &change.after)
                && !is_called_late(before)
                && is_called_late(after)
            {
                judge_call(moment, change, before)?;
            }
            if change.key.kind != Kind::NodeClaim {
                continue;
            }
            let is_hurried =
                |claim: &Value| claim["metadata"]["annotations"].get(TERMINATION).is_some();
            if let (Some(before), Some(after)) = (&change.before, &change.after)
                && !is_hurried(before)
                && is_hurried(after)
                && !is_going(after)
            {
                let (name, at) = (&change.key.name, seconds(change.at));
                return Err(format!(
                    "the claim {name} has a termination time at {at}, and is not being deleted"
                ));
            }
            if let Some(claim) = change.before.as_ref().filter(|_| is_deleted(change)) {
                judge(moment, change, claim).map_err(|why| {
                    let (name, at) = (&change.key.name, seconds(change.at));
                    format!("{:?} deleted the claim {name} at {at}: {why}", change.who)
                })?;
            }
        }
        Ok(())
    }

    fn finally(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for (key, node) in moment.cluster.objects(Kind::Node) {
            let is_held = moment
                .all_rules()
                .any(|rule| rule.ours.repair.is_some() && rule.taint().is_on(node));
            if is_called_late(node) && !is_held {
                return Err(format!("{key} is still called late, and no rule holds it"));
            }
        }
        Ok(())
    }
}

fn is_called_late(node: &Value) -> bool {
    let mut conditions = items(&node["status"]["conditions"]).iter();
    conditions.any(|it| it["type"] == NOT_READY_IN_TIME && it["status"] == "True")
}

/// Whether a node may be called late: some rule may have repaired it now, or as far back as the evidence may be from.
fn judge_call(moment: &Moment<'_>, change: &Change, now: &Value) -> Result<(), String> {
    let then = moment
        .cluster
        .at(change.at.saturating_sub(longest_age(moment)));
    let then = then.get(&change.key).map(|node| &**node);
    let mut why = "no rule repairs it".to_owned();
    for node in [Some(now), then].into_iter().flatten() {
        if node["metadata"]["labels"]["karpenter.sh/initialized"] == "true" || forbids_repair(node)
        {
            "it must be left alone".clone_into(&mut why);
            continue;
        }
        let repairs = |rule: &&Arc<Rule>| rule.ours.repair.is_some() && rule.selects(node);
        for rule in moment.all_rules().filter(repairs) {
            match spares(moment, change, rule, node) {
                None => return Ok(()),
                Some(spared) => why = spared,
            }
        }
    }
    let (key, at) = (&change.key, seconds(change.at));
    Err(format!("{:?} called {key} late at {at}: {why}", change.who))
}

fn judge(moment: &Moment<'_>, change: &Change, claim: &Value) -> Result<(), String> {
    let now = moment.cluster.as_of(change.revision - 1);
    let name = text(&claim["status"]["nodeName"]);
    let key = Key::cluster(Kind::Node, name);
    let Some(node) = now.get(&key) else {
        return Err(format!("there is no node {name:?}"));
    };
    if node["metadata"]["labels"]["karpenter.sh/initialized"] == "true" {
        return Err(format!("node {name} was initialized"));
    }
    if [&**node, claim].into_iter().any(forbids_repair) || pool_forbade(moment, change, node) {
        return Err(format!("node {name} is not to be repaired"));
    }
    let rules = moment.rules(change.revision - 1);
    let deletes = |rule: &&Arc<Rule>| {
        let action = rule.ours.repair.as_ref().map(|repair| repair.action);
        action == Some(RepairAction::DeleteNodeClaim) && rule.is_live() && rule.selects(node)
    };
    let mut why = format!("no rule repairs node {name}");
    for rule in rules.iter().filter(deletes) {
        match spares(moment, change, rule, node) {
            None => return Ok(()),
            Some(spared) => why = format!("under rule {}: {spared}", rule.name),
        }
    }
    Err(why)
}

/// Whether the node's pool forbade repair during the whole maximum age of evidence.
fn pool_forbade(moment: &Moment<'_>, change: &Change, node: &Value) -> bool {
    let name = node["metadata"]["labels"]["karpenter.sh/nodepool"].as_str();
    let key = Key::cluster(Kind::NodePool, name.unwrap_or_default());
    let then = change.at.saturating_sub(longest_age(moment));
    let before = moment.cluster.at(then);
    let now = moment.cluster.as_of(change.revision - 1);
    let forbids = |pool: Option<&Arc<Value>>| pool.is_some_and(|pool| forbids_repair(pool));
    forbids(before.get(&key)) && forbids(now.get(&key))
}

/// Why a rule may not repair a node; `None` if it may.
fn spares(moment: &Moment<'_>, change: &Change, rule: &Rule, node: &Value) -> Option<String> {
    let name = text(&node["metadata"]["name"]);
    if !rule.taint().is_on(node) {
        return Some(format!("node {name} is not held"));
    }
    let states = moment
        .cluster
        .history(&Key::cluster(Kind::Node, name))
        .iter();
    let of_it = states
        .filter(|state| state.revision < change.revision)
        .filter_map(|state| state.object.as_ref());
    let mut of_it = of_it.filter(|it| it["metadata"]["uid"] == node["metadata"]["uid"]);
    if of_it.any(|node| rule.recorded_on(node).is_some()) {
        return Some(format!("node {name} has been released"));
    }
    let earliest = rule.waits_since(node);
    let earliest = earliest.and_then(|since| since.checked_add(SHORTEST).ok());
    // By the clock that is farthest ahead.
    if earliest.is_some_and(|earliest| wall(change.at + steps(moment)) < earliest) {
        return Some(format!(
            "node {name} is younger than any time that it may be given"
        ));
    }
    let repair = rule.ours.repair.as_ref()?;
    if repair.action == RepairAction::DeleteNodeClaim && is_zone_late(moment, change, node) {
        return Some("every node that joins in its zone is late".to_owned());
    }
    let (late, all) = late(moment, change, rule, node);
    let limit = repair.max_unhealthy.of(all);
    (late > limit).then(|| format!("{late} of {all} nodes of the pool are late, {limit} may be"))
}

/// How many nodes of the same pool (without one: of the rule) were late during the whole maximum age of evidence, and how many
/// nodes it has.
fn late(moment: &Moment<'_>, change: &Change, rule: &Rule, node: &Value) -> (usize, usize) {
    let pool = |node: &Value| node["metadata"]["labels"]["karpenter.sh/nodepool"].clone();
    let then = change.at.saturating_sub(longest_age(moment));
    let before = moment.cluster.at(then);
    let slowest = |time: Time| wall(time.saturating_sub(steps(moment)));
    let mut count = (0, 0);
    for (key, object) in moment
        .cluster
        .as_of(change.revision - 1)
        .objects(Kind::Node)
    {
        if pool(object) != pool(node) || pool(node).is_null() && !rule.selects(object) {
            continue;
        }
        count.1 += 1;
        let was_late = before
            .get(key)
            .is_some_and(|object| is_late(object, slowest(then)));
        count.0 += usize::from(was_late && is_late(object, slowest(change.at)));
    }
    count
}

/// Whether more than two nodes of the same zone joined, and all of them were late, during the whole maximum age of evidence.
fn is_zone_late(moment: &Moment<'_>, change: &Change, node: &Value) -> bool {
    let then = change.at.saturating_sub(longest_age(moment));
    let slowest = |time: Time| wall(time.saturating_sub(steps(moment)));
    let is_late_at = |view: View<'_>, time| {
        let here = view.objects(Kind::Node);
        let here = here.filter(|(_, object)| zone(object) == zone(node));
        let mut joining = here.filter(|(_, object)| has_deadline(object)).peekable();
        let mut count = 0;
        let all_are = joining.all(|(_, object)| {
            count += 1;
            is_late(object, slowest(time))
        });
        all_are && count > 2
    };
    is_late_at(moment.cluster.at(then), then)
        && is_late_at(moment.cluster.as_of(change.revision - 1), change.at)
}

fn has_deadline(node: &Value) -> bool {
    annotations(node, READY_DEADLINE_PREFIX).next().is_some()
}

/// Whether one of the node's deadlines has passed, by its annotations.
fn is_late(node: &Value, now: Timestamp) -> bool {
    let mut deadlines = annotations(node, READY_DEADLINE_PREFIX);
    deadlines.any(|(_, time)| time.parse::<Timestamp>().is_ok_and(|time| time <= now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::cluster::Who;
    use crate::sim::laws::testing::{gated, node, repairing};

    fn judge(
        labels: &Value,
        annotations: &Value,
        at: u64,
        others_late: usize,
    ) -> Result<(), String> {
        let repair = json!({ "readinessTTL": "2m", "action": "DeleteNodeClaim" });
        let mut story = repairing(&repair);
        let uid = story.uid_of_rule("r");
        let key = format!("{READY_DEADLINE_PREFIX}{uid}");
        let deadline = |name: &str| {
            let mut node = gated(node(name));
            node["metadata"]["labels"]["karpenter.sh/nodepool"] = json!("p");
            node["metadata"]["annotations"] = json!({ &key: "2026-01-01T00:02:00Z" });
            node
        };
        let mut node = deadline("n");
        json_patch::merge(&mut node["metadata"]["labels"], labels);
        json_patch::merge(&mut node["metadata"]["annotations"], annotations);
        story.create(node);
        for number in 0..others_late {
            story.create(deadline(&format!("other-{number}")));
        }
        story.create(json!({
            "kind": "NodeClaim",
            "metadata": { "name": "c" },
            "status": { "nodeName": "n" },
        }));
        story.patch_claim_status("c", json!({ "status": { "nodeName": "n" } }));
        story.at(at);
        story.delete(Who::Nodegate(0), Key::cluster(Kind::NodeClaim, "c"));
        story.judge(&mut Claims)
    }

    #[test]
    fn only_a_late_node_is_called_so_and_only_while_it_is_held() {
        let conditions = json!([{ "type": NOT_READY_IN_TIME, "status": "True" }]);
        let called = json!({ "status": { "conditions": conditions } });
        let story = |at: u64, repair: &Value| {
            let mut story = repairing(repair);
            let mut node = gated(node("n"));
            let key = format!("{READY_DEADLINE_PREFIX}{}", story.uid_of_rule("r"));
            node["metadata"]["annotations"] = json!({ key: "2026-01-01T00:02:00Z" });
            story.create(node);
            story.at(at);
            story.patch_node_status_by_nodegate("n", called.clone());
            story
        };
        let repair = json!({ "readinessTTL": "2m" });
        story(300, &repair).judged_end(&mut Claims, true, "late");
        story(30, &repair).judged(&mut Claims, false, "too early");
        story(300, &Value::Null).judged(&mut Claims, false, "without repair");
        let mut released = story(300, &repair);
        released.patch_node("n", json!({ "spec": { "taints": null } }));
        released.judged_end(&mut Claims, false, "released");
    }

    #[test]
    fn a_claim_goes_when_its_node_was_never_released_and_is_late() {
        let nothing = json!({});
        assert_eq!(judge(&nothing, &nothing, 300, 0), Ok(()));
        assert!(judge(&nothing, &nothing, 30, 0).is_err(), "too early");
        assert!(judge(&nothing, &nothing, 300, 5).is_err(), "many are late");
        let initialized = json!({ "karpenter.sh/initialized": "true" });
        assert!(judge(&initialized, &nothing, 300, 0).is_err());
        let completed = json!({ "readiness.k8s.io/bootstrap-completed-r": "{}" });
        assert!(
            judge(&nothing, &completed, 300, 0).is_err(),
            "it was released"
        );
        let forbidden = json!({ "nodegate.dev/do-not-repair": "" });
        assert!(judge(&nothing, &forbidden, 300, 0).is_err(), "forbidden");
    }
}
