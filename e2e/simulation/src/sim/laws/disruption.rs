//! A rule with `spec.nodegate.disruption` gates no more nodes in use of a zone than its rates allow, in any window of time. It gates
//! none while no node at all meets its conditions, or while most nodes of a small zone do not; and never one in maintenance, which
//! does not count as unmet either.
//!
//! A window of length `t` allows: the initial token; `rate * t`; one token granted before the window and spent within it, as a
//! refused write is retried; and one for each further process, which starts with a token of its own. Writes arrive with varying
//! delays after their grant, so the window counts as longer by that.

use std::collections::BTreeSet;

use nodegate_core::guard::Limits;

use super::bootstrap::owners;
use super::gatings::was_in_use;
use super::rule::{Rule, TaintId, is_in_maintenance};
use super::truth::Answer;
use super::{NodeWrite, Process, longest_age, process, seconds};
use crate::Kind;
use crate::sim::law::{Law, Moment};
use crate::sim::process::LONGEST_FLIGHT;
use crate::sim::time::Time;

#[derive(Default)]
pub(super) struct Disruption {
    gatings: Vec<Gating>,
}

struct Gating {
    rule: String,
    zone: [String; 2],
    at: Time,
    process: Process,
}

impl Disruption {
    /// Compares the last gating with those before it.
    fn judge(&self, rate: f64) -> Result<(), String> {
        let Some(last) = self.gatings.last() else {
            return Ok(());
        };
        let is_like_it = |it: &&Gating| it.rule == last.rule && it.zone == last.zone;
        let like_it: Vec<&Gating> = self.gatings.iter().filter(is_like_it).collect();
        for first in 0..like_it.len() {
            let window = &like_it[first..];
            let processes: BTreeSet<_> = window.iter().map(|it| it.process).collect();
            let lasts = last.at.saturating_sub(window[0].at);
            let tokens = rate * (lasts + LONGEST_FLIGHT).as_secs_f64();
            let Ok(most) = u16::try_from(1 + processes.len()) else {
                continue;
            };
            #[allow(clippy::cast_precision_loss, reason = "a schedule has few nodes")]
            if window.len() as f64 > f64::from(most) + tokens + 1e-6 {
                return Err(format!(
                    "rule {} gated {} nodes of zone {:?} in {} until {}, at {rate} a second",
                    last.rule,
                    window.len(),
                    last.zone,
                    seconds(lasts),
                    seconds(last.at),
                ));
            }
        }
        Ok(())
    }
}

impl Law for Disruption {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for write in NodeWrite::new(moment) {
            for taint in write.added() {
                let Some(rule) = guarded(moment, &write, &taint) else {
                    continue;
                };
                let (at, revision) = (write.change.at, write.change.revision);
                if !was_in_use(moment, write.node(), &taint, at, revision) {
                    continue;
                }
                let why = if is_halted(moment, &write, &rule) {
                    Some("and no node has met its conditions")
                } else if was_in_maintenance(moment, &write) {
                    Some("which has been in maintenance")
                } else if is_stopped(moment, &write, &rule) {
                    Some("and most nodes of its zone have not met its conditions")
                } else {
                    None
                };
                if let Some(why) = why {
                    let (rule, node) = (&rule.name, write.node());
                    let (at, age) = (seconds(at), seconds(longest_age(moment)));
                    return Err(format!(
                        "rule {rule} gated node {node} at {at}, {why} for {age}"
                    ));
                }
                self.gatings.push(Gating {
                    rule: rule.name.clone(),
                    zone: zone(write.before),
                    at,
                    process: process(moment, write.instance),
                });
                self.judge(rate(moment, &rule))?;
            }
        }
        Ok(())
    }
}

/// The guarded rule whose taint was added.
fn guarded(moment: &Moment<'_>, write: &NodeWrite<'_>, taint: &TaintId) -> Option<Rule> {
    let owners = owners(write.after, taint);
    let first = moment
        .cluster
        .at(write.change.at.saturating_sub(longest_age(moment)))
        .revision();
    // A stale watch may still show the rule without its limits.
    let as_of = |revision| {
        let mut rules = moment.rules(revision).into_iter();
        rules.find(|rule| owners.contains(&rule.uid.as_str()) && rule.ours.guard().is_some())
    };
    as_of(first)?;
    as_of(write.change.revision - 1).map(|rule| (*rule).clone())
}

