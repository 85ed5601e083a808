//! Events about nodes that are held for long.

use serde_json::json;

use super::Bench;
use crate::testing::{RuleBuilder, node, rule};

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn network(bench: &mut Bench, condition: &serde_json::Value) {
    bench.change("n", |node| {
        node["status"]["conditions"] = json!([condition]);
    });
}

#[test]
fn why_a_node_is_held_is_told_after_a_minute_and_again_when_it_is_something_else() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    bench.wait(59_000);
    bench.held.clear();
    bench.wait(2000);
    assert_eq!(
        std::mem::take(&mut bench.held),
        [
            "NodeHeld n: Rule 'r' holds this node: Net is not reported (counts as Unknown, must be True)"
        ]
    );
    bench.wait(300_000);
    assert_eq!(std::mem::take(&mut bench.held), [""; 0], "once");
    let down = |message: &str| json!({ "type": "Net", "status": "False", "reason": "Down", "message": message });
    network(&mut bench, &down("no route"));
    bench.wait(1000);
    assert_eq!(
        std::mem::take(&mut bench.held),
        ["NodeHeld n: Rule 'r' holds this node: Net is False, must be True: Down: no route"]
    );
    network(&mut bench, &down("no link"));
    bench.wait(300_000);
    assert_eq!(
        std::mem::take(&mut bench.held),
        [""; 0],
        "it is the same in other words"
    );
    network(&mut bench, &json!({ "type": "Net", "status": "True" }));
    bench.wait(1000);
    bench.held.clear();
    network(&mut bench, &down("again"));
    bench.wait(59_000);
    bench.held.clear();
    bench.wait(2000);
    assert_eq!(
        std::mem::take(&mut bench.held).len(),
        1,
        "held anew, told anew"
    );
}

#[test]
fn what_changes_all_the_time_is_told_once_a_minute_at_most() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    bench.wait(61_000);
    bench.held.clear();
    for reason in ["A", "B", "C", "D"] {
        network(
            &mut bench,
            &json!({ "type": "Net", "status": "False", "reason": reason }),
        );
        bench.wait(10_000);
    }
    assert_eq!(std::mem::take(&mut bench.held), [""; 0]);
    bench.wait(25_000);
    let told = std::mem::take(&mut bench.held);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("must be True: D"), "{told:?}");
}
