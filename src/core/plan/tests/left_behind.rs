//! What another controller's invalid rules leave on nodes. Upstream's CRD accepts such rules.

use super::{NETWORK, assert_writes, gate, gated, gated_by, met, unmet};
use crate::testing::{Builder, RuleBuilder, at, rule};

/// Invalid rules that upstream's CRD accepts, each with the gate's taint.
fn unusable() -> [(&'static str, RuleBuilder); 4] {
    let default =
        format!("conditions: [{{type: {NETWORK}, requiredStatus: 'True', defaultStatus: 'True'}}]");
    [
        (
            "anyOf",
            gate("r").bootstrap_only().spec("conditionPolicy: anyOf"),
        ),
        ("defaultStatus", rule("r").bootstrap_only().spec(&default)),
        (
            "empty selector",
            gate("r").bootstrap_only().spec("nodeSelector: {}"),
        ),
        ("no condition", rule("r")),
    ]
}

#[test]
fn a_deleted_rule_that_could_not_be_used_takes_its_taint_along() {
    for (name, rule) in unusable() {
        let stays = |what: &str| format!("{name}: {what}");
        let deleted = || rule.clone().deleting();
        assert_writes(
            &stays("not deleted"),
            &gated(unmet()),
            std::slice::from_ref(&rule),
            &[],
        );
        assert_writes(name, &gated(unmet()), &[deleted()], &["-gate:NoSchedule"]);
        assert_writes(
            &stays("whatever the conditions say"),
            &gated(met()),
            &[deleted()],
            &["-gate:NoSchedule"],
        );
        assert_writes(
            &stays("owned"),
            &gated_by(unmet(), "r").completed("r"),
            &[deleted()],
            &[
                "-gate:NoSchedule",
                "-taint-added-by-r-uid",
                "-bootstrap-completed-r",
            ],
        );
        #[rustfmt::skip]
        let cases = [
            ("a dry run", vec![deleted().dry_run()]),
            ("remove-only", vec![deleted().remove_only()]),
            ("no finalizer", vec![deleted().without_finalizer()]),
            ("a rule that waits for its finalizer takes over", vec![deleted(), gate("s").without_finalizer()]),
            ("another project's taint", vec![deleted().taint("example.com/gate", "NoSchedule")]),
        ];
        for (what, rules) in cases {
            let both = gated(unmet()).taint("example.com/gate", "NoSchedule");
            assert_writes(&stays(what), &both, &rules, &[]);
        }
        assert_writes(
            &stays("another rule governs the taint"),
            &gated(unmet()),
            &[deleted(), gate("s").created(at(1))],
            &["+taint-added-by-s-uid"],
        );
    }
    let elsewhere = gate("r")
        .bootstrap_only()
        .spec("conditionPolicy: anyOf")
        .selects("pool", "other");
    assert_writes("other nodes", &gated(unmet()), &[elsewhere.deleting()], &[]);
    let unreadable = rule("r").spec("enforcementMode: sometimes").deleting();
    assert_writes(
        "a spec of which nothing can be read",
        &gated_by(unmet(), "r"),
        &[unreadable],
        &["-gate:NoSchedule", "-taint-added-by-r-uid"],
    );
}
