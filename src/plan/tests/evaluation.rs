//! Rules' conditions, evaluated on a node.

use crate::api::ConditionStatus;
use crate::plan::Finding;
use crate::testing::{at, daemon_set, node, rule, world};

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn conditions_are_combined_as_the_rule_says() {
    use ConditionStatus::{False, True, Unknown};
    let nodes = || node("worker-1");
    let condition =
        |kind: &str, required: &str| format!("{{type: {kind}, requiredStatus: '{required}'}}");
    let with_default = |kind: &str, required: &str, default: &str| {
        format!("{{type: {kind}, requiredStatus: '{required}', defaultStatus: '{default}'}}")
    };
    let (a, b) = (condition("A", "True"), condition("B", "True"));
    let both = nodes().condition("A", "True").condition("B", "True");
    let one = nodes().condition("A", "True").condition("B", "False");
    let none = nodes().condition("A", "False").condition("B", "Unknown");
    for (name, policy, conditions, node, met, statuses) in [
        (
            "all of two",
            "allOf",
            vec![&a, &b],
            &both,
            true,
            vec![True, True],
        ),
        (
            "one of two",
            "allOf",
            vec![&a, &b],
            &one,
            false,
            vec![True, False],
        ),
        (
            "any of two",
            "anyOf",
            vec![&a, &b],
            &one,
            true,
            vec![True, False],
        ),
        (
            "none of two",
            "anyOf",
            vec![&a, &b],
            &none,
            false,
            vec![False, Unknown],
        ),
        (
            "must be False",
            "allOf",
            vec![&condition("A", "False")],
            &none,
            true,
            vec![False],
        ),
        (
            "must be Unknown",
            "allOf",
            vec![&condition("B", "Unknown")],
            &none,
            true,
            vec![Unknown],
        ),
        ("missing", "allOf", vec![&a], &nodes(), false, vec![Unknown]),
        (
            "missing, and that is what is asked for",
            "allOf",
            vec![&condition("A", "Unknown")],
            &nodes(),
            true,
            vec![Unknown],
        ),
        (
            "missing with a default that will do",
            "allOf",
            vec![&with_default("A", "True", "True")],
            &nodes(),
            true,
            vec![True],
        ),
        (
            "missing with a default that will not do",
            "allOf",
            vec![&with_default("A", "False", "True")],
            &nodes(),
            false,
            vec![True],
        ),
        (
            "a default does not hide what is reported",
            "allOf",
            vec![&with_default("A", "True", "True")],
            &none,
            false,
            vec![False],
        ),
        (
            "a reserved type that nothing makes",
            "allOf",
            vec![&with_default("node.gardener.cloud/Other", "True", "True")],
            &nodes().condition("node.gardener.cloud/Other", "False"),
            true,
            vec![True],
        ),
    ] {
        let list: Vec<_> = conditions
            .iter()
            .map(|condition| condition.as_str())
            .collect();
        let spec = format!(
            "{{conditionPolicy: {policy}, conditions: [{}]}}",
            list.join(", ")
        );
        let world = world(node).rule(&rule("r").spec(&spec));
        let plan = world.plan();
        let evaluation = &plan.outcomes[0].evaluation;
        assert_eq!(evaluation.met, met, "{name}");
        let currents: Vec<_> = evaluation
            .results
            .iter()
            .map(|result| result.current)
            .collect();
        assert_eq!(currents, statuses, "{name}");
        assert_eq!(
            evaluation.misses_a_condition(),
            name.contains("missing") || name.contains("nothing makes"),
            "{name}: misses"
        );
    }
}

#[test]
fn what_is_amiss_is_said_in_words_that_stand_alone() {
    let reported = |reason: &str, message: &str| {
        node("worker-1").condition_with(serde_json::json!({
            "type": "A", "status": "False", "reason": reason, "message": message,
        }))
    };
    for (node, expected) in [
        (
            node("worker-1"),
            "A is not reported (counts as Unknown, must be True)",
        ),
        (reported("", ""), "A is False, must be True"),
        (reported("Why", ""), "A is False, must be True: Why"),
        (reported("", "because"), "A is False, must be True: because"),
        (
            reported("Why", "because"),
            "A is False, must be True: Why: because",
        ),
    ] {
        let world = world(&node).rule(&rule("r").waits_for("A"));
        let plan = world.plan();
        let why: Vec<_> = plan.outcomes[0]
            .evaluation
            .unmet()
            .map(Finding::why)
            .collect();
        assert_eq!(why, [expected]);
        assert_eq!(
            world.write().changes[0].why,
            expected,
            "the change says the same"
        );
    }
    let cni = daemon_set("kube-system/cni")
        .critical()
        .toleration("{operator: Exists}");
    let world = world(&node("worker-1")).daemon_set(&cni).rule(
        &rule("r")
            .waits_for("A")
            .waits_for("node.gardener.cloud/CriticalPodsReady"),
    );
    assert_eq!(
        world.write().changes[0].why,
        "A is not reported (counts as Unknown, must be True); \
         DaemonSet kube-system/cni has no pod on this node"
    );
}

#[test]
fn the_latest_transition_counts() {
    let condition = |kind: &str, time: &str| serde_json::json!({ "type": kind, "status": "False", "lastTransitionTime": time });
    let node = node("worker-1")
        .condition_with(condition("A", "2026-01-01T00:00:10Z"))
        .condition_with(condition("B", "2026-01-01T00:00:20Z"))
        .condition_with(condition("C", "2026-01-01T00:00:30Z"));
    let world = world(&node).rule(&rule("r").waits_for("A").waits_for("B"));
    assert_eq!(world.write().changes[0].transition, Some(at(20)));
}
