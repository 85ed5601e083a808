//! A read-only engine: the same cache, inputs and plans, for tools that list a cluster once or watch it without changing it. It
//! plans as a controller would that has just started and has complete, current lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::cache::{Broken, Cache, CachedRule};
use super::io::{Effect, Now, Seen};
use super::map::Map;
use super::rules::{guard_for, observe};
use super::settings::Settings;
use super::status::{Found, HELD_BACK, remarks, says, would_gate};
use nodegate_core::condition::{CriticalComponentClass, Observations, Source, Watch};
use nodegate_core::finding::Backing;
use nodegate_core::guard::{Guard, Limits, Report};
use nodegate_core::object::{Kept, Node};
use nodegate_core::plan::{self, ClusterState, NodeHistory, NodePlan, NodeState};
use nodegate_core::repair::{Karpenter, NoClaim};
use nodegate_core::rule::{RequiredCondition, Rule, RuleSet, WouldGate};
use nodegate_core::selector::Filter;
use nodegate_core::text::enumerated;

/// Lists that were made just now are not stale.
static CURRENT: BTreeSet<Watch> = BTreeSet::new();

#[derive(Debug)]
pub struct Forecast {
    cache: Cache,
    /// The time of plans. Call [`Self::prepare`] after it has changed.
    pub now: Now,
    /// The limits that apply where a rule's `disruption` names none.
    pub limits: Limits,
    /// UIDs of the rules of which their status says that they are held back.
    held_back: Vec<Arc<str>>,
}

impl Forecast {
    /// An empty view. Everything wanted must be listed, even if empty, before plans are made.
    pub fn new(classes: Vec<CriticalComponentClass>, passing: Vec<String>, now: Now) -> Self {
        let settings = Settings {
            classes,
            passing_taints: passing,
            publish_conditions: true,
            enable_karpenter: true,
            ..Settings::default()
        };
        Self {
            cache: Cache::new(&settings, now),
            now,
            limits: Limits::default(),
            held_back: Vec::new(),
        }
    }

    pub fn apply(&mut self, seen: Seen) {
        self.cache.apply(seen, self.now);
    }

    pub fn listing(&mut self, watch: Watch) {
        self.apply(Seen::Init(watch, self.now.monotonic));
    }

    pub fn suspend_all(&mut self, suspends_all: bool) {
        self.cache.suspend_all(suspends_all, self.now.wall);
    }

    /// What must be listed in addition, given what is listed so far.
    pub fn wanted(&mut self) -> Vec<(Watch, Filter)> {
        let orders = self.orders().into_iter();
        let wanted = orders.filter_map(|order| match order {
            Effect::Watch(watch, scope) => Some((watch, scope)),
            _ => None,
        });
        wanted.collect()
    }

    /// The watches of components that rules ask for.
    pub fn components(&self) -> impl Iterator<Item = (Watch, &Filter)> {
        self.cache.views.of_groups(|group| group.class().is_none())
    }

    /// The watches to start and stop, for callers that watch.
    pub fn orders(&mut self) -> Vec<Effect> {
        self.cache.views.take_orders()
    }

    /// Prepares for plans, once everything is listed. A reporter seen for the first time is trusted about its last heartbeat.
    pub fn prepare(&mut self) {
        self.cache.freshness.assess(&self.cache.views, self.now);
        let names: Vec<_> = self.cache.nodes.names().cloned().collect();
        for name in &names {
            self.cache.select_rules(name, self.now.wall);
        }
        self.cache.trust_reporters(self.now.wall);
        let rules = self.cache.rules.all.values();
        let held_back = rules.filter(|it| says(&it.object.status, HELD_BACK, it.rule.generation));
        self.held_back = held_back.map(|it| it.rule.uid.clone()).collect();
    }

