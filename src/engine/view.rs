//! The engine's own view of a cluster and what it would do there, for whoever lists the cluster once, or watches it and
//! changes nothing: the same cache, filled by the same inputs, and the same plans. Nothing is written by it, and nothing remembered: it is as
//! a controller that has started just now and doubts nothing of what it has read.

use std::sync::Arc;

use super::cache::{Cache, CachedRule};
use super::closures::Closures;
use super::io::{Effect, Now, Object, Seen};
use super::kind::{Scope, Watch};
use super::map::Map;
use crate::condition::CriticalComponentClass;
use crate::guard::{Limits, Report};
use crate::object::Node;
use crate::plan::{self, ClusterState, NodeHistory, NodePlan, NodeState, PassedOver, StaleKinds};
use crate::repair::Situation;
use crate::rule::{Rule, RuleSet};

/// What is in doubt of lists that were made just now, and what of a node is as good as read once more.
static CERTAIN: StaleKinds = StaleKinds::NONE;
static LOOKED: StaleKinds = StaleKinds::NODE;

/// A cluster as it was listed.
#[derive(Debug)]
pub struct View {
    cache: Cache,
    now: Now,
    limits: Limits,
}

impl View {
    /// Of nothing yet. Every kind has to be listed, though with nothing in it, before there is anything to ask.
    #[must_use]
    pub fn new(
        classes: Vec<CriticalComponentClass>,
        passing_taints: Vec<String>,
        with_karpenter: bool,
        now: Now,
    ) -> Self {
        Self {
            cache: Cache::new(classes, passing_taints, true, with_karpenter, now),
            now,
            limits: Limits::default(),
        }
    }

    /// The controller's limits, for what a rule's `disruption` leaves out, are these instead of the default ones.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The time for which it answers.
    #[must_use]
    pub fn now(&self) -> jiff::Timestamp {
        self.now.wall
    }

    /// Takes in that a list begins.
    pub fn listing(&mut self, watch: Watch) {
        self.cache.see(Seen::Init(watch), self.now);
    }

    /// Takes in an object of a list.
    pub fn put(&mut self, object: Object) {
        self.cache.see(Seen::Apply(object), self.now);
    }

    /// Takes in that a list is complete.
    pub fn listed(&mut self, watch: Watch) {
        // What is newer has been shown by nobody else.
        self.cache.see(Seen::InitDone(watch, 0), self.now);
        let current = Seen::Current(watch, self.now.monotonic, 0);
        self.cache.see(current, self.now);
    }

    /// Takes in that the cluster has no resource of this kind.
    pub fn not_installed(&mut self, watch: Watch) {
        self.cache.see(Seen::NotInstalled(watch), self.now);
    }

    /// Takes in what a watch shows that goes on where a list has ended.
    pub fn see(&mut self, seen: Seen) {
        self.cache.see(seen, self.now);
    }

    /// Answers for this time from now on, once it is made ready again.
    pub fn go_on(&mut self, now: Now) {
        self.now = now;
    }

    /// All rules are suspended, whatever they say, or go on.
    pub fn suspend_all(&mut self, suspends_all: bool) {
        self.cache.suspend_all(suspends_all, self.now.wall);
    }

    /// What has to be listed besides, by what has been listed so far: the `DaemonSet`s that rules name, and their pods.
    pub fn wanted(&mut self) -> Vec<(Watch, Scope)> {
        let orders = self.orders().into_iter();
        let wanted = orders.filter_map(|order| match order {
            Effect::Watch(watch, scope) => Some((watch, scope)),
            _ => None,
        });
        wanted.collect()
    }

    /// The same for whoever watches: what is to be watched from now on, and what no longer.
    pub fn orders(&mut self) -> Vec<Effect> {
        self.cache.take_orders()
    }

    /// Makes it ready to be asked, once everything is listed. Who sees a reporter for the first time takes its word for when it
    /// last wrote.
    pub fn settle(&mut self) {
        self.cache.weigh(self.now);
        let names: Vec<_> = self.cache.node_names().cloned().collect();
        for name in &names {
            self.cache.select_rules(name, self.now.wall);
        }
        self.cache.take_reporters_word(self.now.wall);
    }

    /// What is the same for every node.
    #[must_use]
    pub fn cluster(&self) -> ClusterState<'_> {
        ClusterState {
            doubts: &CERTAIN,
            repair: Situation {
                in_doubt: false,
                settles_at: None,
                headcount: &self.cache,
            },
            ..self.cache.cluster()
        }
    }

    /// What there is of the node of this name, if there is one.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeState<'_>> {
        self.cache.node(name)
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.cache.nodes()
    }

    /// What the controller makes of a node, if there is one of this name.
    #[must_use]
    pub fn plan(&self, name: &str) -> Option<NodePlan<'_>> {
        let history = NodeHistory {
            is_known: false,
            // Whoever has listed everything just now needs no second look, not even at a node whose reporter is silent.
            looked: &LOOKED,
            memories: &[],
            may_close: &[],
            watching_since: self.now.wall,
        };
        let state = self.cache.node(name)?;
        Some(plan::plan(self.cluster(), state, history, self.now.wall))
    }

    /// Why the controller leaves the node of this name as it is, if it does: something about it cannot be understood.
    #[must_use]
    pub fn left_alone(&self, name: &str) -> Option<String> {
        self.cache.left_alone(name).map(ToString::to_string)
    }

    /// Everything that cannot be understood, in words.
    #[must_use]
    pub fn unreadable(&mut self) -> Vec<String> {
        let broken = self.cache.tell_unreadable();
        broken.iter().map(ToString::to_string).collect()
    }

    /// All rules, in the order in which they govern.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        self.cache.cluster().rules
    }

    /// All rules by name, with what their objects say beyond their compiled form.
    #[must_use]
    pub fn cached_rules(&self) -> &Map<Arc<str>, CachedRule> {
        self.cache.rules()
    }

    /// The `DaemonSet`s that a rule passes over though it waits for their class, or for them by name.
    #[must_use]
    pub fn passed_over(&self, rule: &Rule) -> Vec<PassedOver> {
        let spec = rule.spec.as_ref().ok();
        spec.map_or_else(Vec::new, |spec| {
            PassedOver::by_rule(spec, self.cluster(), || self.cache.nodes())
        })
    }

    /// What the disruption guard of a rule says of its nodes as they are, if it has one: as one that has seen nothing before.
    #[must_use]
    pub fn guard(&self, rule: &Rule) -> Option<Report> {
        let mut closures = Closures::for_spec(rule.live(), None, self.limits)?;
        let nodes = self.cache.nodes();
        for (node, plan) in nodes.filter_map(|node| Some((node, self.plan(&node.name)?))) {
            let mut outcomes = plan.outcomes.iter();
            if let Some(outcome) = outcomes.find(|it| it.rule.uid == rule.uid) {
                closures.observe(node, outcome);
            }
        }
        Some(closures.report())
    }
}
