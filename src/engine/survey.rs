//! The state of the cluster and the rules for gauges. It is computed when they are scraped, so it costs nothing in between.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cache::Cache;
use super::io::{Now, until};
use super::nodes::{Nodes, tally};
use super::rules::{RuleWork, Rules};
use super::status::{NOT_MADE, OUTSIDE_NAMESPACES, SHUT_OUT, Tally};
use nodegate_core::api::{ConditionStatus, EnforcementMode};
use nodegate_core::condition::Source;
use nodegate_core::guard::Guard;
use nodegate_core::object::Node;
use nodegate_core::plan::Standing;
use nodegate_core::rule::{CompiledSpec, Rule};

#[derive(Debug, Clone, Copy)]
pub struct Gauge {
    pub name: &'static str,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

macro_rules! gauges {
    ($($gauge:ident: $name:literal [$($label:literal),*], $help:literal;)+) => {
        $(pub(super) const $gauge: Gauge = Gauge {
            name: $name,
            labels: &[$($label),*],
            help: $help,
        };)+

        pub const GAUGES: &[Gauge] = &[$($gauge),+];
    };
}

gauges! {
    BUILD_INFO: "node_readiness_build_info" ["version"], "Version of the controller.";
    RULES: "node_readiness_rules_total" [], "Number of rules.";
    RULES_BY_KIND: "node_readiness_rules" ["enforcement_mode", "dry_run"],
        "Accepted rules, by mode and whether they are dry runs.";
    RULE_MATCHED_NODES: "node_readiness_rule_matched_nodes" ["rule"], "Nodes that a rule selects.";
    BLOCKED_NODES: "node_readiness_blocked_nodes" ["rule", "condition"],
        "Nodes that a rule holds because a condition is unmet; with anyOf, only while none is met.";
    NODES_BY_STATE: "node_readiness_nodes_by_state" ["rule", "state"], "Nodes of a rule by state.";
    RULE_NODES: "node_readiness_rule_nodes" ["rule", "state"], "Nodes that a rule holds, and nodes that it has released.";
    LONGEST_HELD: "nodegate_rule_longest_held_seconds" ["rule"],
        "How long the rule has held the node that it has held longest.";
    SYNTHESIZED_CONDITIONS: "nodegate_synthesized_conditions" ["class", "type", "status"],
        "Nodes by class, synthesized condition and status.";
    HELD_BACK_NODES: "nodegate_rule_held_back_nodes" ["rule"],
        "Nodes in use that a rule does not gate because it would gate too many of them as it comes into force.";
    DISRUPTION_WAITING: "nodegate_disruption_waiting" ["rule", "zone"], "Nodes that a rule's disruption limit holds back.";
    DISRUPTION_ZONE_STATE: "nodegate_disruption_zone_state" ["rule", "zone", "state"],
        "1 for the state of a zone under a rule's disruption limit.";
    DAEMON_SETS_SHUT_OUT: "nodegate_rule_daemon_sets_shut_out" ["rule"],
        "DaemonSets that a rule waits for, by name or class, and that do not tolerate its taint.";
    DAEMON_SETS_OUTSIDE: "nodegate_rule_daemon_sets_outside_namespaces" ["rule"],
        "Labelled DaemonSets that a rule does not wait for because their class does not cover their namespace.";
    NOT_ACCEPTED: "nodegate_rule_not_accepted" ["rule"], "1 while a rule cannot be used: its condition Accepted is False.";
    CONDITIONS_NOT_MADE: "nodegate_rule_conditions_not_made" ["rule"],
        "Conditions that a rule waits for and that nothing makes.";
    CONFLICTED: "nodegate_rule_conflicted_nodes" ["rule"], "Nodes of a rule on which another rule governs its taint.";
    STRAY_TAINTS: "nodegate_nodes_with_stray_taints" [],
        "Nodes with a taint that looks like a rule's and that no rule removes.";
    QUEUE_DEPTH: "nodegate_queue_depth" [], "Nodes that wait to be evaluated.";
    WRITES_IN_FLIGHT: "nodegate_writes_in_flight" [], "Writes in flight.";
    WRITE_LIMIT: "nodegate_write_limit" [],
        "How many nodes may be written at a time: fewer while the API server is overloaded.";
    TAINTS_CONTENDED: "nodegate_taints_contended" ["rule"],
        "Taints of a rule that another component keeps changing back on a node.";
    CACHE_OBJECTS: "nodegate_cache_objects" ["kind"], "Objects in the cache.";
    UNREADABLE_OBJECTS: "nodegate_unreadable_objects" ["kind"], "Objects that cannot be parsed.";
    LEADER: "nodegate_leader" [], "1 while this instance leads.";
    SUSPENDED: "nodegate_suspended" [], "1 while all rules are suspended, by flag or by the annotation of the Lease.";
}

/// A value of a gauge, with those of its labels. Several with the same labels add up.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub gauge: &'static str,
    pub labels: Vec<String>,
    pub value: f64,
}

#[derive(Debug, Default)]
pub struct Survey {
    pub readings: Vec<Reading>,
}

impl Survey {
    pub fn read(&mut self, gauge: Gauge, labels: &[&str], value: f64) {
        self.readings.push(Reading {
            gauge: gauge.name,
            labels: labels.iter().map(ToString::to_string).collect(),
            value,
        });
    }

    pub fn count(&mut self, gauge: Gauge, labels: &[&str], number: usize) {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.read(gauge, labels, number.into());
    }

