//! A read-only engine: the same cache, inputs and plans, for tools that list a cluster once or watch it without changing it. It
//! plans as a controller would that has just started and has complete, current lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::{Broken, Cache, CachedRule};
use super::io::{Effect, Now, Seen};
use super::map::Map;
use super::rules::{guard_for, observe};
use super::settings::Settings;
use super::status::remarks;
use crate::condition::{CriticalComponentClass, Scope, Watch};
use crate::finding::{Backing, Finding};
use crate::guard::{Limits, Report};
use crate::object::Node;
use crate::plan::{self, ClusterState, NodeHistory, NodePlan, NodeState};
use crate::rule::{Rule, RuleSet};

/// Lists that were made just now are not stale.
static CURRENT: BTreeSet<Watch> = BTreeSet::new();

/// What the author of a rule should know of what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RuleRemarks {
    /// What is wrong with it, as in the conditions of the rule's status.
    pub wrong: Vec<Finding>,
    /// What else its author may not expect, as sentences.
    pub notes: Vec<String>,
}

/// A view of a listed cluster.
#[derive(Debug)]
pub(crate) struct View {
    cache: Cache,
    now: Now,
    limits: Limits,
}

impl View {
    /// An empty view. Everything wanted must be listed, even if empty, before plans are made.
    pub(crate) fn new(
        classes: Vec<CriticalComponentClass>,
        passing_taints: Vec<String>,
        now: Now,
    ) -> Self {
        let settings = Settings {
            classes,
            passing_taints,
            publish_conditions: true,
            enable_karpenter: true,
            ..Settings::default()
        };
        Self {
            cache: Cache::new(&settings, now),
            now,
            limits: Limits::default(),
        }
    }