    pub fn cluster(&self) -> ClusterState<'_> {
        ClusterState {
            stale: &CURRENT,
            nodes_as_of: Timestamp::MAX,
            census: self.cache.freshness.census.as_ref(),
            repair_after: None,
            ..self.cache.cluster()
        }
    }

    pub fn node(&self, name: &str) -> Option<NodeState<'_>> {
        Some(NodeState {
            knows_rules: true,
            ..self.cache.node(name)?
        })
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        self.cache.nodes.nodes()
    }

    pub fn plan(&self, name: &str) -> Option<NodePlan<'_>> {
        let (state, now) = (self.node(name)?, self.now.wall);
        let history = NodeHistory {
            held_back: &self.held_back,
            ..first_sight(now)
        };
        Some(plan::plan(self.cluster(), state, history, now))
    }

    /// The unreadable object because of which the controller leaves this node as it is, if there is one.
    pub fn left_alone(&self, name: &str) -> Option<&Broken> {
        self.cache.stores.unreadable.left_alone(name)
    }

    pub fn unreadable(&mut self) -> Vec<Broken> {
        self.cache.stores.unreadable.tell()
    }

    pub fn rules(&self) -> &RuleSet {
        self.cache.cluster().rules
    }

    pub fn cached_rules(&self) -> &Map<Arc<str>, CachedRule> {
        &self.cache.rules.all
    }

    /// The CSI drivers that are registered on any node, if the listed rules need them.
    pub fn csi_drivers(&self) -> impl Iterator<Item = &str> + Clone {
        self.cache.nodes.csi_drivers()
    }

    /// What the author of a rule should know of what it waits for; the findings are as in the conditions of the rule's status.
    pub fn remarks(&self, rule: &Rule) -> Backing {
        let (backing, _) = self.cache.backing(rule);
        Backing {
            findings: remarks(&backing.findings),
            ..backing
        }
    }

    /// Why the rule would be held back if it came into force now; `None` if it would not be.
    pub fn holds_back(&self, rule: &Rule) -> Option<String> {
        let limit = self.limits.first(rule.live()?.ours.disruption.as_ref())?;
        let would_gate = self.would_gate(rule, self.cluster());
        would_gate
            .exceeds(limit)
            .then(|| would_gate.held_back(limit))
    }

    /// What the rule would gate once those that govern its taint now are gone; `None` if none do, or it would gate no node.
    pub fn succeeds(&self, rule: &Rule) -> Option<String> {
        let (known, governors) = (self.rules(), self.rules().governors_of(rule));
        let others = known.rules().iter();
        let others = others.filter(|it| !governors.contains(&it.name)).cloned();
        let mut rules = RuleSet::new(others, known.passing.configured.clone());
        rules.beating.clone_from(&known.beating);
        let cluster = ClusterState {
            rules: &rules,
            ..self.cluster()
        };
        let mut would_gate = self.would_gate(rule, cluster);
        would_gate.limit = self.limits.first(rule.live()?.ours.disruption.as_ref());
        let gone = enumerated(governors.iter().map(|name| format!("'{name}'")));
        (!governors.is_empty() && would_gate.gated > 0)
            .then(|| format!("once it governs the taint in place of {gone}, {would_gate}"))
    }

    /// What the rule would gate if it came into force now, beside these rules.
    fn would_gate<'a>(&self, rule: &'a Rule, cluster: ClusterState<'_>) -> WouldGate<'a> {
        let history = NodeHistory {
            held_back: std::slice::from_ref(&rule.uid),
            ..first_sight(self.now.wall)
        };
        let found = self.cache.nodes.names().filter_map(|name| {
            let state = self.node(name)?;
            let selecting = &cluster.rules.matching(state.node, |_| None);
            let state = NodeState { selecting, ..state };
            let plan = plan::plan(cluster, state, history, self.now.wall);
            plan.outcome_of(&rule.uid).map(Found::of)
        });
        let found: Vec<_> = found.collect();
        would_gate(rule, found.len(), found.iter())
    }

    /// The report of the rule's disruption guard, if it has one, with no history.
    pub fn guard(&self, rule: &Rule) -> Option<Report> {
        let mut guard = guard_for(rule.live()?, Guard::default(), self.limits)?;
        let names = self.cache.nodes.names();
        for (state, plan) in names.filter_map(|name| self.node(name).zip(self.plan(name))) {
            if let Some(outcome) = plan.outcome_of(&rule.uid) {
                observe(&mut guard, state, outcome);
            }
        }
        Some(guard.report())
    }
}

/// The history of a controller that has just started.
fn first_sight(now: Timestamp) -> NodeHistory<'static> {
    NodeHistory {
        watching_since: now,
        ..NodeHistory::default()
    }
}

