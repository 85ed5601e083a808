//! The state of the cluster and the rules for gauges. It is computed when they are scraped, so it costs nothing in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::cache::{Cache, CachedRule};
use super::io::{Now, until};
use super::map::Map;
use super::nodes::{Nodes, tally};
use super::rules::{RuleWork, Rules};
use super::status::{OUTSIDE_NAMESPACES, SHUT_OUT, Tally};
use crate::api::{ConditionStatus, EnforcementMode};
use crate::condition::Source;
use crate::guard::{Guard, Report};
use crate::object::Node;
use crate::plan::Standing;
use crate::rule::{CompiledSpec, Rule};

#[derive(Debug, Default)]
pub struct Survey {
    pub leads: bool,
    pub suspended: bool,
    pub queue_depth: usize,
    pub under_way: usize,
    /// How many nodes may be written at a time at present.
    pub write_limit: usize,
    pub objects: Vec<(&'static str, usize)>,
    pub unreadable: BTreeMap<&'static str, usize>,
    /// Nodes with a taint that looks like a rule's and that no rule removes.
    pub stray: usize,
    pub rules: Vec<RuleSurvey>,
    /// Nodes by class (empty for conditions of no class), type and status of synthesized conditions.
    pub synthesized: BTreeMap<(Arc<str>, Arc<str>, &'static str), usize>,
}

#[derive(Debug, Default)]
pub struct RuleSurvey {
    pub rule: Arc<str>,
    /// Nodes that the rule holds; `None` for a dry run.
    pub held: Option<usize>,
    /// Nodes that it has released; `None` for a dry run.
    pub released: Option<usize>,
    /// Its mode, and whether it is a dry run; `None` if the rule is rejected.
    pub kind: Option<(EnforcementMode, bool)>,
    /// Nodes that it selects; `None` if the rule is rejected.
    pub matched: Option<usize>,
    /// Nodes that it holds because of each condition; empty for a dry run.
    pub blocked: Vec<(Arc<str>, usize)>,
    /// Nodes by state; `None` if the rule is rejected.
    pub states: Option<[(&'static str, usize); 3]>,
    /// `DaemonSet`s that the rule waits for, or for their class, and that do not tolerate its taint.
    pub shut_out: usize,
    /// Labelled `DaemonSet`s in namespaces that their class does not cover.
    pub outside_namespaces: usize,
    pub zones: Option<Report>,
    /// The longest time for which it has held any of its held nodes.
    pub longest_held: Duration,
    /// Nodes on which another rule governs its taint.
    pub conflicted: usize,
    /// Taint changes that someone else keeps undoing.
    pub contended: usize,
}

impl Survey {
    pub fn of_rules(&mut self, rules: &Rules, nodes: &Nodes, cache: &Cache, now: Now) {
        let mut contended: Map<&str, usize> = Map::default();
        for rule in nodes
            .values()
            .flat_map(|work| work.write.contended(now.monotonic))
        {
            *contended.entry(rule).or_default() += 1;
        }
        let set = cache.cluster().rules;
        let is_stray = |node: &&Node| !node.deleting && set.stray(node).next().is_some();
        if self.leads {
            self.stray = cache.nodes.nodes().filter(is_stray).count();
        }
        // A node counts once for each condition, even if several rules name it.
        let mut synthesized = BTreeMap::new();
        for work in rules.works.values() {
            let Some(CachedRule { rule, .. }) = cache.rules.all.get(&work.name) else {
                continue;
            };
            let mut survey = RuleSurvey {
                rule: work.name.clone(),
                contended: contended.get(&*work.name).copied().unwrap_or_default(),
                ..RuleSurvey::default()
            };
            let mut decides = false;
            if let Ok(spec) = &rule.spec {
                let tally = tally(&work.uid, nodes);
                survey.add(work, &tally, spec, now);
                decides = !rule.deleting || spec.dry_run;
                for (place, asked) in spec.conditions.iter().enumerate() {
                    if !asked.source.is_synthesized() {
                        continue;
                    }
                    let class: Arc<str> = match asked.source {
                        Source::Class { class, .. } => cache.cluster().classes[class].name.as_str(),
                        _ => "",
                    }
                    .into();
                    for (node, _, found) in tally.nodes() {
                        let status = found.statuses.get(place).copied().flatten();
                        let key = (class.clone(), asked.kind.clone(), node);
                        synthesized.insert(key, status.unwrap_or(ConditionStatus::Unknown));
                    }
                }
            }
            if !decides {
                survey.count_taints(rule, cache);
            }
            self.rules.push(survey);
        }
        for ((class, kind, _), status) in synthesized {
            *self
                .synthesized
                .entry((class, kind, status.as_str()))
                .or_default() += 1;
        }
    }
}

impl RuleSurvey {
    /// Counts nodes as held or released by their taints, for a rule that is being deleted or rejected and so decides about no
    /// node, unless its node selector is unreadable.
    fn count_taints(&mut self, rule: &Rule, cache: &Cache) {
        if let Some(reach) = &rule.reach
            && let Some(selector) = &reach.selector
        {
            let selected = || {
                cache
                    .nodes
                    .nodes()
                    .filter(|node| selector.matches(&node.labels))
            };
            let is_held = |node: &&Node| node.taint(&reach.key, reach.effect).is_some();
            let held = selected().filter(is_held).count();
            self.held = Some(held);
            self.released = Some(selected().count() - held);
        }
    }

    fn add(&mut self, work: &RuleWork, tally: &Tally<'_>, spec: &CompiledSpec, now: Now) {
        let (matched, held) = (tally.matched(), tally.held());
        let (ready, held) = (matched - held, held + tally.lingering());
        let (not_ready, bootstrapping) = match spec.mode {
            EnforcementMode::Continuous => (held, 0),
            EnforcementMode::BootstrapOnly => (0, held),
        };
        self.kind = Some((spec.mode, spec.dry_run));
        self.matched = Some(matched);
        self.states = Some([
            ("ready", ready),
            ("not_ready", not_ready),
            ("bootstrapping", bootstrapping),
        ]);
        let is_governed = |standing| matches!(standing, &Standing::Conflicted { .. });
        let nodes = tally.nodes();
        self.conflicted = nodes.filter(|it| is_governed(&it.2.standing)).count();
        self.zones = work.guard.as_ref().map(Guard::report);
        let since = tally.longest_held_since();
        self.longest_held = since.map_or(Duration::ZERO, |since| until(now.wall, since));
        // A dry run neither holds nor releases nodes, and keeps nothing out, so no alert is due.
        if !spec.dry_run {
            (self.held, self.released) = (Some(held), Some(ready));
            let kinds = spec.conditions.iter().map(|asked| asked.kind.clone());
            self.blocked = kinds.zip(tally.blocked(spec)).collect();
            let passed_over = |kind| {
                let findings = work.backing.findings.iter();
                findings.filter(|it| it.is_published_as(kind)).count()
            };
            self.shut_out = passed_over(SHUT_OUT);
            self.outside_namespaces = passed_over(OUTSIDE_NAMESPACES);
        }
    }
}