/// Whether no node met the rule's conditions during the whole maximum age of evidence.
fn is_halted(moment: &Moment<'_>, write: &NodeWrite<'_>, rule: &Rule) -> bool {
    let (at, revision) = (write.change.at, write.change.revision);
    let from = at.saturating_sub(longest_age(moment));
    let first = moment.cluster.at(from).revision();
    let now = moment.cluster.as_of(revision - 1).objects(Kind::Node);
    let then = moment.cluster.as_of(first).objects(Kind::Node);
    let names: BTreeSet<&str> = now.chain(then).map(|(key, _)| key.name.as_str()).collect();
    !names.into_iter().any(|node| {
        moment.was_ever(node, (from, at), revision, |facts| {
            rule.selects(facts.node) && facts.met(rule) != Answer::No
        })
    })
}

/// Whether the node was in maintenance during the whole maximum age of evidence.
fn was_in_maintenance(moment: &Moment<'_>, write: &NodeWrite<'_>) -> bool {
    let (at, revision) = (write.change.at, write.change.revision);
    let period = (at.saturating_sub(longest_age(moment)), at);
    !moment.was_ever(write.node(), period, revision, |facts| {
        !is_in_maintenance(facts.node)
    })
}

/// Whether the node's zone was small and partially disrupted during the whole maximum age of evidence: more than two of its
/// nodes, and at least the rule's threshold, did not meet the rule's conditions, while others did.
fn is_stopped(moment: &Moment<'_>, write: &NodeWrite<'_>, rule: &Rule) -> bool {
    let (at, revision) = (write.change.at, write.change.revision);
    let from = at.saturating_sub(longest_age(moment));
    let first = moment.cluster.at(from).revision();
    let (now, then) = (
        moment.cluster.as_of(revision - 1),
        moment.cluster.as_of(first),
    );
    let here = zone(write.before);
    let taint = rule.taint();
    let (mut all, mut met, mut unmet) = (BTreeSet::new(), 0_usize, 0_usize);
    for (key, node) in now.objects(Kind::Node).chain(then.objects(Kind::Node)) {
        if zone(node) != here || !all.insert(&key.name) {
            continue;
        }
        let uid = |node: &serde_json::Value| node["metadata"]["uid"].clone();
        let (Some(was), Some(is)) = (then.get(key), now.get(key)) else {
            continue;
        };
        if uid(was) != uid(is) || !was_in_use(moment, &key.name, &taint, from, first + 1) {
            continue;
        }
        let was_ever = |answer: Answer| {
            moment.was_ever(&key.name, (from, at), revision, |facts| {
                let counts = answer == Answer::Yes || !is_in_maintenance(facts.node);
                !rule.selects(facts.node) || facts.met(rule) != answer || !counts
            })
        };
        met += usize::from(!was_ever(Answer::Yes));
        unmet += usize::from(!was_ever(Answer::No));
    }
    let limits = Limits::of(
        &rule.ours.disruption.unwrap_or_default(),
        moment.settings.disruption_limits,
    );
    #[allow(clippy::cast_precision_loss, reason = "a schedule has few nodes")]
    let share = unmet as f64 / all.len() as f64;
    met > 0
        && unmet > 2
        && share >= limits.unhealthy_zone_threshold
        && all.len() <= limits.large_cluster_size_threshold
}

/// The highest rate the rule ever had, in nodes per second.
fn rate(moment: &Moment<'_>, rule: &Rule) -> f64 {
    let limits = &moment.settings.disruption_limits;
    let rates = moment
        .all_rules()
        .filter(|it| it.uid == rule.uid)
        .map(|rule| {
            let own = rule.ours.disruption.unwrap_or_default();
            let normal = own.eviction_rate.unwrap_or(limits.eviction_rate);
            normal.max(
                own.secondary_eviction_rate
                    .unwrap_or(limits.secondary_eviction_rate),
            )
        });
    rates.fold(0.0, f64::max)
}

pub(super) fn zone(node: &serde_json::Value) -> [String; 2] {
    ["region", "zone"].map(|part| {
        let labels = &node["metadata"]["labels"];
        let old = labels[format!("failure-domain.beta.kubernetes.io/{part}")].as_str();
        let label = old.or_else(|| labels[format!("topology.kubernetes.io/{part}")].as_str());
        label.unwrap_or_default().to_owned()
    })
}
