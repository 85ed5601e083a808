//! How the cluster and the rules are doing, as gauges show it: worked out when they are asked for, so that keeping it costs
//! nothing in between.

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

/// How the cluster and the rules are doing.
#[derive(Debug, Default)]
pub struct Survey {
    /// Whether this instance leads.
    pub leads: bool,
    /// Whether all rules are suspended.
    pub suspended: bool,
    /// Nodes that wait to be evaluated.
    pub queue_depth: usize,
    /// Requests under way.
    pub under_way: usize,
    /// How many nodes may be written at a time now.
    pub write_limit: usize,
    /// Objects in the cache by kind.
    pub objects: Vec<(&'static str, usize)>,
    /// Objects that cannot be understood by kind.
    pub unreadable: BTreeMap<&'static str, usize>,
    /// All rules.
    pub rules: Vec<RuleSurvey>,
    /// Nodes by class (empty for what belongs to none), type and status of synthesized conditions.
    pub synthesized: BTreeMap<(Arc<str>, Arc<str>, &'static str), usize>,
}

/// How one rule is doing.
#[derive(Debug, Default)]
pub struct RuleSurvey {
    /// Its name.
    pub rule: Arc<str>,
    /// Nodes that it holds and that it has released; not for a dry run.
    pub held: Option<usize>,
    /// The same of those that it has released.
    pub released: Option<usize>,
    /// Its mode, and whether it is a dry run, unless it cannot be used.
    pub kind: Option<(EnforcementMode, bool)>,
    /// Nodes that it selects, unless it cannot be used.
    pub matched: Option<usize>,
    /// Nodes that it holds for the sake of each of its conditions; not for a dry run.
    pub blocked: Vec<(Arc<str>, usize)>,
    /// Nodes by state, unless the rule cannot be used.
    pub states: Option<[(&'static str, usize); 3]>,
    /// Labelled `DaemonSet`s that do not tolerate the rule's taint.
    pub shut_out: usize,
    /// Those in namespaces that their class does not cover.
    pub outside_namespaces: usize,
    /// How the zones of its disruption guard do.
    pub zones: Option<Report>,
    /// For how long the node that it has held longest has been held.
    pub longest_held: Duration,
    /// Taints that somebody else keeps changing back.
    pub contended: usize,
}

impl Survey {
    /// Takes in how the rules do.
    pub fn of_rules(&mut self, rules: &Rules, nodes: &Nodes, cache: &Cache, now: Now) {
        let mut contended: Map<&str, usize> = Map::default();
        for rule in nodes
            .values()
            .flat_map(|work| work.write.contended(now.monotonic))
        {
            *contended.entry(rule).or_default() += 1;
        }
        // A node counts once for each condition, however many rules name it.
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
    /// The same with the nodes held and released that have the taint and have not, of a rule that decides about no node: it is
    /// being deleted, or cannot be used. None where nobody can read which nodes these are.
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
        let passed_over = |why| work.passed_over.iter().filter(|it| it.why == why).count();
        let since = work.stats.longest_closed_since();
        let kinds = spec.conditions.iter().map(|asked| asked.kind.clone());
        let blocked = kinds.zip(work.stats.blocked(spec));
        Self {
            rule: work.name.clone(),
            // A dry run neither holds a node nor has it released one.
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
            zones: work
                .closures
                .as_ref()
                .map(super::closures::Closures::report),
            longest_held: since.map_or(Duration::ZERO, |since| until(now.wall, since)),
            contended: 0,
        }
    }
}