    /// Sets the limits that apply where a rule's `disruption` names none.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub(crate) fn apply(&mut self, seen: Seen) {
        // Whatever has changed, everything is planned anew.
        let _ = self.cache.apply(seen, self.now);
    }

    /// Starts a list.
    pub(crate) fn listing(&mut self, watch: Watch) {
        self.apply(Seen::Init(watch, self.now.monotonic));
    }

    /// Sets the time for plans. Call [`Self::prepare`] again afterwards.
    pub(crate) fn go_on(&mut self, now: Now) {
        self.now = now;
    }

    pub(crate) fn suspend_all(&mut self, suspends_all: bool) {
        let _ = self.cache.suspend_all(suspends_all, self.now.wall);
    }

    /// What must be listed in addition, given what is listed so far.
    pub(crate) fn wanted(&mut self) -> Vec<(Watch, Scope)> {
        let orders = self.orders().into_iter();
        let wanted = orders.filter_map(|order| match order {
            Effect::Watch(watch, scope) => Some((watch, scope)),
            _ => None,
        });
        wanted.collect()
    }

    pub(crate) fn components(&self) -> impl Iterator<Item = (Watch, &Scope)> {
        self.cache.views.of_groups(|group| group.class().is_none())
    }

    /// The watches to start and stop, for callers that watch.
    pub(crate) fn orders(&mut self) -> Vec<Effect> {
        self.cache.views.take_orders()
    }

    /// Prepares for plans, once everything is listed. A reporter that is seen for the first time is trusted about its last
    /// heartbeat.
    pub(crate) fn prepare(&mut self) {
        self.cache.assess_freshness(self.now);
        let names: Vec<_> = self.cache.nodes.names().cloned().collect();
        for name in &names {
            self.cache.select_rules(name, self.now.wall);
        }
        self.cache.trust_reporters(self.now.wall);
    }

    pub(crate) fn cluster(&self) -> ClusterState<'_> {
        ClusterState {
            stale: &CURRENT,
            nodes_as_of: jiff::Timestamp::MAX,
            census: self.cache.census(),
            repair_after: None,
            ..self.cache.cluster()
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<NodeState<'_>> {
        let state = self.cache.node(name)?;
        let knows_rules = true;
        Some(NodeState {
            knows_rules,
            ..state
        })
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        self.cache.nodes.nodes()
    }

    pub(crate) fn plan(&self, name: &str) -> Option<NodePlan<'_>> {
        let history = NodeHistory {
            is_known: false,
            memories: &[],
            may_gate: &[],
            watching_since: self.now.wall,
        };
        let state = self.node(name)?;
        Some(plan::plan(self.cluster(), state, history, self.now.wall))
    }

    /// The unreadable object because of which the controller leaves this node as it is, if there is one.
    pub(crate) fn left_alone(&self, name: &str) -> Option<&Broken> {
        self.cache.stores.unreadable.left_alone(name)
    }

    /// One message for each unreadable object.
    pub(crate) fn unreadable(&mut self) -> Vec<String> {
        let broken = self.cache.stores.unreadable.tell();
        broken.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn rules(&self) -> &RuleSet {
        self.cache.cluster().rules
    }

    /// All rules by name, with their objects' finalizers, status and version.
    pub(crate) fn cached_rules(&self) -> &Map<Arc<str>, CachedRule> {
        &self.cache.rules.all
    }

    /// The CSI drivers that are registered on any node, if the listed rules need them.
    pub(crate) fn csi_drivers(&self) -> impl Iterator<Item = &str> + Clone {
        self.cache.nodes.csi_drivers()
    }

    /// What the author of a rule should know of what it waits for.
    pub(crate) fn remarks(&self, rule: &Rule) -> RuleRemarks {
        let Backing { findings, notes } = self.cache.backing(rule);
        RuleRemarks {
            wrong: remarks(&findings),
            notes,
        }
    }

    /// The report of the rule's disruption guard, if it has one, with no history.
    pub(crate) fn guard(&self, rule: &Rule) -> Option<Report> {
        let mut guard = guard_for(rule.live(), None, self.limits)?;
        let nodes = self.cache.nodes.nodes();
        for (node, plan) in nodes.filter_map(|node| Some((node, self.plan(&node.name)?))) {
            let mut outcomes = plan.outcomes.iter();
            if let Some(outcome) = outcomes.find(|it| it.rule.uid == rule.uid) {
                observe(&mut guard, node, outcome);
            }
        }
        Some(guard.report())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;
    use crate::engine::io::Object;
    use crate::testing::{at, node, rule};

    fn list(view: &mut View, watch: Watch, object: Option<Object>) {
        view.listing(watch);
        if let Some(object) = object {
            view.apply(Seen::Apply(object));
        }
        view.apply(Seen::InitDone(watch));
    }

    #[test]
    fn plans_are_made_for_the_time_that_was_set() {
        let now = |seconds| Now {
            wall: at(seconds),
            monotonic: Instant::now(),
        };
        let rule = rule("r").waits_for("Net");
        let rule = rule.nodegate("heartbeatTimeout: 10m");
        let node = node("n").condition("Net", "True");
        let mut view = View::new(Vec::new(), Vec::new(), now(0));
        for (watch, _) in view.wanted() {
            let object = match watch {
                Watch::Rules => Some(Object::Rule(rule.object())),
                Watch::Nodes => Some(Object::Node(node.object())),
                _ => None,
            };
            list(&mut view, watch, object);
        }
        let mut is_met = |seconds| {
            view.go_on(now(seconds));
            view.prepare();
            view.plan("n").unwrap().outcomes[0].met
        };
        assert!(is_met(1));
        assert!(!is_met(1000), "its reporter is silent");
    }

    #[test]
    fn what_is_unreadable_is_named() {
        let now = Now {
            wall: at(0),
            monotonic: Instant::now(),
        };
        let mut view = View::new(Vec::new(), Vec::new(), now);
        let odd = json!({"metadata": {"name": "n", "uid": "u"}, "status": "up"});
        let odd = Object::Node(serde_json::from_value(odd).unwrap());
        list(&mut view, Watch::Nodes, Some(odd));
        let why =
            r#"Node n cannot be parsed: status: invalid type: string "up", expected struct Status"#;
        assert_eq!(view.unreadable(), [why]);
        let left_alone = view.left_alone("n").map(ToString::to_string);
        assert_eq!(left_alone.as_deref(), Some(why));
    }
}