    pub fn of_rules(&mut self, rules: &Rules, nodes: &Nodes, cache: &Cache, now: Now) {
        let works = rules.works.values();
        let works = works.filter_map(|work| Some((work, &*cache.rules.all.get(&work.name)?.rule)));
        let works: Vec<(&RuleWork, &Rule)> = works.collect();
        self.count(RULES, &[], works.len());
        // A node counts once for each condition, even if several rules name it.
        let mut synthesized = BTreeMap::new();
        for (work, rule) in works {
            let name = &*work.name;
            self.count(NOT_ACCEPTED, &[name], rule.trouble().is_some().into());
            let Ok(spec) = &rule.spec else {
                self.count_taints(rule, cache);
                continue;
            };
            let tally = tally(&work.uid, nodes);
            self.of_rule(work, (rule, spec), &tally, now);
            let contended = nodes
                .values()
                .flat_map(|it| it.write.parts.contended(now.monotonic));
            let contended = contended.filter(|it| it.0 == name).count();
            self.count(TAINTS_CONTENDED, &[name], contended);
            if rule.deleting && !spec.dry_run {
                self.count_taints(rule, cache);
            }
            for (place, asked) in spec.conditions.iter().enumerate() {
                if !asked.source.is_synthesized() {
                    continue;
                }
                let class = match asked.source {
                    Source::Class { class, .. } => cache.cluster().classes[class].name.as_str(),
                    _ => "",
                };
                for (node, _, found) in tally.nodes() {
                    let status = found.statuses.get(place).copied().flatten();
                    let key = (class, &*asked.kind, node);
                    synthesized.insert(key, status.unwrap_or(ConditionStatus::Unknown));
                }
            }
        }
        let mut counts: BTreeMap<[&str; 3], usize> = BTreeMap::new();
        for ((class, kind, _), status) in synthesized {
            *counts.entry([class, kind, status.as_str()]).or_default() += 1;
        }
        for (labels, number) in counts {
            self.count(SYNTHESIZED_CONDITIONS, &labels, number);
        }
    }

    /// Counts nodes by their taints, for a deleted or rejected rule, which decides about none, if its node selector is readable.
    fn count_taints(&mut self, rule: &Rule, cache: &Cache) {
        if let Some(reach) = &rule.reach
            && let Some(selector) = &reach.selector
        {
            let nodes = cache.nodes.nodes();
            let selected = nodes.filter(|node| selector.matches(&node.labels));
            let is_held = |node: &&Node| node.taint(&reach.key, reach.effect).is_some();
            let held = selected.clone().filter(is_held).count();
            self.count_nodes(rule, held, selected.count() - held);
        }
    }

    fn count_nodes(&mut self, rule: &Rule, held: usize, released: usize) {
        self.count(RULE_NODES, &[&rule.name, "held"], held);
        self.count(RULE_NODES, &[&rule.name, "released"], released);
    }

    fn of_rule(
        &mut self,
        work: &RuleWork,
        (rule, spec): (&Rule, &CompiledSpec),
        tally: &Tally<'_>,
        now: Now,
    ) {
        let name = &*rule.name;
        let (matched, held) = (tally.matched(), tally.held());
        let (ready, held) = (matched - held, held + tally.lingering());
        let (not_ready, bootstrapping) = match spec.mode {
            EnforcementMode::Continuous => (held, 0),
            EnforcementMode::BootstrapOnly => (0, held),
        };
        let dry_run = if spec.dry_run { "true" } else { "false" };
        self.count(RULES_BY_KIND, &[spec.mode.as_str(), dry_run], 1);
        self.count(RULE_MATCHED_NODES, &[name], matched);
        for (state, number) in [
            ("ready", ready),
            ("not_ready", not_ready),
            ("bootstrapping", bootstrapping),
        ] {
            self.count(NODES_BY_STATE, &[name, state], number);
        }
        let is_governed = |standing| matches!(standing, &Standing::Conflicted { .. });
        let governed = tally.nodes().filter(|it| is_governed(&it.2.standing));
        self.count(CONFLICTED, &[name], governed.count());
        let is_refused = work.first_gating.refused.is_some();
        let held_back = tally.found().filter(|it| is_refused && it.is_held_back());
        self.count(HELD_BACK_NODES, &[name], held_back.count());
        let report = work.guard.as_ref().map(Guard::report);
        for zone in report.iter().flat_map(|report| &report.zones) {
            let (place, state) = (zone.zone.to_string(), zone.state.as_str());
            self.count(DISRUPTION_WAITING, &[name, &place], zone.waiting);
            self.count(DISRUPTION_ZONE_STATE, &[name, &place, state], 1);
        }
        let since = tally.longest_held_since();
        let longest_held = since.map_or(Duration::ZERO, |since| until(now.wall, since));
        self.read(LONGEST_HELD, &[name], longest_held.as_secs_f64());
        // A dry run neither holds nor releases nodes, and keeps nothing out, so no alert is due.
        let left_out = |kind| {
            let findings = work.backing.findings.iter();
            let published = findings.filter(|it| !spec.dry_run && it.is_published_as(kind));
            published.count()
        };
        self.count(DAEMON_SETS_SHUT_OUT, &[name], left_out(SHUT_OUT));
        self.count(DAEMON_SETS_OUTSIDE, &[name], left_out(OUTSIDE_NAMESPACES));
        self.count(CONDITIONS_NOT_MADE, &[name], left_out(NOT_MADE));
        if spec.dry_run {
            return;
        }
        if !rule.deleting {
            self.count_nodes(rule, held, ready);
        }
        for (asked, number) in spec.conditions.iter().zip(tally.blocked(spec)) {
            self.count(BLOCKED_NODES, &[name, &asked.kind], number);
        }
    }
}
