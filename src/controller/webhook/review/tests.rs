//! Reviews, in tables of named cases.

mod named;
mod warned;

use std::sync::Arc;

use super::*;
use crate::testing::{self, Builder};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use nodegate_core::condition::Namespaces;
use nodegate_core::rule::RuleSet;
use nodegate_core::selector::Selector;
use serde_json::{Value, json};

/// A class for the label `critical=true`.
fn classes() -> Vec<CriticalComponentClass> {
    let labels = LabelSelector {
        match_labels: Some([("critical".to_owned(), "true".to_owned())].into()),
        ..LabelSelector::default()
    };
    vec![CriticalComponentClass {
        name: "test".into(),
        selector: Selector::parse(&labels).unwrap(),
        namespaces: Namespaces::All,
        condition_prefix: "test.io/".into(),
        csi_annotation_prefix: "test.io/csi-".into(),
        require_csi_allocatable: false,
    }]
}

/// A rule for nodes of zone `a`, changed by a merge patch in YAML.
fn rule(name: &str, patch: &str) -> Value {
    let mut rule = json!({
        "apiVersion": "readiness.node.x-k8s.io/v1alpha1",
        "kind": "NodeReadinessRule",
        "metadata": {"name": name},
        "spec": {
            "conditions": [{"type": "Reported", "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": "readiness.k8s.io/x", "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"zone": "a"}},
        },
    });
    json_patch::merge(&mut rule, &serde_saphyr::from_str(patch).unwrap());
    rule
}

fn request(object: &Value, before: Option<&Value>) -> ReviewRequest {
    let request = json!({
        "uid": "1",
        "operation": if before.is_some() { "UPDATE" } else { "CREATE" },
        "object": object,
        "oldObject": before,
    });
    serde_json::from_str(&request.to_string()).unwrap()
}

fn compiled(rule: &Value) -> Rule {
    let rule: RuleObject = serde_json::from_value(rule.clone()).unwrap();
    Rule::compile(&rule.metadata, rule.spec, &classes())
}

fn verdict(
    object: &Value,
    before: Option<&Value>,
    surroundings: &Surroundings,
) -> Result<Vec<String>, String> {
    let subject = Proposal::of(request(object, before), &classes()).expect("reviewed");
    review(&subject, &classes(), surroundings)
}

fn beside(rules: &[Value]) -> Surroundings {
    Surroundings {
        rules: RuleSet::new(rules.iter().map(compiled).map(Arc::new), Vec::new()),
        ..Surroundings::default()
    }
}

fn warnings(patch: &str, surroundings: &Surroundings) -> Vec<String> {
    match verdict(&rule("new", patch), None, surroundings) {
        Ok(warnings) => warnings,
        Err(why) => panic!("{why}"),
    }
}

const REJECTION: &str = r#"validation failed: [spec.taint.key: Invalid value: "readiness.k8s.io/x": conflicts with existing rule 'old' - same taint key 'readiness.k8s.io/x' and effect 'NoSchedule' with overlapping node selectors; to rename or replace a rule, see docs/gitops.md#rename-a-rule]"#;
const CONFLICT: &str = "conflicts with existing rule 'old' - same taint key 'readiness.k8s.io/x' and effect 'NoSchedule' with overlapping node selectors";

#[test]
fn an_update_is_held_against_other_rules_only_for_what_it_changes() {
    #[rustfmt::skip]
    let cases = [
        ("another field", "{}", "spec: {nodegate: {gracePeriod: 1m}}", false),
        ("out of a dry run", "spec: {dryRun: true}", "{}", true),
        ("to these nodes", "spec: {nodeSelector: {matchLabels: {zone: b}}}", "{}", true),
        ("from what could not be used", "spec: {conditions: []}", "{}", true),
    ];
    for (what, before, after, rejected) in cases {
        let (before, after) = (rule("new", before), rule("new", after));
        let others = beside(&[before.clone(), rule("old", "{}")]);
        let verdict = verdict(&after, Some(&before), &others);
        let expected = if rejected {
            Err(REJECTION.into())
        } else {
            Ok(vec![CONFLICT.into()])
        };
        assert_eq!(verdict, expected, "{what}");
    }
}

#[test]
fn updates_that_cannot_conflict_are_not_reviewed() {
    let unreadable = "spec: {conditions: nonsense}";
    for (what, before, after) in [
        ("a label", "{}", "metadata: {labels: {a: b}}"),
        ("a status", "{}", "status: {nodegate: {heldNodes: 1}}"),
        ("a finalizer", "metadata: {finalizers: [x]}", "{}"),
        (
            "a deletion",
            "{}",
            "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {dryRun: true}}",
        ),
        ("an unreadable spec left alone", unreadable, unreadable),
        ("a dry run", "{}", "spec: {dryRun: true}"),
        ("a suspension", "{}", "spec: {nodegate: {suspend: true}}"),
        (
            "a suspension of what cannot be read",
            unreadable,
            "spec: {conditions: nonsense, nodegate: {suspend: true}}",
        ),
        (
            "remove-only",
            "spec: {nodegate: {gracePeriod: 1m}}",
            "spec: {nodegate: {gracePeriod: 1m, taintPolicy: remove-only}}",
        ),
        (
            "existing nodes are left",
            "{}",
            "spec: {nodegate: {existingNodes: Leave}}",
        ),
    ] {
        let (before, after) = (rule("r", before), rule("r", after));
        let subject = Proposal::of(request(&after, Some(&before)), &classes());
        assert!(subject.is_none(), "{what}");
    }
    for (what, before, after) in [
        (
            "a dry run no more",
            "spec: {dryRun: true}",
            "spec: {dryRun: false}",
        ),
        ("resumed", "spec: {nodegate: {suspend: true}}", "{}"),
        (
            "suspended, and more",
            "{}",
            "spec: {nodegate: {suspend: true, gracePeriod: 1m}}",
        ),
    ] {
        let (before, after) = (rule("r", before), rule("r", after));
        let subject = Proposal::of(request(&after, Some(&before)), &classes());
        assert!(subject.is_some(), "{what}");
    }
    let mut deletion = request(&rule("r", "{}"), None);
    deletion.operation = "DELETE".into();
    assert!(Proposal::of(deletion, &classes()).is_none());
    let mut status = request(&rule("r", "spec: {dryRun: true}"), Some(&rule("r", "{}")));
    status.sub_resource = Some("status".into());
    assert!(Proposal::of(status, &classes()).is_none());
}

#[test]
fn a_rule_that_cannot_be_used_is_turned_down() {
    #[rustfmt::skip]
    let cases = [
        (
            "spec: {enforcementMode: bootstrap-only, conditionPolicy: anyOf, nodeSelector: {matchLabels: null}, conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]}",
            "must not be empty: name a label, such as kubernetes.io/os: linux, spec.conditions[0].defaultStatus: Forbidden: defaultStatus should not be used with bootstrap-only enforcementMode, spec.conditionPolicy: Forbidden: anyOf",
        ),
        ("spec: {conditions: nonsense}", "spec cannot be read"),
        ("spec: {nodeSelector: null}", "validation failed: [spec.nodeSelector: Required value]"),
        ("spec: {conditions: [{requiredStatus: 'True'}]}", "validation failed: [spec.conditions[0].type: Required value]"),
        ("spec: null", "validation failed: [spec: Required value]"),
        ("spec: {taint: 1}", "[spec cannot be read: taint: invalid type: integer `1`, expected an object]"),
        ("spec: {conditions: ['a']}", "[spec cannot be read: conditions[0]: invalid type: string \"a\", expected an object]"),
    ];
    for (patch, expected) in cases {
        match verdict(&rule("new", patch), None, &Surroundings::default()) {
            Err(why) => assert!(why.contains(expected), "{why}\n{expected}"),
            Ok(_) => panic!("accepted: {patch}"),
        }
    }
}
