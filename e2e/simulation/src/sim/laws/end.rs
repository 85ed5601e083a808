//! At the end, after a calm period, an instance leads, every node is as the rules say, deleted rules are gone, and writes
//! cease.
//!
//! The documentation says what the rules require. Where time decides (a grace or settle period, stale evidence after a reboot, a
//! reporter's silence), that time must have passed with some margin. A node that somebody keeps changing may end either way, and so
//! may one for which an absence may not have lasted.

use std::collections::{BTreeMap, BTreeSet};

use super::bootstrap::owners;
use super::disruption::zone;
use super::first_gating;
use super::ledger::{Glances, is_ours};
use super::longest_age;
use super::recall;
use super::rule::{OUR_TAINTS, Rule, TaintId, governing, is_in_maintenance, is_introduced};
use super::truth::{Answer, Facts};
use super::writes::target;
use crate::sim::actors::ask::{is_going, items, text};
use crate::sim::cluster::{Change, State};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};
use crate::{Key, Kind};

/// The last part of a run, in which almost nothing may be written: only what an expired timer requires.
const QUIET: Time = s(30);
/// How many writes one object may receive in that time.
const MOST: usize = 2;
/// How long Nodegate may leave its reversed change alone: the longest pause, and the time after which the pause ends.
const CONTENTION: Time = s(5 * 60);
/// How long a reaction may take.
const REACTION: Time = s(2);

pub(super) struct End;

impl Law for End {
    fn finally(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        let now = moment.cluster.now();
        if moment.instances.iter().all(|it| it.leads_since.is_none()) {
            return Err("nobody leads".to_owned());
        }
        for (key, rule) in moment.cluster.objects(Kind::NodeReadinessRule) {
            if is_going(rule) && items(&rule["metadata"]["finalizers"]).len() == 1 {
                return Err(format!("{key} is still being deleted"));
            }
        }
        let mut is_quiet = true;
        for (key, _) in moment.cluster.objects(Kind::Node) {
            is_quiet &= !is_interfered_with(moment, key, now);
            judge(moment, &key.name)?;
        }
        if is_quiet && !moved_lately(moment, now) {
            still_written(moment, now)?;
        }
        Ok(())
    }
}

