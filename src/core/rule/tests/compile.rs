//! Which rules are valid, and why others are rejected.

use super::gate;
use crate::api::MAX_CONDITIONS;
use crate::config::Config;
use crate::rule::Rule;
use crate::testing::{RuleBuilder, rule};

fn compile(rule: &RuleBuilder) -> Rule {
    rule.build(&Config::default().classes().unwrap())
}

#[test]
fn a_rule_that_cannot_be_used_says_why() {
    let taint = |key| gate("r").taint(key, "NoSchedule");
    let default = "conditions: [{type: A, requiredStatus: 'True'}, {type: B, requiredStatus: 'True', defaultStatus: 'True'}]";
    #[rustfmt::skip]
    let cases = [
        (
            rule("r").spec("nodeSelector: {}").waits_for("A"),
            "spec.nodeSelector: Required value: nodeSelector must not be empty: name a label, such as kubernetes.io/os: linux",
        ),
        (
            gate("r").spec("nodeSelector: {matchLabels: {a/b/c: d}}"),
            r#"spec.nodeSelector: Invalid value: "a/b/c" is not a valid label key"#,
        ),
        (
            gate("r")
                .spec("nodeSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}"),
            r#"spec.nodeSelector: Invalid value: operator "Gt" on "a" is not one of In, NotIn, Exists, DoesNotExist"#,
        ),
        (rule("r"), "spec.conditions: Required value: at least one condition is required"),
        (
            (0..=MAX_CONDITIONS).fold(rule("r"), |rule, number| {
                rule.waits_for(&format!("A{number}"))
            }),
            "spec.conditions: Too many: 33: must have at most 32 items",
        ),
        (
            gate("r").bootstrap_only().spec("conditionPolicy: anyOf"),
            "spec.conditionPolicy: Forbidden: anyOf conditionPolicy is not supported with bootstrap-only enforcementMode",
        ),
        (
            rule("r").bootstrap_only().spec(default),
            "spec.conditions[1].defaultStatus: Forbidden: defaultStatus should not be used with bootstrap-only enforcementMode",
        ),
        (
            rule("r").spec("conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimum: 1, minimumFromLabel: b}}]"),
            "spec.conditions[0].nodegate.minimum: Forbidden: minimum and minimumFromLabel cannot be used together",
        ),
        (
            rule("r").spec("conditions: [{type: A, requiredStatus: 'True', nodegate: {minimumFromLabel: b}}]"),
            "spec.conditions[0].nodegate.minimum: Forbidden: minimum and minimumFromLabel can only be used with types that count something, resource.nodegate.dev/<resource> and resourceslice.nodegate.dev/<driver>",
        ),
        (
            rule("r").spec("conditions: [{type: daemonset.nodegate.dev/a.b, requiredStatus: 'True', nodegate: {except: [a/b]}}]"),
            "spec.conditions[0].nodegate.except: Forbidden: except can only be used with daemonsets.nodegate.dev/all, daemonsets.nodegate.dev/scheduled and conditions of a class",
        ),
        (
            rule("r").spec("conditions: [{type: A, requiredStatus: 'True', nodegate: {values: [b]}}]"),
            "spec.conditions[0].nodegate.values: Forbidden: values can only be used with label.nodegate.dev/<key>",
        ),
        (
            rule("r").spec("conditions: [{type: resource.nodegate.dev/a, requiredStatus: 'True', nodegate: {minimum: 0}}]"),
            "spec.conditions[0].nodegate.minimum: Invalid value: minimum must be at least 1",
        ),
        (
            rule("r").spec("conditions: [{type: A, requiredStatus: Unknown, nodegate: {reasons: [B]}}]"),
            "spec.conditions[0].requiredStatus: Forbidden: minimum, minimumFromLabel and reasons cannot be used with requiredStatus Unknown",
        ),
        (taint("example.com/gate"), r#"spec.taint.key: Invalid value: "example.com/gate": taint key must start with 'readiness.k8s.io/'"#),
        (
            taint("readiness.k8s.io/a/b"),
            r#"spec.taint.key: Invalid value: "readiness.k8s.io/a/b": taint key must be a valid label key (prefix/name format)"#,
        ),
        (
            taint("node.kubernetes.io/not-ready").remove_only(),
            r#"spec.taint.key: Invalid value: "node.kubernetes.io/not-ready": taint key must not be one of Kubernetes' own (kubernetes.io, node.kubernetes.io)"#,
        ),
        (
            gate("r").spec("taint: {key: readiness.k8s.io/gate, effect: NoSchedule, value: 'a b'}"),
            r#"spec.taint.value: Invalid value: "a b": taint value must be a valid label value"#,
        ),
    ];
    for (rule, expected) in cases {
        let rejection = compile(&rule).spec.unwrap_err().to_string();
        assert_eq!(rejection, expected);
    }
    let unreadable = compile(&gate("r").spec("enforcementMode: sometimes"));
    let rejection = unreadable.spec.unwrap_err().to_string();
    assert!(
        rejection.starts_with("spec cannot be read: ") && rejection.contains("sometimes"),
        "{rejection}"
    );
}
