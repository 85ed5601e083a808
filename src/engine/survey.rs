//! The state of the cluster and the rules for gauges. It is computed when they are scraped, so it costs nothing in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::cache::Cache;
use super::io::{Now, until};
use super::map::Map;
use super::nodes::Nodes;
use super::rules::{RuleWork, Rules};
use crate::api::{ConditionStatus, EnforcementMode};
use crate::condition::Source;
use crate::guard::Report;
use crate::plan::WhyPassedOver;
use crate::rule::{CompiledSpec, Rule};

/// The state of the cluster and the rules.
#[derive(Debug, Default)]
pub struct Survey {
    /// Whether this instance is the leader.
    pub leads: bool,
    /// Whether all rules are suspended.
    pub suspended: bool,
    /// Nodes waiting for evaluation.
    pub queue_depth: usize,
    /// Requests under way.
    pub under_way: usize,
    /// How many nodes may be written at a time at present.
    pub write_limit: usize,
    /// Objects in the cache by kind.
    pub objects: Vec<(&'static str, usize)>,
    /// Unreadable objects by kind.
    pub unreadable: BTreeMap<&'static str, usize>,
    /// All rules.
    pub rules: Vec<RuleSurvey>,
    /// Nodes by class (empty for conditions of no class), type and status of synthesized conditions.
    pub synthesized: BTreeMap<(Arc<str>, Arc<str>, &'static str), usize>,
}

/// The state of one rule.
#[derive(Debug, Default)]
pub struct RuleSurvey {
    /// Its name.
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
    /// The zones of its disruption guard.
    pub zones: Option<Report>,
    /// The longest time for which it has held any of its held nodes.
    pub longest_held: Duration,
    /// Taint changes that someone else keeps undoing.
    pub contended: usize,
}

impl Survey {
    /// Adds all rules.
    pub fn of_rules(&mut self, rules: &Rules, nodes: &Nodes, cache: &Cache, now: Now) {
        let mut contended: Map<&str, usize> = Map::default();
        for rule in nodes
            .values()
            .flat_map(|work| work.write.contended(now.monotonic))
        {
            *contended.entry(rule).or_default() += 1;
        }
        // A node counts once for each condition, even if several rules name it.
        let mut synthesized = BTreeMap::new();
        for work in rules.works() {
            let Some(cached) = cache.rules().get(&work.name) else {
                continue;
            };
            let Ok(spec) = &cached.rule.spec else {
                let survey = RuleSurvey {
                    rule: work.name.clone(),
                    ..RuleSurvey::default()
                };
                self.rules.push(survey.by_taints(&cached.rule, cache));
                continue;
            };
            let survey = RuleSurvey {
                contended: contended.get(&*work.name).copied().unwrap_or_default(),
                ..RuleSurvey::of(work, spec, now)
            };
            self.rules.push(if cached.rule.deleting && !spec.dry_run {
                survey.by_taints(&cached.rule, cache)
            } else {
                survey
            });
            let classes = cache.cluster().classes;
            let keys: Vec<Option<(Arc<str>, Arc<str>)>> = spec
                .conditions
                .iter()
                .map(|requirement| {
                    let class = match requirement.source {
                        Source::Class { class, .. } => classes[class].name.as_str(),
                        _ => "",
                    };
                    let is_synthesized = requirement.source.is_synthesized();
                    is_synthesized.then(|| (class.into(), requirement.kind.clone()))
                })
                .collect();
            for (node, statuses) in work.stats.all_statuses() {
                for (key, status) in keys.iter().zip(statuses) {
                    if let Some((class, kind)) = key {
                        let status = status.unwrap_or(ConditionStatus::Unknown);
                        synthesized.insert((class.clone(), kind.clone(), node), status);
                    }
                }
            }
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
    /// node. `None` if its node selector is unreadable.
    fn by_taints(self, rule: &Rule, cache: &Cache) -> Self {
        let reach = rule.reach.as_ref();
        let Some((reach, selector)) = reach.and_then(|it| Some((it, it.selector.as_ref()?))) else {
            return self;
        };
        let selected = cache.nodes().filter(|node| selector.matches(&node.labels));
        let (held, released): (Vec<_>, Vec<_>) =
            selected.partition(|node| node.taint(&reach.key, reach.effect).is_some());
        Self {
            held: Some(held.len()),
            released: Some(released.len()),
            ..self
        }
    }

    fn of(work: &RuleWork, spec: &CompiledSpec, now: Now) -> Self {
        let states = work.stats.states(spec.mode);
        let is_live = !spec.dry_run;
        // A dry run keeps nothing out, so no alert is due.
        let passed_over = |why| {
            let them = work.backing.passed_over.iter();
            them.filter(|it| is_live && it.why == why).count()
        };
        let since = work.stats.longest_closed_since();
        let kinds = spec.conditions.iter().map(|asked| asked.kind.clone());
        let blocked = kinds.zip(work.stats.blocked(spec));
        Self {
            rule: work.name.clone(),
            // A dry run neither holds nor releases nodes.
            held: is_live.then_some(states.not_ready + states.bootstrapping),
            released: is_live.then_some(states.ready),
            kind: Some((spec.mode, spec.dry_run)),
            matched: Some(work.stats.matched()),
            blocked: blocked.filter(|_| is_live).collect(),
            states: Some([
                ("ready", states.ready),
                ("not_ready", states.not_ready),
                ("bootstrapping", states.bootstrapping),
            ]),
            shut_out: passed_over(WhyPassedOver::ShutOut),
            outside_namespaces: passed_over(WhyPassedOver::OutsideNamespaces),
            zones: work.gating.as_ref().map(super::gating::Gating::report),
            longest_held: since.map_or(Duration::ZERO, |since| until(now.wall, since)),
            contended: 0,
        }
    }
}