/// Checks that only expired timers cause writes.
fn still_written(moment: &Moment<'_>, now: Time) -> Result<(), String> {
    let mut times: BTreeMap<&Key, usize> = BTreeMap::new();
    let writes = moment.cluster.writes().iter().rev();
    for write in writes.take_while(|write| write.at + QUIET > now) {
        if let (true, Some(key)) = (is_ours(write.who), target(&write.request)) {
            let count = times.entry(key).or_default();
            *count += 1;
            if *count > MOST {
                return Err(format!(
                    "{key} is still written, more than {MOST} times in the last {QUIET:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether somebody has changed a taint of the rules on a node so recently that Nodegate may leave it, or may just have
/// reversed it; or has changed anything of the node so recently that Nodegate may not have reacted.
pub(super) fn is_interfered_with(moment: &Moment<'_>, key: &Key, now: Time) -> bool {
    let changes = moment.cluster.changes().iter().rev();
    let mut recent = changes.take_while(|change| change.at + CONTENTION >= now);
    let taints = |object: &serde_json::Value| -> BTreeSet<TaintId> {
        let all = TaintId::all(object).map(|(taint, _)| taint);
        all.filter(|taint| taint.key.starts_with(OUR_TAINTS))
            .collect()
    };
    recent.any(|change| match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            change.key == *key
                && !is_ours(change.who)
                && (taints(before) != taints(after)
                    || change.at + REACTION >= now && without_times(before) != without_times(after))
        }
        _ => false,
    })
}

/// Whether others have changed something so recently that writes may follow from it.
fn moved_lately(moment: &Moment<'_>, now: Time) -> bool {
    let changes = moment.cluster.changes().iter().rev();
    let mut recent = changes.take_while(|change| change.at + QUIET * 2 >= now);
    recent.any(|change| {
        let is_heartbeat = || match (&change.before, &change.after) {
            (Some(before), Some(after)) => without_times(before) == without_times(after),
            _ => false,
        };
        !is_ours(change.who) && !is_heartbeat()
    })
}

fn without_times(object: &serde_json::Value) -> serde_json::Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    for condition in object["status"]["conditions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        if let Some(condition) = condition.as_object_mut() {
            condition.remove("lastHeartbeatTime");
        }
    }
    object
}

fn judge(moment: &Moment<'_>, node: &str) -> Result<(), String> {
    let now = moment.cluster.now();
    if is_interfered_with(moment, &Key::cluster(Kind::Node, node), now) {
        return Ok(());
    }
    let judged = moment.ask(
        node,
        Glances::all(moment.cluster.revision()),
        now,
        |facts| {
            if is_going(facts.node) || recall::may_wait(moment, facts) {
                return Ok(());
            }
            let of_rules = facts.rules.iter().map(|rule| rule.taint());
            let of_node = TaintId::all(facts.node).map(|(taint, _)| taint);
            let concerned: BTreeSet<TaintId> = of_rules.chain(of_node).collect();
            for taint in concerned {
                match governing(facts.rules, &taint, facts.node) {
                    Some(rule) if rule.has_finalizer => {
                        governed(moment, facts, rule, &taint)?;
                    }
                    Some(rule) => return Err(format!("rule {} has no finalizer", rule.name)),
                    None => left(facts, &taint)?,
                }
            }
            Ok(())
        },
    );
    judged.unwrap_or(Ok(()))
}

/// Checks that a governed taint matches the rule's conditions; a suspended rule leaves it as it was.
fn governed(
    moment: &Moment<'_>,
    facts: &Facts<'_>,
    rule: &Rule,
    taint: &TaintId,
) -> Result<(), String> {
    if facts.suspends(rule) {
        return Ok(());
    }
    let name = text(&facts.node["metadata"]["name"]);
    let tell = |what: &str| {
        let why = facts.why(rule);
        Err(format!(
            "node {name} {what} {taint} at the end; rule {}: {why}",
            rule.name
        ))
    };
    let is_held = taint.is_on(facts.node);
    match (facts.met(rule), is_held) {
        (Answer::Yes, _) if may_settle(moment, facts, rule) => Ok(()),
        (Answer::Yes, true) => tell("still has"),
        (Answer::Yes, false) if rule.is_bootstrap() && rule.adds() && is_introduced(facts.node) => {
            if is_completed(moment, facts, rule) {
                return Ok(());
            }
            tell("has completed its bootstrap, which is not on record, without")
        }
        (Answer::No, false)
            if rule.adds() && !(rule.is_bootstrap() && is_completed(moment, facts, rule)) =>
        {
            if may_wait(moment, facts, rule, taint) {
                return Ok(());
            }
            tell("lacks")
        }
        _ => Ok(()),
    }
}

/// Whether the node's bootstrap counts. A maintenance may go unnoticed only if something goes wrong meanwhile.
fn is_completed(moment: &Moment<'_>, facts: &Facts<'_>, rule: &Rule) -> bool {
    let is_outdated = moment.faults.is_empty() && facts.is_back_from_maintenance(rule);
    rule.is_completed_on(facts.node) && !is_outdated
}

/// Whether this has been so of the node for less than so long, as far as a process may have observed. It restarts its timers after a clock
/// step, a restart or a change of its view.
fn may_be_new(
    moment: &Moment<'_>,
    facts: &Facts<'_>,
    period: Time,
    is_so: impl Fn(&Facts<'_>) -> bool,
) -> bool {
    let now = moment.cluster.now();
    let lasts = period + longest_age(moment);
    let begun = facts.sees_since.unwrap_or(now);
    let begun = begun.max(moment.calm_since.min(now));
    let name = text(&facts.node["metadata"]["name"]);
    let period = (now.saturating_sub(lasts), now);
    let next = moment.cluster.revision() + 1;
    now < begun + lasts || moment.was_ever(name, period, next, |facts| !is_so(facts))
}

/// Whether a met node need not be released yet, nor its bootstrap be on record: its settle period lasts.
fn may_settle(moment: &Moment<'_>, facts: &Facts<'_>, rule: &Rule) -> bool {
    let period = rule.settle_period();
    !period.is_zero() && may_be_new(moment, facts, period, |it| it.met(rule) == Answer::Yes)
}

/// Whether an unmet node need not be held yet: its grace period lasts, the rule is held back, or the disruption guard holds the node
/// back.
fn may_wait(moment: &Moment<'_>, facts: &Facts<'_>, rule: &Rule, taint: &TaintId) -> bool {
    let is_wanted = |facts: &Facts<'_>| {
        rule.selects(facts.node) && facts.met(rule) == Answer::No && !taint.is_on(facts.node)
    };
    let object = Key::cluster(Kind::NodeReadinessRule, &rule.name);
    let object = moment.cluster.get(&object);
    may_be_new(moment, facts, rule.grace(), is_wanted)
        || object.is_some_and(|it| first_gating::is_held_back(it))
        || rule.ours.guard().is_some() && is_held_back(moment, facts, rule)
}

/// Whether the disruption guard may hold a node back: it is in maintenance, every zone or this one is disrupted, or nodes of the
/// zone were gated recently.
fn is_held_back(moment: &Moment<'_>, facts: &Facts<'_>, rule: &Rule) -> bool {
    let (now, revision) = (moment.cluster.now(), moment.cluster.revision());
    let own = rule.ours.disruption.unwrap_or_default();
    let limits = &moment.settings.disruption_limits;
    let rate = own.eviction_rate.unwrap_or(limits.eviction_rate);
    let (mut met, mut met_here, mut unmet_here) = (0_usize, 0_usize, 0_usize);
    for (key, node) in moment.cluster.objects(Kind::Node) {
        let answer = moment.ask(&key.name, Glances::all(revision), now, |it| it.met(rule));
        let is_here = zone(node) == zone(facts.node);
        match answer.filter(|_| rule.selects(node)) {
            None => {}
            Some(Answer::No) => unmet_here += usize::from(is_here && !is_in_maintenance(node)),
            Some(_) => {
                met += 1;
                met_here += usize::from(is_here);
            }
        }
    }
    let is_disrupted = met == 0 || met_here > 0 && unmet_here > 2 && unmet_here > met_here;
    let was_gated = |change: &&Change| {
        let after = change.after.as_ref();
        is_ours(change.who)
            && after
                .is_some_and(|after| rule.taint().is_on(after) && zone(after) == zone(facts.node))
    };
    let interval = Time::try_from_secs_f64(2.0 / rate)
        .unwrap_or(Time::MAX)
        .saturating_add(longest_age(moment));
    let mut changes = moment.cluster.changes().iter().filter(was_gated);
    is_disrupted
        || is_in_maintenance(facts.node)
        || changes.any(|change| change.at.saturating_add(interval) >= now)
}

/// Checks that Nodegate did not leave behind a taint that no rule governs.
fn left(facts: &Facts<'_>, taint: &TaintId) -> Result<(), String> {
    if !taint.key.starts_with(OUR_TAINTS) || !taint.is_on(facts.node) {
        return Ok(());
    }
    for owner in owners(facts.node, taint) {
        let mut rules = facts.rules.iter();
        // A suspended rule changes nothing, not even on nodes that leave its selector.
        let is_kept = rules.any(|rule| {
            rule.uid == owner
                && (rule.selects(facts.node) || facts.suspends(rule) && !rule.is_deleting)
        });
        if !is_kept && was_put_there(facts.states, taint) {
            let name = &facts.node["metadata"]["name"];
            return Err(format!(
                "node {name} still has {taint} at the end, which was put there for a rule {owner} that does not want it any more"
            ));
        }
    }
    Ok(())
}

/// Whether the taint carries the time at which Nodegate added it.
fn was_put_there(states: &[State], taint: &TaintId) -> bool {
    let node = states.last().and_then(|state| state.object.as_ref());
    node.is_some_and(|node| {
        TaintId::all(node).any(|(it, object)| it == *taint && object.get("timeAdded").is_some())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sim::laws::testing::{Story, gate, gated, node};

    #[test]
    fn a_completed_bootstrap_is_on_record() {
        let mut story = Story::under(json!({ "enforcementMode": "bootstrap-only" }));
        story.create(node("n"));
        story.report("n", "Net", "True");
        story.at(1000);
        story.judged_end(&mut End, false, "");
        let annotations = json!({ "readiness.k8s.io/bootstrap-completed-r": "{}" });
        story.patch_node("n", json!({ "metadata": { "annotations": annotations } }));
        story.judged_end(&mut End, true, "");
    }

    #[test]
    fn a_disruption_limit_gates_no_node_in_maintenance_and_does_not_count_it() {
        for (maintained, failed, fine) in [(0, 4, true), (4, 0, true), (4, 1, false)] {
            let mut story = Story::under(json!({ "nodegate": { "disruption": {} } }));
            for number in 0..6 {
                let name = &format!("n{number}");
                let is_unmet = number < maintained + failed;
                story.create(node(name));
                story.report(name, "Net", if is_unmet { "False" } else { "True" });
                if number < maintained {
                    story.report(name, "DrainInProgress", "True");
                }
            }
            story.at(1000);
            story.judged_end(&mut End, fine, format_args!("{maintained} {failed}"));
        }
    }

    #[test]
    fn a_silent_reporter_gates_a_node() {
        for (timeout, fine) in [("5m", false), ("1h", true)] {
            let mut story = Story::under(json!({ "nodegate": { "heartbeatTimeout": timeout } }));
            story.create(node("n"));
            story.report("n", "Net", "True");
            story.at(10);
            story.report("n", "Net", "True");
            story.at(1000);
            story.judged_end(&mut End, fine, timeout);
        }
    }

    #[test]
    fn a_deleted_rule_is_gone_with_its_taints() {
        let mut story = Story::under(json!({}));
        story.create(gated(node("n")));
        story.delete_rule("r");
        story.at(1000);
        story.judged_end(&mut End, false, "");
    }

    #[test]
    fn at_the_end_writes_have_ceased() {
        for (at, times, fine) in [(990, 1, true), (990, 5, false), (900, 5, true)] {
            let mut story = Story::under(json!({}));
            story.create(node("n"));
            story.report("n", "Net", "False");
            story.at(at);
            for _ in 0..times {
                gate(&mut story, "n");
            }
            story.at(1000);
            story.judged_end(&mut End, fine, at);
        }
    }

    #[test]
    fn at_the_end_somebody_leads() {
        let mut story = Story::default();
        story.report.leads_since = None;
        story.judged_end(&mut End, false, "");
    }
}
