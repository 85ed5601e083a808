//! Of the nodes in use that come under a rule within a minute, in whatever way, it gates no more than its limit before somebody allows
//! more: they are counted together. A node comes under a rule when that begins to govern its taint there: as the rule is created, edited,
//! resumed or turned on, as an earlier one goes, or as labels change.
//!
//! A process may count a node as soon as it is under the rule, and must have counted it as it gates it, if the node has surely been
//! in use and unmet meanwhile. So what is counted in a minute is known for nodes that came under the rule, and were gated, within one. A
//! new process knows nothing of what an earlier one counted.

use super::bootstrap::owner;
use super::first_gating::limit;
use super::gatings::was_in_use;
use super::ledger::Glances;
use super::rule::{Rule, TaintId, governing};
use super::truth::{Answer, Facts};
use super::{NodeWrite, Process, longest_age, process, seconds};
use crate::Kind;
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};

const MINUTE: Time = s(60);
/// How long a node must have been there, and not under the rule, so that a process surely notices that it comes under it.
const BEFORE: Time = s(6);

#[derive(Default)]
pub(super) struct WithinAMinute {
    gatings: Vec<Gating>,
}

struct Gating {
    rule: String,
    process: Process,
    /// When the node came under the rule.
    came: Time,
}

impl Law for WithinAMinute {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.added() {
                let (at, revision) = (write.change.at, write.change.revision);
                let Some(rule) = owner(moment, write.after, &taint, revision) else {
                    continue;
                };
                let all = moment.cluster.objects(Kind::Node).count();
                let Some(limit) = limit(moment, &rule, all) else {
                    continue;
                };
                let Some(came) = came(moment, &write, &rule) else {
                    continue;
                };
                let process = process(moment, write.instance);
                self.gatings.push(Gating {
                    rule: rule.uid.clone(),
                    process,
                    came,
                });
                let together = self.gatings.iter().filter(|it| {
                    it.rule == rule.uid && it.process == process && it.came + MINUTE > at
                });
                let together = together.count();
                if together > limit {
                    return Err(format!(
                        "rule {} gated {together} nodes until {} that came under it within a minute, the last one, {}, at {}",
                        rule.name,
                        seconds(at),
                        write.node(),
                        seconds(came),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// When the node that is gated came under the rule, if that was in this minute, and the node has surely been in use and unmet since.
fn came(moment: &Moment<'_>, write: &NodeWrite<'_>, rule: &Rule) -> Option<Time> {
    let (node, at, revision) = (write.node(), write.change.at, write.change.revision);
    let (taint, age) = (rule.taint(), longest_age(moment));
    // These gate a node long after it was counted, or one that is in use no more. When a brake ends is not in the log.
    let is_slow = !rule.grace().is_zero() || rule.ours.guard().is_some();
    if is_slow || !rule.ours.regate_on.is_empty() || moment.scenario.brake.is_some() {
        return None;
    }
    let first = moment.cluster.at(at.saturating_sub(MINUTE)).revision();
    let turns = moment.all_turns(node, first, revision - 1);
    let is_out = |(turn, at): &(u64, Time)| {
        let is_under = |it: &Facts<'_>| is_under(it, rule, &taint);
        moment.ask(node, Glances::all(*turn), *at, is_under) != Some(true)
    };
    let last = turns.iter().rposition(is_out);
    let (turn, came) = *turns.get(last.map_or(0, |last| last + 1))?;
    let from = came.saturating_sub(age + BEFORE);
    let then = moment.cluster.at(from).get(&write.change.key)?;
    if then["metadata"]["uid"] != write.after["metadata"]["uid"] {
        return None;
    }
    let was_under = moment.was_ever(node, (from, came), turn, |it| is_under(it, rule, &taint));
    let was_met = moment.was_ever(node, (from, at), revision, |facts| {
        facts.met(rule) != Answer::No || taint.is_on(facts.node)
    });
    let is_sure = !was_under && !was_met && was_in_use(moment, node, &taint, at, revision);
    is_sure.then_some(came)
}

/// Whether the rule, as it is, governs its taint on the node.
fn is_under(facts: &Facts<'_>, rule: &Rule, taint: &TaintId) -> bool {
    let governing = governing(facts.rules, taint, facts.node);
    governing.is_some_and(|it| it.uid == rule.uid && it.spec == rule.spec && !facts.suspends(it))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, gate, node};

    #[test]
    fn nodes_that_get_a_rules_label_are_counted_together_for_a_minute() {
        for (nodes, apart, fine) in [(3, 1, true), (4, 1, false), (4, 25, true)] {
            let first = json!({"disruption": {"maxFirstGated": "10%"}});
            let mut story = Story::under(json!({ "nodegate": first }));
            let names: Vec<_> = (0..nodes).map(|number| format!("n{number}")).collect();
            for name in &names {
                let mut elsewhere = node(name);
                elsewhere["metadata"]["labels"]["pool"] = json!("b");
                story.create(elsewhere);
                story.report(name, "Net", "False");
            }
            for (number, name) in (0..).zip(&names) {
                story.at(100 + number * apart);
                story.patch_node(name, json!({"metadata": {"labels": {"pool": "a"}}}));
                gate(&mut story, name);
            }
            let case = format!("{nodes}, {apart} s apart");
            story.judged(&mut WithinAMinute::default(), fine, case);
        }
    }
}
