//! Nodegate removes a taint only with a reason: shortly before, on that node, no rule wanted the taint, the conditions of the
//! governing rule were met, or the node's deadline had passed. The same holds for every bootstrap put on record; a rule that adds taints records none
//! for a node that may still lack labels.

use nodegate_core::api::RepairAction;

use super::ledger::Glances;
use super::rule::{Rule, boot_id, forbids_repair, governing, is_in_maintenance, is_introduced};
use super::truth::{Answer, Facts};
use super::{NodeWrite, longest_age, seconds, steps};
use crate::sim::law::{Law, Moment};
use crate::sim::time::wall;

pub(super) struct Removals;

impl Law for Removals {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.removed() {
                judge(moment, &write, &taint.to_string(), |facts| {
                    let governing = governing(facts.rules, &taint, facts.node);
                    governing.is_none_or(|rule| may_release(moment, facts, rule))
                })?;
            }
            for (key, id, boot) in write.completed() {
                judge(moment, &write, key, |facts| {
                    let mut rules = facts.rules.iter().filter(|rule| rule.uid == id);
                    let is_of_this_boot = boot.iter().all(|boot| boot_id(facts.node) == *boot);
                    is_of_this_boot
                        && rules.any(|rule| {
                            let is_known = !rule.adds() || is_introduced(facts.node);
                            is_known && may_release(moment, facts, rule)
                        })
                })?;
            }
        }
        Ok(())
    }
}

fn judge(
    moment: &Moment<'_>,
    write: &NodeWrite<'_>,
    what: &str,
    is_justified: impl Fn(&Facts<'_>) -> bool,
) -> Result<(), String> {
    let (node, at, revision) = (write.node(), write.change.at, write.change.revision);
    let from = at.saturating_sub(longest_age(moment));
    let uid = &write.after["metadata"]["uid"];
    let is_so = |facts: &Facts<'_>| facts.node["metadata"]["uid"] == *uid && is_justified(facts);
    if moment.was_ever(node, (from, at), revision, is_so) {
        return Ok(());
    }
    let truth = moment.ask(node, Glances::all(revision - 1), at, |facts| {
        let rules = facts.rules.iter().filter(|rule| rule.selects(facts.node));
        let rules = rules.map(|rule| format!("rule {}: {}", rule.name, facts.why(rule)));
        rules.collect::<Vec<_>>().join("; ")
    });
    Err(format!(
        "instance {} released node {node} at {}: {what}. Not since {} was that justified. Just before: {}",
        write.instance,
        seconds(at),
        seconds(from),
        truth.unwrap_or_default(),
    ))
}

/// Whether the rule is not suspended, and its conditions are met on the node or the deadline has passed.
pub(super) fn may_release(moment: &Moment<'_>, facts: &Facts<'_>, rule: &Rule) -> bool {
    !facts.suspends(rule) && (facts.met(rule) != Answer::No || is_given_up(moment, facts, rule))
}

/// Whether the rule releases late nodes, nothing forbids that, and the node's deadline has passed, by the clock that is
/// farthest ahead.
pub(super) fn is_given_up(moment: &Moment<'_>, facts: &Facts<'_>, rule: &Rule) -> bool {
    let Some(repair) = rule
        .ours
        .repair
        .as_ref()
        .filter(|it| it.action == RepairAction::Release)
    else {
        return false;
    };
    if forbids_repair(facts.node) || is_in_maintenance(facts.node) {
        return false;
    }
    let latest = wall(facts.at + steps(moment));
    let since = rule.waits_since(facts.node);
    let up = since.and_then(|since| since.checked_add(repair.readiness_ttl.as_std()).ok());
    up.is_some_and(|up| up <= latest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, gated, node, repairing};

    fn remove(story: &mut Story) {
        story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
    }

    #[test]
    fn a_suspended_rule_justifies_nothing_once_that_has_been_seen() {
        for (suspended_at, justified) in [(10, false), (95, true)] {
            let mut story = Story::under(json!({}));
            story.create(gated(node("n")));
            story.at(suspended_at);
            story.patch_rule("r", json!({ "spec": { "nodegate": { "suspend": true } } }));
            if suspended_at < 20 {
                story.at(20);
            }
            story.report("n", "Net", "True");
            story.at(100);
            remove(&mut story);
            story.judged(&mut Removals, justified, suspended_at);
        }
    }

    #[test]
    fn a_node_is_given_up_when_its_time_is_up_and_not_before() {
        for (at, veto, justified) in [
            (59, "false", false),
            (61, "false", true),
            (61, "true", false),
        ] {
            let mut story = repairing(&json!({ "readinessTTL": "1m", "action": "Release" }));
            let mut late = gated(node("n"));
            late["metadata"]["annotations"] = json!({ "nodegate.dev/do-not-repair": veto });
            story.create(late);
            story.at(at);
            remove(&mut story);
            story.judged(&mut Removals, justified, format_args!("{at}, {veto}"));
        }
    }

    #[test]
    fn a_bootstrap_is_put_on_record_only_when_it_is_completed() {
        for met in ["True", "False"] {
            let mut story = Story::under(json!({ "enforcementMode": "bootstrap-only" }));
            story.create(node("n"));
            story.report("n", "Net", met);
            let uid = story.uid_of_rule("r");
            let key = format!("readiness.k8s.io/bootstrap-completed-{uid}");
            story.patch_by_nodegate("n", json!({ "metadata": { "annotations": { key: "{}" } } }));
            story.judged(&mut Removals, met == "True", met);
        }
    }

    #[test]
    fn a_bootstrap_is_put_on_record_for_a_boot_in_which_it_was_completed() {
        for (boot, justified) in [("boot-1", true), ("boot-2", false)] {
            let mut story = Story::under(
                json!({ "enforcementMode": "bootstrap-only", "nodegate": { "regateOn": ["Reboot"] } }),
            );
            let uid = story.uid_of_rule("r");
            let key = format!("readiness.k8s.io/bootstrap-completed-{uid}");
            let value = |boot: &str| json!({ "rule-name": "r", "boot-id": boot }).to_string();
            let mut known = node("n");
            known["metadata"]["annotations"] = json!({ &key: value("boot-0") });
            story.create(known);
            story.report("n", "Net", "True");
            let record = json!({ "metadata": { "annotations": { &key: value(boot) } } });
            story.patch_by_nodegate("n", record);
            story.judged(&mut Removals, justified, boot);
        }
    }
}
