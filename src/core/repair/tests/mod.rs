//! Which nodes are repaired: each safeguard as a named case. `laws` has the laws.

mod laws;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::health::GroupHealth;
use super::verdict::Blocked;
use super::*;
use crate::api::Setback;
use crate::condition::Observations;
use crate::guard::Zone;
use crate::object::{Node, NodeClaim, NodePool, Watched};
use crate::rule::Rule;
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, kept, node, rule};

const POOL: &str = "karpenter.sh/nodepool";

fn repairing(action: &str) -> RuleBuilder {
    rule("gate")
        .bootstrap_only()
        .waits_for("Net")
        .nodegate(&format!("repair: {{readinessTTL: 15m, action: {action}}}"))
}

fn compiled(rule: &RuleBuilder) -> Arc<Rule> {
    Arc::new(rule.build(&[]))
}

/// A node of pool `a` that the kubelet reports Ready, with a deadline at minute 15 under the rule `gate`.
fn overdue(name: &str) -> NodeBuilder {
    node(name)
        .label(POOL, "a")
        .condition("Ready", "True")
        .annotation(&Deadline::key("gate-uid"), &at(900).to_string())
}

fn claim_of(node: &str) -> serde_json::Value {
    json!({
        "metadata": {"name": format!("{node}-claim"), "uid": "u", "labels": {POOL: "a"}},
        "status": {"nodeName": node},
    })
}

fn claim(json: serde_json::Value) -> NodeClaim {
    serde_json::from_value::<Watched<NodeClaim>>(json)
        .unwrap()
        .read()
        .unwrap()
}

/// What a process has seen that saw the node like this first.
fn seen(node: &Node) -> Observations {
    let mut seen = Observations::default();
    seen.see(None, node, &BTreeSet::new(), at(0));
    seen
}

/// A cluster in which every node has a claim.
struct Cluster {
    rule: Arc<Rule>,
    nodes: Vec<Node>,
    /// What this process saw of each node as it joined.
    seen: Vec<Observations>,
    claims: NodeClaims,
}

impl Cluster {
    fn new(rule: &RuleBuilder, nodes: &[NodeBuilder]) -> Self {
        let nodes: Vec<Node> = nodes.iter().map(NodeBuilder::build).collect();
        let mut claims = NodeClaims::default();
        for node in &nodes {
            let mut claim = claim(claim_of(&node.name));
            if let Some(pool) = node.labels.get(POOL) {
                claim.node_pool = Some(pool.as_str().into());
            }
            claims.put(kept(claim));
        }
        Self {
            rule: compiled(rule),
            seen: nodes.iter().map(seen).collect(),
            nodes,
            claims,
        }
    }

    fn census(&self, now: Timestamp) -> Census {
        let nodes = self.nodes.iter().zip(&self.seen);
        let nodes = nodes.map(|(node, seen)| {
            let karpenter = self.claims.of(node);
            (node, karpenter, karpenter.zones(node, seen).home)
        });
        Census::take(nodes, std::slice::from_ref(&self.rule), |_| false, now)
    }

    /// The verdict on a node that is past its deadline at this time; `None` for another.
    fn verdict(&self, index: usize, now: Timestamp) -> Option<Verdict<'_>> {
        let (node, census) = (&self.nodes[index], self.census(now));
        let deadline = Deadline::recorded(node, &self.rule.uid)?;
        let repair = self.rule.live().unwrap().ours.repair.as_ref().unwrap();
        let (rule, karpenter) = ((&*self.rule, repair), self.claims.of(node));
        let zone = karpenter.zones(node, &self.seen[index]).home;
        let is_past = deadline.has_passed(now);
        let before = Before {
            lacks: "Net",
            setback: None,
            now,
        };
        is_past.then(|| judge((node, &zone), rule, true, karpenter, &census, before))
    }
}

