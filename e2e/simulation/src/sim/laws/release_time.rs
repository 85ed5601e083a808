//! Release waits for no limit: a node that our taint holds is released soon after its conditions are met, or have been for
//! the settle period, however many other nodes are gated, held back or released at that time.
//!
//! Faults may delay that, and so may somebody who keeps changing the taint; those schedules and nodes are not judged, nor nodes for
//! which an absence may not have lasted. A node that is never released is judged at the end.

use super::end::is_interfered_with;
use super::ledger::Glances;
use super::recall::may_wait;
use super::rule::{OUR_TAINTS, Rule, TaintId, governing};
use super::truth::Answer;
use super::{NodeWrite, seconds};
use crate::Key;
use crate::Kind;
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};

/// How long a release may take: observations and retries. At the default rate, a limit would let one node pass in this time.
const PROMPT: Time = s(10);

pub(super) struct ReleaseTime;

impl Law for ReleaseTime {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        if !moment.faults.is_empty() || moment.settings.rate.is_some() {
            return Ok(());
        }
        for write in NodeWrite::new(moment) {
            let at = write.change.at;
            let Some(promptly) = at.checked_sub(PROMPT) else {
                continue;
            };
            let key = Key::cluster(Kind::Node, write.node());
            if !led_since(moment, write.instance, promptly) || is_interfered_with(moment, &key, at)
            {
                continue;
            }
            let rules = moment.rules(write.change.revision - 1);
            for taint in write.removed() {
                let rule = governing(&rules, &taint, write.before);
                if taint.key.starts_with(OUR_TAINTS)
                    && rule.is_some_and(|it| was_due(moment, &write, &taint, it))
                {
                    return Err(format!(
                        "node {} was released at {}, and {taint} was to be removed for {} by then",
                        write.node(),
                        seconds(at),
                        seconds(PROMPT),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether this instance has led and seen everything since this time.
fn led_since(moment: &Moment<'_>, instance: usize, time: Time) -> bool {
    let report = moment.instances.get(instance);
    report.is_some_and(|it| {
        let since = [it.runs_since, it.leads_since, it.synced_since];
        since
            .iter()
            .all(|since| since.is_some_and(|since| since <= time))
    })
}

/// Whether this rule governed the taint, which was on the node, and its conditions were met, for its settle period and so long that
/// a release is late.
fn was_due(moment: &Moment<'_>, write: &NodeWrite<'_>, taint: &TaintId, by: &Rule) -> bool {
    let (node, before) = (write.node(), write.change.revision - 1);
    let Some(from) = write.change.at.checked_sub(PROMPT + by.settle_period()) else {
        return false;
    };
    let first = moment.cluster.at(from).revision();
    let turns = moment.all_turns(node, first, before);
    let mut turns = std::iter::once((first, from)).chain(turns);
    turns.all(|(revision, at)| {
        let due = moment.ask(node, Glances::all(revision), at, |facts| {
            let rule = governing(facts.rules, taint, facts.node);
            taint.is_on(facts.node)
                && rule.is_some_and(|rule| {
                    rule.uid == by.uid
                        && rule.has_finalizer
                        && !facts.suspends(rule)
                        && facts.met(rule) == Answer::Yes
                })
                && !may_wait(moment, facts)
        });
        due.unwrap_or(false)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, gated, node};

    #[test]
    fn a_node_is_released_soon_after_its_conditions_are_met() {
        for (name, met_at, broken_at, removed_at, fine) in [
            ("at once", 50, None, 51, true),
            ("after a while", 50, None, 59, true),
            ("late", 50, None, 61, false),
            ("met again since", 50, Some(60), 65, true),
        ] {
            let mut story = Story::under(json!({ "nodegate": { "disruption": {} } }));
            story.create(gated(node("n")));
            story.at(met_at);
            story.report("n", "Net", "True");
            if let Some(at) = broken_at {
                story.at(at);
                story.report("n", "Net", "False");
                story.report("n", "Net", "True");
            }
            story.at(removed_at);
            story.patch_by_nodegate("n", json!({ "spec": { "taints": null } }));
            story.judged(&mut ReleaseTime, fine, name);
        }
    }
}
