//! Rules' conditions, evaluated on a node.

use crate::api::ConditionStatus;
use crate::testing::{Builder, at, node, rule, world};

#[test]
fn an_unmet_condition_is_explained_in_words_that_stand_alone() {
    let reported = |reason: &str, message: &str| {
        node("worker-1").condition_with(serde_json::json!({
            "type": "A", "status": "False", "reason": reason, "message": message,
        }))
    };
    for (node, expected) in [
        (reported("", ""), "A is False, must be True"),
        (reported("Why", ""), "A is False, must be True: Why"),
        (reported("", "because"), "A is False, must be True: because"),
    ] {
        let world = world(&node).rule(&rule("r").waits_for("A"));
        assert_eq!(world.write().changes[0].why, expected);
    }
    let misspelt = rule("r").waits_for("daemonset.nodegate.dev/cilium");
    assert_eq!(
        world(&node("worker-1")).rule(&misspelt).write().changes[0].why,
        "nothing makes daemonset.nodegate.dev/cilium, though its prefix is Nodegate's (counts as Unknown, must be True)"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_minimum_and_reasons_decide_how_a_condition_counts() {
    use ConditionStatus::{False, True, Unknown};
    const GPU: &str = "resource.nodegate.dev/nvidia.com/gpu";
    const MIG: &str = "label.nodegate.dev/nvidia.com/mig.config.state";
    let gpus = |amount: &str| node("worker-1").allocatable("nvidia.com/gpu", amount);
    let labelled = |label: &str| gpus("7").label("gpu.count", label);
    let asks = |kind: &str, more: &str| format!("{{type: {kind}, requiredStatus: 'True', {more}}}");
    let eight = asks(GPU, "nodegate: {minimum: 8}");
    let by_label = asks(GPU, "nodegate: {minimumFromLabel: gpu.count}");
    let done = asks("A", "nodegate: {reasons: [Done, Skipped]}");
    let mig = asks(MIG, "nodegate: {values: [success, skipped]}");
    let state = |value: &str| node("worker-1").label("nvidia.com/mig.config.state", value);
    let reported = |status: &str, reason: &str| {
        node("worker-1").condition_with(serde_json::json!({
            "type": "A", "status": status, "reason": reason, "message": "so it is",
        }))
    };
    for (name, node, requirement, current, why) in [
        (
            "too few",
            gpus("7"),
            &eight,
            False,
            "this node has 7 of 8 nvidia.com/gpu to allocate",
        ),
        (
            "none",
            node("worker-1"),
            &eight,
            False,
            "this node has 0 of 8 nvidia.com/gpu to allocate",
        ),
        ("as many", gpus("8"), &eight, True, ""),
        ("more, written otherwise", gpus("8k"), &eight, True, ""),
        (
            "a part of one",
            gpus("7999m"),
            &eight,
            False,
            "this node has 7 of 8 nvidia.com/gpu to allocate",
        ),
        (
            "fewer than the label says",
            labelled("8"),
            &by_label,
            False,
            "this node has 7 of 8 nvidia.com/gpu to allocate",
        ),
        ("as the label says", labelled("7"), &by_label, True, ""),
        (
            "no label",
            gpus("7"),
            &by_label,
            Unknown,
            "this node has no label gpu.count, which says how many are needed",
        ),
        (
            "a label that is no number",
            labelled("many"),
            &by_label,
            Unknown,
            "label gpu.count of this node says how many are needed, and its value 'many' is no number of at least 1",
        ),
        (
            "a label of zero",
            labelled("0"),
            &by_label,
            Unknown,
            "label gpu.count of this node says how many are needed, and its value '0' is no number of at least 1",
        ),
        (
            "fewer than a number that is too many",
            gpus("8"),
            &format!("{{type: {GPU}, requiredStatus: 'False', nodegate: {{minimum: 8}}}}"),
            True,
            "resource.nodegate.dev/nvidia.com/gpu is True, must be False: MinimumReached: this node has 8 \
             nvidia.com/gpu to allocate, at least 8",
        ),
        (
            "an accepted reason",
            reported("True", "Done"),
            &done,
            True,
            "",
        ),
        (
            "another reason",
            reported("True", "Starting"),
            &done,
            Unknown,
            "A is Unknown, must be True: ReasonNotAccepted: it is True for reason 'Starting', and counts only with \
             Done, Skipped",
        ),
        (
            "an accepted reason of another status",
            reported("False", "Done"),
            &done,
            False,
            "A is False, must be True: Done: so it is",
        ),
        (
            "unknown by itself",
            reported("Unknown", "Starting"),
            &done,
            Unknown,
            "A is Unknown, must be True: Starting: so it is",
        ),
        (
            "a default is for a condition that is missing",
            reported("True", "Starting"),
            &asks("A", "defaultStatus: 'True', nodegate: {reasons: [Done]}"),
            Unknown,
            "A is Unknown, must be True: ReasonNotAccepted: it is True for reason 'Starting', and counts only with Done",
        ),
        (
            "a value that is asked for",
            state("success"),
            &mig,
            True,
            "",
        ),
        (
            "another value of a label",
            state("pending"),
            &mig,
            False,
            "label nvidia.com/mig.config.state of this node is 'pending', and counts only with success, skipped",
        ),
        (
            "no label",
            node("worker-1"),
            &mig,
            False,
            "this node has no label nvidia.com/mig.config.state",
        ),
        (
            "a label with any value",
            state("failed"),
            &asks(MIG, ""),
            True,
            "",
        ),
        (
            "another value than one that must not be",
            state("pending"),
            &format!("{{type: {MIG}, requiredStatus: 'False', nodegate: {{values: [failed]}}}}"),
            False,
            "",
        ),
        (
            "another reason of a synthesized condition",
            gpus("8"),
            &asks(GPU, "nodegate: {minimum: 1, reasons: [Other]}"),
            Unknown,
            "resource.nodegate.dev/nvidia.com/gpu is Unknown, must be True: ReasonNotAccepted: it is True for reason \
             'ResourceAllocatable', and counts only with Other",
        ),
    ] {
        let rule = rule("r").spec(&format!("conditions: [{requirement}]"));
        let world = world(&node).rule(&rule);
        let evaluation = &world.plan().outcomes[0];
        assert_eq!(evaluation.findings[0].current, current, "{name}");
        assert_eq!(evaluation.findings[0].observed(), Some(current), "{name}");
        assert_eq!(evaluation.why(), why, "{name}");
        assert_eq!(evaluation.met, why.is_empty(), "{name}");
    }
}

#[test]
fn text_from_others_is_cut_and_fits_one_line() {
    let forged = "x\n2026-01-01T00:00:00Z  INFO taint removed node=\"n\"";
    let of = |reason: &str, message: &str| {
        let node = node("worker-1").condition_with(serde_json::json!({
            "type": "A", "status": "False", "reason": reason, "message": message,
        }));
        let of = rule("r")
            .waits_for("A")
            .waits_for("csidriver.nodegate.dev/a");
        let world = world(&node).rule(&of);
        let repeated = world.write().changes[0].why.clone();
        assert_eq!(world.plan().outcomes[0].why(), repeated);
        repeated
    };
    let why = of("R", forged);
    assert!(
        why.contains("A is False, must be True: R: x\\n2026"),
        "{why}"
    );
    let long = "é".repeat(1 << 19);
    for (reason, message) in [(forged, "m"), ("R", forged), (&long, forged), ("R", &long)] {
        let why = of(reason, message);
        assert!(why.len() < 2000 && !why.contains('\n'), "{why}");
        let others = "CSI driver a is not registered on this node";
        assert!(why.ends_with(others), "nothing else is cut: {why}");
    }
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
