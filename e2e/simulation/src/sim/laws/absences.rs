//! An absence that has not lasted changes nothing. What a node was expected to run a moment ago, and the rule that held it, count as
//! there until labels of the node have been otherwise for five minutes, or a `DaemonSet` has been gone for 15 s: no taint is removed,
//! no bootstrap put on record and no node gated that would not be with them.
//!
//! Whether it would be justified otherwise, other laws judge. What its author has changed counts at once: rules and `DaemonSet`s
//! are read as they are now.

use super::gatings::{has_just_come, wants};
use super::ledger::Glances;
use super::recall::surely;
use super::removals::may_release;
use super::rule::governing;
use super::truth::Facts;
use super::{NodeWrite, longest_age, seconds};
use crate::sim::law::{Law, Moment};

pub(super) struct Absences;

impl Law for Absences {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.removed() {
                judge(moment, &write, &format!("removed {taint} from"), |facts| {
                    let rule = match facts.recalled {
                        Some(it) => it.governing(facts.rules, &taint, facts.node),
                        None => governing(facts.rules, &taint, facts.node),
                    };
                    taint.is_on(facts.node)
                        && rule.is_none_or(|rule| may_release(moment, facts, rule))
                })?;
            }
            for (key, id, _) in write.completed() {
                judge(moment, &write, &format!("put {key} on"), |facts| {
                    let mut rules = facts.rules.iter().filter(|rule| rule.uid == id);
                    rules.any(|rule| may_release(moment, facts, rule))
                })?;
            }
            for taint in write.added() {
                if has_just_come(moment, &write) {
                    continue;
                }
                judge(moment, &write, &format!("put {taint} on"), |facts| {
                    !taint.is_on(facts.node) && wants(facts, &taint)
                })?;
            }
        }
        Ok(())
    }
}

/// Checks that a write was justified with what the instance must still count as there, at some time since which evidence counts.
fn judge(
    moment: &Moment<'_>,
    write: &NodeWrite<'_>,
    what: &str,
    is_justified: impl Fn(&Facts<'_>) -> bool,
) -> Result<(), String> {
    let (node, at, revision) = (write.node(), write.change.at, write.change.revision);
    let recalled = |facts: &Facts<'_>| surely(moment, facts, write.instance);
    let before = Glances::all(revision - 1);
    let is_absent = moment.ask(node, before, at, |facts| recalled(facts).is_some());
    if is_absent != Some(true) {
        return Ok(());
    }
    let uid = &write.after["metadata"]["uid"];
    let is_so = |facts: &Facts<'_>| {
        facts.node["metadata"]["uid"] == *uid
            && match recalled(facts) {
                Some(recalled) => facts.recalling(&recalled, &is_justified),
                None => is_justified(facts),
            }
    };
    let from = at.saturating_sub(longest_age(moment));
    if moment.was_ever(node, (from, at), revision, is_so) {
        return Ok(());
    }
    let truth = moment.ask(node, before, at, |facts| {
        let rules = facts.rules.iter().map(|rule| {
            let with = recalled(facts).map(|it| facts.recalling(&it, |it| it.why(rule)));
            let with = with.unwrap_or_default();
            format!("rule {}: {}; as it was: {with}", rule.name, facts.why(rule))
        });
        rules.collect::<Vec<_>>().join("; ")
    });
    Err(format!(
        "instance {} {what} node {node} at {} because of an absence that has not lasted. Just before: {}",
        write.instance,
        seconds(at),
        truth.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sim::cluster::Who;
    use crate::sim::laws::testing::{Story, gate, gated, node};
    use crate::sim::time::s;
    use crate::{Key, Kind};

    fn remove(story: &mut Story) {
        story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
    }

    fn unlabel(story: &mut Story) {
        story.patch_node("n", json!({ "metadata": { "labels": { "pool": null } } }));
    }

    #[test]
    fn a_node_whose_labels_go_stays_held_for_five_minutes_or_until_the_rule_is_edited() {
        for (removed_at, edited, fine) in [
            (103, false, false),
            (390, false, false),
            (401, false, true),
            (103, true, true),
        ] {
            let mut story = Story::under(json!({}));
            story.create(gated(node("n")));
            story.at(100);
            unlabel(&mut story);
            if edited {
                let selector = json!({ "nodeSelector": { "matchLabels": { "pool": "b" } } });
                story.patch_rule("r", json!({ "spec": selector }));
            }
            story.at(removed_at);
            remove(&mut story);
            story.judged(&mut Absences, fine, format_args!("{removed_at} {edited}"));
        }
    }

    #[test]
    fn a_process_that_starts_has_the_nodes_own_word() {
        for owned in [true, false] {
            let mut story = Story::under(json!({}));
            if owned {
                story.create(node("n"));
                gate(&mut story, "n");
            } else {
                story.create(gated(node("n")));
            }
            story.at(100);
            unlabel(&mut story);
            story.report.runs_since = Some(s(150));
            story.at(200);
            remove(&mut story);
            story.judged(&mut Absences, !owned, owned);
        }
    }

    #[test]
    fn a_daemon_set_counts_for_15_seconds_after_it_has_gone() {
        for (its_pod_stays, at, fine) in [(true, 103, false), (true, 116, true), (false, 103, true)]
        {
            let conditions = json!([{
                "type": "daemonset.nodegate.dev/kube-system.cni", "requiredStatus": "True",
            }]);
            let mut story = Story::under(json!({ "conditions": conditions }));
            story.create(node("n"));
            let of_cni = |kind: &str, name: &str, more: Value| {
                let labels = json!({ "app": "cni" });
                let metadata =
                    json!({ "name": name, "namespace": "kube-system", "labels": labels });
                let mut object = json!({ "kind": kind, "metadata": metadata });
                json_patch::merge(&mut object, &more);
                object
            };
            let template = json!({
                "metadata": { "labels": { "app": "cni" } },
                "spec": { "tolerations": [{ "operator": "Exists" }], "containers": [{ "name": "c", "image": "c" }] },
            });
            let spec =
                json!({ "selector": { "matchLabels": { "app": "cni" } }, "template": template });
            story.create(of_cni("DaemonSet", "cni", json!({ "spec": spec })));
            let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z" });
            story.create_pod(of_cni(
                "Pod",
                "p",
                json!({
                    "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "c" }] },
                    "status": { "phase": "Running", "conditions": [ready] },
                }),
            ));
            story.at(100);
            story.delete(
                Who::Actor("somebody"),
                Key::namespaced(Kind::DaemonSet, "kube-system", "cni"),
            );
            if !its_pod_stays {
                story.delete(
                    Who::Actor("kubelet"),
                    Key::namespaced(Kind::Pod, "kube-system", "p"),
                );
            }
            story.at(at);
            gate(&mut story, "n");
            story.judged(&mut Absences, fine, format_args!("{its_pod_stays} {at}"));
        }
    }
}