#[test]
fn a_node_that_may_work_or_is_on_its_way_is_spared() {
    let initialized = json!({"conditions": [{"type": "Initialized", "status": "True"}]});
    let rebooting = json!({"conditions": [{"type": "Rebooting", "status": "True"}]});
    let forbids = json!({"annotations": {"karpenter.sh/do-not-repair": "true"}});
    let deleting = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let none = || json!({});
    #[rustfmt::skip]
    let cases = [
        (overdue("n").deleting(), none(), none(), "the node is being deleted"),
        (overdue("n").completed("gate-uid"), none(), none(), "this rule has released the node before"),
        (overdue("n").completed("gate"), none(), none(), "this rule has released the node before"),
        (overdue("n").label("karpenter.sh/initialized", "true"), none(), none(), "Karpenter has initialized the node"),
        (overdue("n"), none(), initialized, "Karpenter has initialized the node"),
        (
            overdue("n").annotation("karpenter.sh/do-not-repair", "true"),
            none(),
            none(),
            "annotation karpenter.sh/do-not-repair on the node forbids it",
        ),
        (
            overdue("n").annotation("nodegate.dev/do-not-repair", ""),
            none(),
            none(),
            "annotation nodegate.dev/do-not-repair on the node forbids it",
        ),
        (overdue("n"), forbids, none(), "annotation karpenter.sh/do-not-repair on its NodeClaim forbids it"),
        (overdue("n"), deleting, none(), "its NodeClaim is being deleted"),
        (overdue("n"), none(), rebooting, "Karpenter is rebooting the node"),
        (overdue("n").condition("DrainInProgress", "True"), none(), none(), "the node is in maintenance"),
    ];
    for (node, metadata, status, why) in cases {
        let mut json = claim_of("n");
        json_patch::merge(&mut json["metadata"], &metadata);
        json_patch::merge(&mut json["status"], &status);
        for action in ["None", "Release", "DeleteNodeClaim"] {
            let mut cluster = Cluster::new(&repairing(action), std::slice::from_ref(&node));
            cluster.claims.put(kept(claim(json.clone())));
            match cluster.verdict(0, at(9000)) {
                Some(Verdict::Spare(spared)) => assert_eq!(spared.to_string(), why, "{action}"),
                other => panic!("{why}, {action}: {other:?}"),
            }
        }
    }
}

#[test]
fn too_many_unhealthy_nodes_of_the_pool_hold_repair_back() {
    let healthy = |name: &str| node(name).label(POOL, "a").condition("Ready", "True");
    let young = |name: &str| {
        node(name)
            .label(POOL, "a")
            .annotation(&Deadline::key("gate-uid"), &at(9000).to_string())
    };
    let broken = |name: &str| {
        node(name)
            .label(POOL, "a")
            .completed("another-uid")
            .condition("Ready", "Unknown")
    };
    let lost = |name: &str| {
        node(name)
            .label(POOL, "a")
            .label("karpenter.sh/initialized", "true")
    };
    let elsewhere = |name: &str| broken(name).label(POOL, "b");
    let five = |others: [NodeBuilder; 4]| {
        let [b, c, d, e] = others;
        vec![overdue("n"), b, c, d, e]
    };
    #[rustfmt::skip]
    let cases = [
        ("alone in its pool", vec![overdue("n")], false),
        ("one of five", five([healthy("b"), healthy("c"), healthy("d"), healthy("e")]), false),
        ("a large scale-up", five([young("b"), young("c"), young("d"), young("e")]), false),
        ("another past its time", five([overdue("b"), healthy("c"), healthy("d"), healthy("e")]), true),
        ("another on its way out", five([overdue("b").deleting(), healthy("c"), healthy("d"), healthy("e")]), true),
        ("another that was released and is not Ready", five([broken("b"), healthy("c"), healthy("d"), healthy("e")]), true),
        ("another that Karpenter initialized, without a kubelet", five([lost("b"), healthy("c"), healthy("d"), healthy("e")]), true),
        ("trouble in another pool", five([healthy("b"), healthy("c"), healthy("d"), elsewhere("e")]), false),
    ];
    for (name, nodes, is_blocked) in cases {
        for action in ["DeleteNodeClaim", "Release", "None"] {
            let cluster = Cluster::new(&repairing(action), &nodes);
            let verdict = cluster.verdict(0, at(900));
            let blocked = matches!(verdict, Some(Verdict::Blocked(_)));
            assert_eq!(blocked, is_blocked, "{name}, {action}: {verdict:?}");
        }
    }
}

