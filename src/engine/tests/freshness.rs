//! While a watch is not known to be current, nothing harmful is done for what depends on it.

use serde_json::json;

use super::{Bench, Input};
use crate::testing::{GATE, NodeBuilder, RuleBuilder, node, rule};
use nodegate_core::condition::Watch;

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn ready(name: &str) -> NodeBuilder {
    node(name).condition("Net", "True")
}

/// The watch shows this network condition of a node.
fn network(bench: &mut Bench, name: &str, status: &str) {
    bench.change(name, |node| {
        node["status"]["conditions"] = json!([{ "type": "Net", "status": status }]);
    });
}

/// An engine that has evaluated these nodes, and to which a watch has shown nothing for too long.
fn blind(rule: &RuleBuilder, nodes: &[NodeBuilder], watch: Watch) -> Bench {
    let mut bench = Bench::new(std::slice::from_ref(rule), nodes);
    bench.silent.push(watch);
    bench.wait(35_000);
    bench
}

#[test]
fn a_watch_that_is_frozen_is_started_again_by_itself_and_a_list_makes_it_current() {
    let mut bench = Bench::new(&[gate()], &[ready("n")]);
    bench.wait(300_000);
    assert_eq!(bench.restarts, 0, "a watch that works is left alone");
    bench.silent.push(Watch::Rules);
    bench.wait(300_000);
    assert!((2..10).contains(&bench.restarts), "{}", bench.restarts);
    bench.restarts = 0;
    bench.take(vec![Input::Restored]);
    assert_eq!(bench.restarts, bench.watches.len(), "everything is listed");
}

#[test]
fn a_guard_lets_no_node_be_gated_while_anything_is_stale() {
    let careful = gate().nodegate("disruption: {}");
    let nodes = ["a", "b", "c"].map(ready);
    let mut bench = blind(&careful, &nodes, Watch::Nodes);
    network(&mut bench, "a", "False");
    bench.wait(15_000);
    assert_eq!(bench.taints("a"), [""; 0]);
    let wake = bench.engine.next_wake();
    assert!(wake > Some(bench.now.monotonic), "it waits for no turn");
    bench.silent.clear();
    bench.wait(15_000);
    assert_eq!(bench.taints("a"), [GATE]);
}

#[test]
fn what_is_still_to_be_gated_after_an_outage_is_gated_at_the_rate_from_zero() {
    let careful = gate().nodegate("disruption: {}");
    let nodes = ["a", "b", "c", "d", "e"].map(ready);
    let mut bench = blind(&careful, &nodes, Watch::Nodes);
    for name in ["a", "b"] {
        network(&mut bench, name, "False");
    }
    bench.wait(60_000);
    bench.silent.clear();
    let gated = |bench: &Bench| {
        let is_gated = |name: &&&str| !bench.taints(name).is_empty();
        ["a", "b"].iter().filter(is_gated).count()
    };
    for (after, expected) in [(9500, 0), (2000, 1), (8000, 1), (3000, 2)] {
        bench.wait(after);
        assert_eq!(gated(&bench), expected, "{after} later");
    }
    for name in ["a", "b"] {
        network(&mut bench, name, "True");
    }
    assert_eq!(gated(&bench), 0, "a release waits for no rate");
}
