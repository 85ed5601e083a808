//! A rule that comes into force gates no more nodes in use than its limit: past that it gates none of them, and says so for as long
//! as that is so.
//!
//! A process decides that once for each generation of a rule, by what it sees. So at some time since the generation came, the nodes
//! that were surely to be gated were no more than the limit. Unlike the law of a minute, this one also judges what is gated later: after
//! a grace period, at a rate, or by another process.

use std::collections::BTreeSet;

use serde_json::Value;

use super::bootstrap::owner;
use super::gatings::was_in_use;
use super::ledger::Glances;
use super::rule::{Rule, TaintId};
use super::truth::Answer;
use super::{NodeWrite, longest_age, seconds};
use crate::sim::actors::ask::{items, text};
use crate::sim::cluster::State;
use crate::sim::law::{Law, Moment};
use crate::{Key, Kind};

/// So many nodes may be gated in any case.
const ALWAYS: usize = 3;

#[derive(Default)]
pub(super) struct FirstGating {
    /// The rules, by UID and generation, that were seen to be within their limit.
    allowed: BTreeSet<(String, i64)>,
}

impl Law for FirstGating {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.added() {
                let (at, revision) = (write.change.at, write.change.revision);
                let rule = owner(moment, write.after, &taint, revision);
                let Some(rule) = rule.filter(|rule| limit(moment, rule, 1).is_some()) else {
                    continue;
                };
                let Some((generation, came)) = generation(moment, &rule, revision) else {
                    continue;
                };
                // What was allowed for an earlier generation may be under way.
                let is_news = generation > 1 && at <= came.at + longest_age(moment);
                if is_news || !was_in_use(moment, write.node(), &taint, at, revision) {
                    continue;
                }
                let id = (rule.uid.clone(), generation);
                if self.allowed.contains(&id) {
                    continue;
                }
                if !was_ever_within(moment, &rule, &taint, came.revision, revision) {
                    return Err(format!(
                        "rule {} gated node {} at {}, and has had more to gate than its limit since {}",
                        rule.name,
                        write.node(),
                        seconds(at),
                        seconds(came.at),
                    ));
                }
                self.allowed.insert(id);
            }
        }
        Ok(())
    }

    fn finally(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        let now = moment.cluster.now();
        for rule in moment.rules(moment.cluster.revision()) {
            let object = Key::cluster(Kind::NodeReadinessRule, &rule.name);
            let Some(object) = moment.cluster.get(&object) else {
                continue;
            };
            let nodes = moment.cluster.objects(Kind::Node);
            let to_gate = nodes.filter(|(key, _)| {
                let glances = Glances::all(moment.cluster.revision());
                let answer = moment.ask(&key.name, glances, now, |facts| {
                    rule.selects(facts.node) && facts.met(&rule) != Answer::Yes
                });
                answer == Some(true)
            });
            if is_held_back(object) && to_gate.count() <= ALWAYS {
                return Err(format!("rule {} is still held back", rule.name));
            }
        }
        Ok(())
    }
}

/// Whether the rule's status says that it is held back as it is.
pub(super) fn is_held_back(rule: &Value) -> bool {
    let mut conditions = items(&rule["status"]["conditions"]).iter();
    conditions.any(|it| {
        text(&it["type"]) == "HeldBack"
            && text(&it["status"]) == "True"
            && it["observedGeneration"] == rule["metadata"]["generation"]
    })
}

/// How many of so many nodes the rule may gate as it comes into force.
pub(super) fn limit(moment: &Moment<'_>, rule: &Rule, nodes: usize) -> Option<usize> {
    let limits = moment.settings.disruption_limits;
    let limit = limits.first(rule.ours.disruption.as_ref())?;
    Some(limit.of(nodes).max(ALWAYS))
}

/// The rule's generation before this revision, and when it came.
fn generation<'a>(moment: &Moment<'a>, rule: &Rule, before: u64) -> Option<(i64, &'a State)> {
    let states = moment
        .cluster
        .history(&Key::cluster(Kind::NodeReadinessRule, &rule.name));
    let states = &states[..states.partition_point(|state| state.revision < before)];
    let of = |state: &State| {
        let metadata = &state.object.as_ref()?["metadata"];
        (metadata["uid"] == *rule.uid).then(|| metadata["generation"].as_i64().unwrap_or(1))
    };
    let generation = of(states.last()?)?;
    let first = states.iter().find(|state| of(state) == Some(generation))?;
    Some((generation, first))
}

/// Whether at some time between these revisions the nodes that were surely to be gated were within the limit.
fn was_ever_within(
    moment: &Moment<'_>,
    rule: &Rule,
    taint: &TaintId,
    first: u64,
    before: u64,
) -> bool {
    let changes = moment.cluster.changes().iter();
    let mut times = changes.filter(|it| {
        it.revision == first || (first..before).contains(&it.revision) && it.key.kind == Kind::Node
    });
    times.any(|change| {
        let (at, revision) = (change.at, change.revision);
        let from = at.saturating_sub(longest_age(moment));
        let then = moment.cluster.at(from);
        let now = moment.cluster.as_of(revision);
        let mut all = 0;
        let surely = now.objects(Kind::Node).filter(|(key, node)| {
            all += 1;
            let uid = |node: &Value| node["metadata"]["uid"].clone();
            then.get(key).is_some_and(|was| uid(was) == uid(node))
                && was_in_use(moment, &key.name, taint, from, then.revision() + 1)
                && !moment.was_ever(&key.name, (from, at), revision + 1, |facts| {
                    !rule.selects(facts.node)
                        || facts.met(rule) != Answer::No
                        || taint.is_on(facts.node)
                })
        });
        let surely = surely.count();
        limit(moment, rule, all).is_none_or(|limit| surely <= limit)
    })
}
