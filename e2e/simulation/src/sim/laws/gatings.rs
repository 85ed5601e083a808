//! Nodegate adds a taint only with a reason: shortly before, on that node, the conditions of the governing rule were unmet and
//! its bootstrap was not on record. A node in use is gated only after the rule's grace period, in which its conditions were not
//! met for long.

use std::time::Duration;

use super::ledger::Glances;
use super::rule::{Rule, TaintId, governing};
use super::truth::{Answer, Facts};
use super::{NodeWrite, incidents, is_synthesized, longest_age, seconds, steps};
use crate::Key;
use crate::Kind;
use crate::sim::fault::Incident;
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};

/// How long a node without the taint counts as new to the instance that gates it: 5 s after that instance observed it.
const PROMPTLY: Duration = s(5);

/// How late an instance may observe a new node, beside the time in which it cannot reach the API server.
const LATE: Duration = s(5);

pub(super) struct Gatings;

impl Law for Gatings {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.added() {
                judge(moment, &write, &taint)?;
            }
        }
        Ok(())
    }
}

fn judge(moment: &Moment<'_>, write: &NodeWrite<'_>, taint: &TaintId) -> Result<(), String> {
    let (node, at, revision) = (write.node(), write.change.at, write.change.revision);
    let age = longest_age(moment);
    let from = at.saturating_sub(age);
    let uid = &write.after["metadata"]["uid"];
    let wants = |facts: &Facts<'_>| facts.node["metadata"]["uid"] == *uid && wants(facts, taint);
    let tell = |what: String| {
        let truth = moment.ask(node, Glances::all(revision - 1), at, |facts| {
            let rules = facts.rules.iter().filter(|rule| rule.is_about(taint));
            let rules = rules.map(|rule| format!("rule {}: {}", rule.name, facts.why(rule)));
            rules.collect::<Vec<_>>().join("; ")
        });
        Err(format!(
            "instance {} put {taint} on node {node} at {}: {what}. Just before: {}",
            write.instance,
            seconds(at),
            truth.unwrap_or_default(),
        ))
    };
    let rules = moment.rules(revision - 1);
    let governing = governing(&rules, taint, write.before);
    if !moment.was_ever(node, (from, at), revision, wants) {
        if governing.is_some_and(|rule| is_watched_for(moment, rule))
            && has_just_come(moment, write)
        {
            return Ok(());
        }
        return tell(format!("no rule wanted that since {}", seconds(from)));
    }
    let Some(rule) = governing else {
        return Ok(());
    };
    let grace = rule.grace();
    if grace.is_zero() || !was_in_use(moment, node, taint, at, revision) {
        return Ok(());
    }
    let longest = longest_met(moment, write, (at.saturating_sub(grace), at), rule);
    // The controller may measure the unmet time with another clock.
    if longest > age + steps(moment) {
        let longest = seconds(longest);
        return tell(format!(
            "its conditions were met for {longest} of the grace period of {grace:?}"
        ));
    }
    Ok(())
}

/// Whether a rule wants to add the taint to the node.
pub(super) fn wants(facts: &Facts<'_>, taint: &TaintId) -> bool {
    let wants = |rule: &Rule| {
        let is_completed =
            rule.is_bootstrap() && rule.is_completed_on(facts.node) && facts.keeps_revisions(rule);
        rule.adds() && !is_completed && !facts.suspends(rule) && facts.met(rule) != Answer::Yes
    };
    governing(facts.rules, taint, facts.node).is_some_and(|rule| wants(rule))
}

/// Whether something is watched because of a rule. Until that has been observed, new nodes are gated regardless.
fn is_watched_for(moment: &Moment<'_>, rule: &Rule) -> bool {
    let mut conditions = rule.spec.conditions.iter();
    conditions.any(|it| {
        !it.type_.starts_with("resource.") && is_synthesized(&it.type_, &moment.settings.classes)
    })
}

/// Whether the instance that wrote the node may have observed it only just now.
pub(super) fn has_just_come(moment: &Moment<'_>, write: &NodeWrite<'_>) -> bool {
    let states = moment
        .cluster
        .history(&Key::cluster(Kind::Node, write.node()));
    let uid = &write.after["metadata"]["uid"];
    let is_of_it = |object: &serde_json::Value| object["metadata"]["uid"] == *uid;
    let first = states
        .iter()
        .find(|state| state.object.as_ref().is_some_and(|it| is_of_it(it)));
    let cut_off = incidents(moment).filter_map(|(what, _, lasts)| match what {
        Incident::Partition(instance) if instance == write.instance => Some(lasts),
        _ => None,
    });
    let late = LATE + cut_off.max().unwrap_or_default();
    first.is_some_and(|first| write.change.at <= first.at + PROMPTLY + late)
}

/// The longest uninterrupted time, within the given range, in which the node met the rule's conditions, whether or not the rule
/// governed the taint then.
fn longest_met(
    moment: &Moment<'_>,
    write: &NodeWrite<'_>,
    (from, to): (Time, Time),
    rule: &Rule,
) -> Time {
    let node = write.node();
    let first = moment.cluster.at(from).revision();
    let turns = moment.all_turns(node, first, write.change.revision - 1);
    let (mut longest, mut since) = (Time::ZERO, None);
    for (revision, at) in std::iter::once((first, from)).chain(turns) {
        let is_unmet = moment.ask(node, Glances::all(revision), at, |facts| {
            facts.met(rule) != Answer::Yes
        });
        match (is_unmet, since) {
            (Some(true), Some(began)) => {
                longest = longest.max(at.saturating_sub(began));
                since = None;
            }
            (Some(false), None) => since = Some(at),
            // A node that does not exist is not in use.
            _ => {}
        }
    }
    longest.max(since.map_or(Time::ZERO, |began| to.saturating_sub(began)))
}

/// Whether the node lacked the taint for so long that it may have run pods, even if it was observed late.
pub(super) fn was_in_use(
    moment: &Moment<'_>,
    node: &str,
    taint: &TaintId,
    at: Time,
    before: u64,
) -> bool {
    let states = moment.cluster.history(&Key::cluster(Kind::Node, node));
    let states = &states[..states.partition_point(|state| state.revision < before)];
    let Some(uid) = states
        .last()
        .and_then(|it| Some(&it.object.as_ref()?["metadata"]["uid"]))
    else {
        return false;
    };
    let is_of_it = |object: &serde_json::Value| object["metadata"]["uid"] == *uid;
    let (mut without, mut until) = (Time::ZERO, at);
    for state in states.iter().rev() {
        let Some(object) = state.object.as_ref().filter(|it| is_of_it(it)) else {
            break;
        };
        if !taint.is_on(object) {
            without += until.saturating_sub(state.at);
        }
        until = state.at;
    }
    without > longest_age(moment) + PROMPTLY
}