/// Which of these selected nodes a rule would gate as soon as it acts; `None` if none. Where that depends on more than the nodes, as
/// many as it could be.
pub fn foresee(
    rule: &Rule,
    nodes: &[Kept<Node>],
    passing_taints: Vec<String>,
    limits: Limits,
    now: Timestamp,
) -> Option<String> {
    let spec = rule.spec.as_ref().ok().filter(|spec| !spec.dry_run)?;
    let mut seen = spec.clone();
    let is_unseen = |it: &&mut RequiredCondition| {
        use Source::{Label, Nobody, Node, Resource};
        !matches!(it.source, Node | Nobody | Resource(_) | Label(_))
    };
    let mut at_most = false;
    for condition in seen.conditions.iter_mut().filter(is_unseen) {
        (condition.source, condition.default, condition.minimum) = (Source::Nobody, None, None);
        at_most = true;
    }
    // A dry run needs no finalizer.
    seen.dry_run = true;
    let rule = Arc::new(Rule {
        spec: Ok(seen),
        in_force_since: Some(now),
        ..rule.clone()
    });
    let rules = RuleSet::new([rule.clone()], passing_taints);
    let (daemon_sets, pods, slices) = Default::default();
    let observations = Observations::default();
    let cluster = ClusterState {
        classes: &[],
        named: &[],
        daemon_sets: &daemon_sets,
        rules: &rules,
        publish_conditions: false,
        stale: &CURRENT,
        unseen: &CURRENT,
        nodes_as_of: Timestamp::MAX,
        census: None,
        repair_after: None,
    };
    let found = nodes.iter().filter_map(|node| {
        let state = NodeState {
            node,
            csi_node: None,
            pods: &pods,
            slices: &slices,
            selecting: &[0],
            observations: &observations,
            joined: None,
            knows_rules: true,
            karpenter: Karpenter::without(NoClaim::Disabled),
        };
        let plan = plan::plan(cluster, state, first_sight(now), now);
        plan.outcomes.first().map(Found::of)
    });
    let found: Vec<_> = found.collect();
    let mut would_gate = would_gate(&rule, nodes.len(), found.iter());
    would_gate.at_most = at_most;
    would_gate.limit = limits.first(spec.ours.disruption.as_ref());
    (would_gate.gated > 0).then(|| would_gate.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;
    use crate::io::Object;
    use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, kept, node, rule};
    use nodegate_core::config::Config;

    fn list(view: &mut Forecast, watch: Watch, objects: impl IntoIterator<Item = Object>) {
        view.listing(watch);
        for object in objects {
            view.apply(Seen::Apply(object));
        }
        view.apply(Seen::InitDone(watch));
    }

    fn now(seconds: i64) -> Now {
        Now {
            wall: at(seconds),
            monotonic: Instant::now(),
        }
    }

    /// What is foreseen of this rule and these nodes at this time.
    fn forecast(rule: &RuleBuilder, nodes: &[NodeBuilder], now: Now) -> Forecast {
        let mut view = Forecast::new(Vec::new(), Vec::new(), now);
        for (watch, _) in view.wanted() {
            let objects = match watch {
                Watch::Rules => vec![Object::Rule(rule.object())],
                Watch::Nodes => nodes.iter().map(|it| Object::Node(it.object())).collect(),
                _ => Vec::new(),
            };
            list(&mut view, watch, objects);
        }
        view.prepare();
        view
    }

    #[test]
    fn plans_are_made_for_the_time_that_was_set() {
        let rule = rule("r").waits_for("Net");
        let rule = rule.nodegate("heartbeatTimeout: 10m");
        let net = json!({"type": "Net", "status": "True", "lastTransitionTime": at(-9), "lastHeartbeatTime": at(0)});
        let node = node("n").condition_with(net);
        let mut view = forecast(&rule, &[node], now(0));
        let mut is_met = |seconds| {
            view.now = now(seconds);
            view.prepare();
            view.plan("n").unwrap().outcomes[0].met
        };
        assert!(is_met(1));
        assert!(!is_met(1000), "its reporter is silent");
    }

    #[test]
    fn a_reporter_that_is_seen_for_the_first_time_is_trusted_about_its_last_heartbeat() {
        let rule = rule("r").waits_for("Net");
        let rule = rule.nodegate("heartbeatTimeout: 10m");
        let net = json!({"type": "Net", "status": "True", "lastTransitionTime": at(-9), "lastHeartbeatTime": at(0)});
        for (seconds, is_met) in [(500, true), (1000, false)] {
            let node = node("n").condition_with(net.clone());
            let view = forecast(&rule, &[node], now(seconds));
            let met = view.plan("n").unwrap().outcomes[0].met;
            assert_eq!(met, is_met, "{seconds}");
        }
    }

    #[test]
    fn a_rule_that_would_gate_too_many_nodes_at_once_is_known_to_be_held_back() {
        let rule = rule("r").waits_for("Net");
        let rule = rule.nodegate("disruption: {maxFirstGated: 10%, evictionRate: 0.1}");
        let met = node("met").condition("Net", "True");
        for (unmet, is_held_back) in [("abc", false), ("abcd", true)] {
            let lacking = unmet.chars().map(|name| node(&name.to_string()));
            let nodes: Vec<_> = lacking.chain([met.clone()]).collect();
            let view = forecast(&rule, &nodes, now(3600));
            let rule = &view.rules().rules()[0];
            assert_eq!(view.holds_back(rule).is_some(), is_held_back, "{unmet}");
            let report = view.guard(rule).unwrap();
            assert_eq!(report.unmet, unmet.len());
        }
    }

    #[test]
    fn unreadable_objects_are_named() {
        let mut view = Forecast::new(Vec::new(), Vec::new(), now(0));
        let odd = json!({"metadata": {"name": "n", "uid": "u"}, "status": "up"});
        let odd = Object::Node(serde_json::from_value(odd).unwrap());
        list(&mut view, Watch::Nodes, Some(odd));
        let why =
            r#"Node n cannot be parsed: status: invalid type: string "up", expected struct Status"#;
        assert_eq!(view.unreadable()[0].to_string(), why);
        let left_alone = view.left_alone("n").map(ToString::to_string);
        assert_eq!(left_alone.as_deref(), Some(why));
    }

    fn count(rule: &RuleBuilder, nodes: &[NodeBuilder]) -> Option<String> {
        let rule = rule.build(&Config::default().classes().unwrap());
        let nodes: Vec<_> = nodes.iter().map(|node| kept(node.build())).collect();
        let text = foresee(&rule, &nodes, Vec::new(), Limits::default(), at(200))?;
        Some(text.split(" selected").next().unwrap().to_owned())
    }

    #[test]
    fn nodes_that_are_not_held_and_do_not_meet_the_conditions_are_counted() {
        let gate = || rule("r").created(at(100)).bootstrap_only().waits_for("Net");
        let nodes = [
            node("met").condition("Net", "True"),
            node("unmet").condition("Net", "False"),
            node("silent"),
            node("held").taint(GATE, "NoSchedule"),
            node("done").completed("r-uid"),
            node("going").deleting(),
            node("new").created(at(100)),
        ];
        #[rustfmt::skip]
        let cases = [
            ("bootstrap-only", gate(), Some("3 of 7")),
            ("continuous", gate().spec("enforcementMode: continuous"), Some("4 of 7")),
            ("leaves those that are older", gate().nodegate("existingNodes: Leave"), Some("1 of 7")),
            (
                "with another reason",
                gate().spec("conditions: [{type: Net, requiredStatus: 'True', nodegate: {reasons: [Done]}}]"),
                Some("4 of 7"),
            ),
            ("with components", gate().waits_for("node.gardener.cloud/CriticalPodsReady"), Some("up to 4 of 7")),
            ("of components alone", rule("r").waits_for("node.gardener.cloud/CriticalPodsReady"), Some("up to 5 of 7")),
            ("a dry run", gate().dry_run(), None),
            ("suspended", gate().nodegate("suspend: true"), None),
            ("remove-only", gate().remove_only(), None),
            ("with a grace period", rule("r").waits_for("Net").nodegate("gracePeriod: 1m"), None),
            ("with a limit", rule("r").waits_for("Net").nodegate("disruption: {}"), None),
            ("any of them", rule("r").waits_for("Net").waits_for("Other").spec("conditionPolicy: anyOf"), Some("4 of 7")),
            (
                "any of them, not all seen",
                rule("r")
                    .waits_for("Net")
                    .waits_for("csidriver.nodegate.dev/a")
                    .spec("conditionPolicy: anyOf"),
                Some("up to 4 of 7"),
            ),
        ];
        for (name, rule, expected) in cases {
            assert_eq!(count(&rule, &nodes).as_deref(), expected, "{name}");
        }
        assert_eq!(count(&gate(), &nodes[..1]), None, "nobody");
    }
}
