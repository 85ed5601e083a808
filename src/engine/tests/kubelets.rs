//! What a kubelet writes about its own node, which decides nothing about another's.

use serde_json::{Value, json};

use super::{Bench, settings};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, node, rule};
use nodegate_core::condition::Watch;

const ZONE: &str = "topology.kubernetes.io/zone";
const POOL: &str = "karpenter.sh/nodepool";

/// A node of this name that joins in this zone.
type Home = fn(&str, &str) -> NodeBuilder;

/// Everything that places a node among others, as its kubelet writes it.
fn moves(bench: &mut Bench, name: &str, zone: &str) {
    bench.change(name, |node| {
        node["metadata"]["labels"][ZONE] = json!(zone);
        node["metadata"]["labels"][POOL] = json!(zone);
        node["metadata"]["labels"]["karpenter.sh/initialized"] = json!("true");
    });
}

fn in_zone(name: &str, zone: &str) -> NodeBuilder {
    node(name).label(ZONE, zone)
}

fn on_aws(name: &str, zone: &str) -> NodeBuilder {
    let mut node = node(name);
    node.json()["spec"]["providerID"] = json!(format!("aws:///{zone}/i-{name}"));
    node
}

fn repairing(limit: &str) -> RuleBuilder {
    rule("r")
        .waits_for("Net")
        .bootstrap_only()
        .nodegate(&format!(
            "repair: {{readinessTTL: 1m, action: DeleteNodeClaim, maxUnhealthy: {limit}}}"
        ))
}

/// The claim of a node, in a pool and a zone that have the same name.
fn claim_of(node: &str, zone: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("{node}-claim"),
            "uid": format!("{node}-claim-uid"),
            "labels": {POOL: zone, ZONE: zone},
        },
        "status": {"nodeName": node},
    })
}

/// An engine with these nodes of zone `z`, each with a claim. They are late at second 60.
fn joining(rule: &RuleBuilder, names: &[&str]) -> Bench {
    let mut karpenter = settings();
    karpenter.enable_karpenter = true;
    let mut bench = Bench::of(&karpenter);
    for name in names {
        bench.cluster.put(Watch::NodeClaims, claim_of(name, "z"));
    }
    let nodes: Vec<_> = names.iter().map(|name| in_zone(name, "z")).collect();
    bench.begin(std::slice::from_ref(rule), &nodes);
    bench
}

fn deletions(bench: &mut Bench) -> usize {
    let asked = bench.asked();
    asked.iter().filter(|it| it.starts_with("delete")).count()
}

#[test]
fn no_claim_in_a_dead_zone_is_deleted_because_of_a_node_that_names_the_zone() {
    let others: [(&str, Home, bool); 3] = [
        ("with a label alone", in_zone, false),
        ("with a claim", in_zone, true),
        ("on an instance", on_aws, false),
    ];
    for (what, other, has_claim) in others {
        let mut bench = joining(&repairing("100%"), &["a", "b", "c", "d"]);
        bench.wait(30_000);
        if has_claim {
            bench.shows(Watch::NodeClaims, claim_of("m", "y"));
        }
        let now = bench.now.wall;
        bench.sees(&other("m", "y").created(now));
        moves(&mut bench, "m", "z");
        bench.wait(50_000);
        assert_eq!(deletions(&mut bench), 0, "{what}");
    }
}

#[test]
fn no_claim_in_a_dead_zone_is_deleted_because_a_node_has_left_the_zone() {
    let mut bench = joining(&repairing("100%"), &["a", "b", "m"]);
    bench.wait(30_000);
    moves(&mut bench, "m", "y");
    bench.wait(60_000);
    assert_eq!(deletions(&mut bench), 0);
}

#[test]
fn no_claim_in_a_dead_zone_is_deleted_because_a_late_node_says_that_it_has_time_left() {
    for deadline in ["never", "2026-01-01T12:00:00Z"] {
        let mut bench = joining(&repairing("100%"), &["a", "b", "c", "m"]);
        bench.wait(30_000);
        bench.change("m", |node| {
            let key = "nodegate.dev/ready-deadline-r-uid";
            node["metadata"]["annotations"][key] = json!(deadline);
        });
        bench.wait(60_000);
        assert_eq!(deletions(&mut bench), 0, "{deadline}");
    }
}

#[test]
fn claims_are_deleted_whatever_a_late_node_says_of_its_zone_and_pool() {
    for (limit, due) in [("100%", 2), ("50%", 0), ("70%", 2)] {
        let mut bench = joining(&repairing(limit), &["a", "b"]);
        bench.sees(&in_zone("m", "y"));
        bench.sees(&in_zone("n", "y").condition("Net", "True"));
        bench.wait(30_000);
        for name in ["m", "n"] {
            moves(&mut bench, name, "z");
        }
        bench.wait(60_000);
        // Of two nodes of the pool, one may be unhealthy where half of them may.
        assert_eq!(deletions(&mut bench), due, "{limit}");
    }
}

#[test]
fn a_stop_of_a_small_cluster_lasts_whatever_zone_a_node_names() {
    let careful = rule("r").waits_for("Net").nodegate("disruption: {}");
    let homes: [(&str, Home); 3] = [
        ("by its label", in_zone),
        ("by its instance", on_aws),
        ("of no zone", |name, _| node(name)),
    ];
    for (what, home) in homes {
        let names = ["a", "b", "c", "d", "e", "f", "g", "m"];
        let nodes = names.map(|name| home(name, "z").condition("Net", "True"));
        let mut bench = Bench::new(std::slice::from_ref(&careful), &nodes);
        bench.wait(11_000);
        for name in &names[..7] {
            bench.change(name, |node| {
                node["status"]["conditions"] = json!([{ "type": "Net", "status": "False" }]);
            });
        }
        let held = |bench: &Bench| {
            let is_held = |name: &&&str| !bench.taints(name).is_empty();
            names.iter().filter(is_held).count()
        };
        bench.wait(60_000);
        assert_eq!(held(&bench), 1, "{what}: then it stops");
        moves(&mut bench, "m", "y");
        bench.wait(120_000);
        assert_eq!(held(&bench), 1, "{what}");
        // What is healthy does not make another zone so either.
        moves(&mut bench, "m", "z");
        bench.wait(120_000);
        assert_eq!(held(&bench), 1, "{what}");
    }
}