#[test]
fn a_record_of_a_rule_that_is_gone_or_does_not_repair_counts_for_nothing() {
    let nodes = [overdue("n")];
    for rule in [
        repairing("Release").deleting(),
        repairing("Release").dry_run(),
        rule("gate").bootstrap_only().waits_for("Net"),
    ] {
        let rule = compiled(&rule);
        let nodes: Vec<Node> = nodes.iter().map(NodeBuilder::build).collect();
        let claim = claim(claim_of("n"));
        let karpenter = Karpenter {
            claim: Ok(&claim),
            pool: None,
        };
        let counted = nodes.iter().map(|node| (node, karpenter, Zone::default()));
        let census = Census::take(counted, &[rule], |_| false, at(900));
        assert_eq!(
            census.of(Group::Pool("a")),
            GroupHealth {
                unhealthy: 0,
                total: 1
            }
        );
    }
}

#[test]
fn a_zone_in_which_every_node_that_joins_is_late_is_not_repaired() {
    const ZONE: &str = "topology.kubernetes.io/zone";
    let all = repairing("DeleteNodeClaim, maxUnhealthy: 100%");
    let late = |name: &str| overdue(name).label(ZONE, "z");
    let at_ease = overdue("m").annotation(&Deadline::key("gate-uid"), &at(9000).to_string());
    let says_so = at_ease.clone().label(ZONE, "z");
    let at_ease = at_ease.created(at(100));
    #[rustfmt::skip]
    let cases = [
        ("three are late", vec![late("a"), late("b"), late("c")], true),
        ("two are late", vec![late("a"), late("b")], false),
        ("one has time left", vec![late("a"), late("b"), late("c"), at_ease.clone().label(ZONE, "z")], false),
        ("one only says that it has", vec![late("a"), late("b"), late("c"), says_so], true),
        ("one does not join", vec![late("a"), late("b"), late("c"), node("m").label(ZONE, "z")], true),
        ("another zone's has time left", vec![late("a"), late("b"), late("c"), at_ease], true),
    ];
    for (what, nodes, is_blocked) in cases {
        let cluster = Cluster::new(&all, &nodes);
        let verdict = cluster.verdict(0, at(900)).unwrap();
        let blocked = matches!(verdict, Verdict::Blocked(Blocked::Zone(2 | 3)));
        assert_eq!(blocked, is_blocked, "{what}: {verdict:?}");
    }
}

#[test]
fn a_replacement_that_lacks_the_same_waits_twice_as_long_each_time_and_no_more_than_a_day() {
    use jiff::SignedDuration;
    let first = node("first").created(at(0)).build();
    let mut known = Setback::after(None, (&first, None), None, "Net", at(60));
    let ttl = SignedDuration::from_mins(1);
    let blocks = |known: &Setback, node: &Node, lacks, now| {
        let futile = known.blocks((node, None), lacks, ttl, at(now));
        futile.map(|it| (it.missed, it.until))
    };
    // One of those that joined with it.
    assert_eq!(blocks(&known, &first, "Net", 61), None);
    assert_eq!(
        Setback::after(Some(&known), (&first, None), None, "Net", at(70)),
        known
    );
    let mut created = 61;
    for (missed, wait) in [(1, 120), (2, 240)] {
        let node = node("n").created(at(created)).build();
        let until = created - 1 + wait;
        assert_eq!(
            blocks(&known, &node, "Net", until - 1),
            Some((missed, Some(at(until))))
        );
        assert_eq!(blocks(&known, &node, "Net", until), None);
        assert_eq!(
            blocks(&known, &node, "Other", 0),
            None,
            "something else is missing"
        );
        known = Setback::after(Some(&known), (&node, None), None, "Net", at(until));
        created = until + 1;
    }
    let node = node("n").created(at(created)).build();
    assert_eq!(blocks(&known, &node, "Net", 1_000_000), Some((3, None)));
    let pool = NodePool {
        generation: Some(2),
        ..NodePool::default()
    };
    let changed = known.blocks((&node, Some(&pool)), "Net", ttl, at(created));
    assert_eq!(changed, None, "the pool has changed");
    let other = Setback::after(Some(&known), (&node, None), None, "Other", at(created));
    assert_eq!((&*other.condition, other.missed), ("Other", 0));
    let day = SignedDuration::from_hours(20);
    let first = Setback::after(None, (&first, None), None, "Net", at(0));
    let futile = first.blocks((&node, None), "Net", day, at(1)).unwrap();
    assert_eq!(futile.until, Some(at(24 * 3600)));
}
