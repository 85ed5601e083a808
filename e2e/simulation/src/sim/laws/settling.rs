//! Under a rule with a settle period, a node is released, and its bootstrap put on record, only once its conditions have been met for
//! that long without a break.
//!
//! At each time the conditions count that the rule had then. While there are faults, only a break counts that lasts longer than evidence
//! does: a shorter one may go unseen.

use std::sync::Arc;

use super::ledger::Glances;
use super::recall::perhaps;
use super::removals::is_given_up;
use super::rule::{Rule, governing};
use super::truth::{Answer, Facts};
use super::{NodeWrite, longest_age, seconds, steps};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};

/// The longest break that may go unseen without faults: times of the API are in whole seconds.
const UNSEEN: Time = s(2);

pub(super) struct Settling;

impl Law for Settling {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.removed() {
                judge(moment, &write, &taint.to_string(), |facts| {
                    governing(facts.rules, &taint, facts.node).cloned()
                })?;
            }
            for (key, id, _) in write.completed() {
                judge(moment, &write, key, |facts| {
                    facts.rules.iter().find(|it| it.uid == id).cloned()
                })?;
            }
        }
        Ok(())
    }
}

/// Checks that the conditions of the rule that this is about had settled.
fn judge(
    moment: &Moment<'_>,
    write: &NodeWrite<'_>,
    what: &str,
    chosen: impl Fn(&Facts<'_>) -> Option<Arc<Rule>>,
) -> Result<(), String> {
    let (node, at, revision) = (write.node(), write.change.at, write.change.revision);
    let rule = moment.ask(node, Glances::all(revision - 1), at, &chosen);
    let Some(rule) = rule.flatten().filter(|it| !it.settle_period().is_zero()) else {
        return Ok(());
    };
    // What was decided for another rule, before an edit, or by a deadline, may have been under way.
    let is_another = |facts: &Facts<'_>| {
        let then = chosen(facts);
        then.is_none_or(|it| it.uid != rule.uid || it.spec != rule.spec)
            || is_given_up(moment, facts, &rule)
    };
    let from = at.saturating_sub(longest_age(moment));
    if moment.was_ever(node, (from, at), revision, is_another) {
        return Ok(());
    }
    let unseen = match moment.faults {
        [] => UNSEEN,
        _ => longest_age(moment) + steps(moment),
    };
    let longest = longest_break(moment, write, &rule);
    if longest <= unseen {
        return Ok(());
    }
    Err(format!(
        "instance {} released node {node} at {}: {what}. The conditions of rule {} were unmet for {} of its settle period of {:?}",
        write.instance,
        seconds(at),
        rule.name,
        seconds(longest),
        rule.settle_period(),
    ))
}

/// The longest uninterrupted time in the settle period before the write in which the node did not meet the rule's conditions, nor
/// would have with what had just gone.
fn longest_break(moment: &Moment<'_>, write: &NodeWrite<'_>, rule: &Rule) -> Time {
    let (node, at) = (write.node(), write.change.at);
    let from = at.saturating_sub(rule.settle_period());
    let first = moment.cluster.at(from).revision();
    let mut turns = vec![(first, from)];
    turns.extend(moment.all_turns(node, first, write.change.revision - 1));
    let ends = turns.iter().skip(1).map(|(_, at)| *at).chain([at]);
    let (mut longest, mut lasts) = (Time::ZERO, Time::ZERO);
    for ((revision, began), ended) in turns.iter().zip(ends) {
        let is_unmet = |at| {
            let is_so = moment.ask(node, Glances::all(*revision), at, |facts| {
                let then = facts.rules.iter().find(|it| it.uid == rule.uid);
                let unmet =
                    |facts: &Facts<'_>| then.is_some_and(|rule| facts.met(rule) == Answer::No);
                let recalled = perhaps(moment, facts);
                facts.node["metadata"]["uid"] == write.after["metadata"]["uid"]
                    && unmet(facts)
                    && recalled.is_none_or(|it| facts.recalling(&it, unmet))
            });
            is_so == Some(true)
        };
        lasts = if is_unmet(*began) && is_unmet(ended) {
            lasts + ended.saturating_sub(*began)
        } else {
            Time::ZERO
        };
        longest = longest.max(lasts);
    }
    longest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, gated, node};

    #[test]
    fn a_node_is_released_once_its_conditions_have_been_met_for_the_settle_period() {
        for (broken_at, removed_at, fine) in [
            (None, 100, false),
            (None, 111, true),
            (Some(80), 111, false),
            (Some(80), 146, true),
        ] {
            let mut story = Story::under(json!({ "nodegate": { "settlePeriod": "1m" } }));
            story.create(gated(node("n")));
            story.at(50);
            story.report("n", "Net", "True");
            if let Some(at) = broken_at {
                story.at(at);
                story.report("n", "Net", "False");
                story.at(at + 5);
                story.report("n", "Net", "True");
            }
            story.at(removed_at);
            story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
            let case = format!("{broken_at:?}, {removed_at}");
            story.judged(&mut Settling, fine, case);
        }
    }

    #[test]
    fn a_bootstrap_is_put_on_record_once_its_conditions_have_settled() {
        for (noted_at, fine) in [(100, false), (111, true)] {
            let mut story = Story::under(
                json!({ "enforcementMode": "bootstrap-only", "nodegate": { "settlePeriod": "1m" } }),
            );
            story.create(node("n"));
            story.at(50);
            story.report("n", "Net", "True");
            story.at(noted_at);
            let uid = story.uid_of_rule("r");
            let key = format!("readiness.k8s.io/bootstrap-completed-{uid}");
            story.patch_by_nodegate("n", json!({ "metadata": { "annotations": { key: "{}" } } }));
            story.judged(&mut Settling, fine, noted_at);
        }
    }
}
