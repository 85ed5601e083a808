//! Rules under review, in tables of named cases.

mod named;

use super::*;
use crate::condition::Namespaces;
use crate::selector::Selector;
use crate::testing::{self, Builder};
use crate::webhook::surroundings::NodeSample;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;

/// A class that asks for the label `critical=true`.
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

fn request(object: &Value, before: Option<&Value>) -> AdmissionRequest<DynamicObject> {
    let what = json!({"group": "readiness.node.x-k8s.io", "version": "v1alpha1"});
    let mut request = json!({
        "uid": "1",
        "operation": if before.is_some() { "UPDATE" } else { "CREATE" },
        "userInfo": {},
        "object": object,
        "oldObject": before,
    });
    for (field, name, value) in [
        ("kind", "kind", "NodeReadinessRule"),
        ("resource", "resource", "nodereadinessrules"),
    ] {
        request[field] = what.clone();
        request[field][name] = value.into();
    }
    serde_json::from_value(request).unwrap()
}

fn compiled(rule: &Value) -> Rule {
    let rule: RuleObject = serde_json::from_value(rule.clone()).unwrap();
    Rule::compile(&rule.metadata, rule.spec, &classes())
}

fn verdict(object: &Value, before: Option<&Value>, surroundings: &Surroundings) -> ReviewResult {
    let subject = Subject::of(&request(object, before), &classes()).expect("reviewed");
    review(&subject, &classes(), surroundings)
}

fn beside(rules: &[Value]) -> Surroundings {
    Surroundings {
        rules: rules.iter().map(compiled).collect(),
        ..Surroundings::default()
    }
}

fn warnings(patch: &str, surroundings: &Surroundings) -> Vec<String> {
    match verdict(&rule("new", patch), None, surroundings) {
        ReviewResult::Accepted { warnings } => warnings,
        ReviewResult::Rejected(why) => panic!("{why}"),
    }
}

const REJECTION: &str = r#"validation failed: [spec.taint.key: Invalid value: "readiness.k8s.io/x": conflicts with existing rule 'old' - same taint key 'readiness.k8s.io/x' and effect 'NoSchedule' with overlapping node selectors]"#;
const CONFLICT: &str = "conflicts with existing rule 'old' - same taint key 'readiness.k8s.io/x' and effect 'NoSchedule' with overlapping node selectors";

#[test]
fn a_new_rule_must_not_conflict_with_another() {
    for (what, new, old, conflicts) in [
        ("same nodes", "{}", "{}", true),
        (
            "another key",
            "spec: {taint: {key: readiness.k8s.io/y}}",
            "{}",
            false,
        ),
        (
            "another effect",
            "spec: {taint: {effect: PreferNoSchedule}}",
            "{}",
            false,
        ),
        ("another value", "spec: {taint: {value: v}}", "{}", true),
        (
            "other nodes",
            "spec: {nodeSelector: {matchLabels: {zone: b}}}",
            "{}",
            false,
        ),
        (
            "perhaps the same nodes",
            "spec: {nodeSelector: {matchLabels: {zone: null, os: linux}}}",
            "{}",
            true,
        ),
        ("a dry run", "{}", "spec: {dryRun: true}", true),
        (
            "one that is going",
            "{}",
            "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}",
            false,
        ),
        (
            "one that cannot be used",
            "{}",
            "spec: {conditions: []}",
            false,
        ),
    ] {
        let expected = if conflicts {
            ReviewResult::Rejected(REJECTION.into())
        } else {
            ReviewResult::Accepted {
                warnings: Vec::new(),
            }
        };
        let others = beside(&[rule("old", old)]);
        assert_eq!(
            verdict(&rule("new", new), None, &others),
            expected,
            "{what}"
        );
    }
}

#[test]
fn an_update_is_held_against_other_rules_only_for_what_it_changes() {
    for (what, before, after, rejected) in [
        ("another field", "{}", "spec: {gracePeriod: 1m}", false),
        ("into a dry run", "{}", "spec: {dryRun: true}", false),
        ("out of a dry run", "spec: {dryRun: true}", "{}", true),
        (
            "to these nodes",
            "spec: {nodeSelector: {matchLabels: {zone: b}}}",
            "{}",
            true,
        ),
        (
            "from what could not be used",
            "spec: {conditions: []}",
            "{}",
            true,
        ),
    ] {
        let (before, after) = (rule("new", before), rule("new", after));
        let others = beside(&[before.clone(), rule("old", "{}")]);
        let verdict = verdict(&after, Some(&before), &others);
        let expected = if rejected {
            ReviewResult::Rejected(REJECTION.into())
        } else {
            ReviewResult::Accepted {
                warnings: vec![CONFLICT.into()],
            }
        };
        assert_eq!(verdict, expected, "{what}");
    }
}

#[test]
fn of_many_conflicts_some_are_named() {
    let others: Vec<_> = (0..5)
        .map(|number| rule(&format!("old-{number}"), "{}"))
        .collect();
    let ReviewResult::Rejected(why) = verdict(&rule("new", "{}"), None, &beside(&others)) else {
        panic!("accepted");
    };
    assert!(
        why.contains("'old-2'") && why.ends_with("(+2 more)]"),
        "{why}"
    );
}

#[test]
fn what_cannot_conflict_is_not_reviewed() {
    let unreadable = "spec: {conditions: nonsense}";
    for (what, before, after) in [
        ("a label", "{}", "metadata: {labels: {a: b}}"),
        ("a status", "{}", "status: {heldNodes: 1}"),
        ("a finalizer", "metadata: {finalizers: [x]}", "{}"),
        (
            "a deletion",
            "{}",
            "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {dryRun: true}}",
        ),
        ("an unreadable spec left alone", unreadable, unreadable),
    ] {
        let (before, after) = (rule("r", before), rule("r", after));
        let subject = Subject::of(&request(&after, Some(&before)), &classes());
        assert!(subject.is_none(), "{what}");
    }
    let mut deletion = request(&rule("r", "{}"), None);
    deletion.operation = Operation::Delete;
    assert!(Subject::of(&deletion, &classes()).is_none());
    let mut status = request(&rule("r", "spec: {dryRun: true}"), Some(&rule("r", "{}")));
    status.sub_resource = Some("status".into());
    assert!(Subject::of(&status, &classes()).is_none());
}

#[test]
fn a_rule_that_cannot_be_used_is_turned_down() {
    for (patch, expected) in [
        (
            "spec: {nodeSelector: {matchLabels: null}}",
            "validation failed: [spec.nodeSelector: Required value: nodeSelector must not be empty",
        ),
        (
            "spec: {nodeSelector: {matchLabels: {zone: 'a b'}}}",
            "[spec.nodeSelector: Invalid value: \"a b\" is not a valid value for label \"zone\"]",
        ),
        (
            "spec: {enforcementMode: bootstrap-only, conditionPolicy: anyOf}",
            "[spec.conditionPolicy: Forbidden: anyOf should not be used with bootstrap-only enforcementMode]",
        ),
        (
            "spec: {enforcementMode: bootstrap-only, taint: {value: '-'}, conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]}",
            "[spec.taint.value: Invalid value: \"-\": taint value must be a valid label value, spec.conditions[0].defaultStatus: Forbidden: defaultStatus should not be used with bootstrap-only enforcementMode]",
        ),
        ("spec: {conditions: nonsense}", "spec cannot be read"),
    ] {
        match verdict(&rule("new", patch), None, &Surroundings::default()) {
            ReviewResult::Rejected(why) => assert!(why.contains(expected), "{why}\n{expected}"),
            ReviewResult::Accepted { .. } => panic!("accepted: {patch}"),
        }
    }
}

#[test]
fn a_rule_that_upstream_took_can_be_changed_as_long_as_no_fault_is_added() {
    let default = "conditions: [{type: A, requiredStatus: 'True', defaultStatus: 'True'}]";
    for (what, fault) in [
        (
            "anyOf",
            "enforcementMode: bootstrap-only, conditionPolicy: anyOf",
        ),
        (
            "defaultStatus",
            &format!("enforcementMode: bootstrap-only, {default}"),
        ),
        ("an empty selector", "nodeSelector: {matchLabels: null}"),
        ("an unreadable spec", "gracePeriod: soon"),
    ] {
        let before = rule("r", &format!("spec: {{{fault}}}"));
        let with = |change: &str| rule("r", &format!("spec: {{{fault}, {change}}}"));
        let others = Surroundings::default();
        match verdict(&with("dryRun: true"), Some(&before), &others) {
            ReviewResult::Accepted { warnings } => {
                assert_eq!(warnings.len(), 1, "{what}: {warnings:?}");
                assert!(warnings[0].starts_with("the rule stays without effect: spec"));
            }
            ReviewResult::Rejected(why) => panic!("{what}: {why}"),
        }
        let worse = verdict(&with("taint: {key: x.io/y}"), Some(&before), &others);
        let is_worse =
            matches!(&worse, ReviewResult::Rejected(why) if why.contains("spec.taint.key"));
        assert!(
            is_worse || what == "an unreadable spec",
            "{what}: {worse:?}"
        );
    }
}

#[test]
fn what_evicts_is_warned_of() {
    let no_execute = "taint: {effect: NoExecute}";
    for (spec, expected) in [
        (
            format!("{{{no_execute}}}"),
            Some(
                "CAUTION: NoExecute with continuous mode evicts pods when conditions fail, risking workload disruption. Consider NoSchedule or bootstrap-only, or set spec.disruption",
            ),
        ),
        (
            format!("{{{no_execute}, disruption: {{}}}}"),
            Some("Consider NoSchedule or bootstrap-only"),
        ),
        (
            format!("{{{no_execute}, enforcementMode: bootstrap-only}}"),
            Some(
                "NOTE: NoExecute will evict existing pods without tolerations. Ensure critical system pods have appropriate tolerations",
            ),
        ),
        (format!("{{{no_execute}, taintPolicy: remove-only}}"), None),
        (
            "{heartbeatTimeout: 5m}".into(),
            Some("heartbeatTimeout 5m is shorter"),
        ),
        ("{heartbeatTimeout: 6m}".into(), None),
    ] {
        let warnings = warnings(&format!("spec: {spec}"), &Surroundings::default());
        let expected: Vec<_> = expected.into_iter().collect();
        assert_eq!(warnings.len(), expected.len(), "{spec}: {warnings:?}");
        for (warning, expected) in warnings.iter().zip(expected) {
            assert!(warning.contains(expected), "{warning}");
            assert!(warning.len() <= 256, "{} bytes: {warning}", warning.len());
        }
    }
}

#[test]
fn a_condition_that_no_node_has_is_warned_of() {
    let sample = |count, selected, more, types: &[&str]| Surroundings {
        nodes: Some(NodeSample {
            count,
            nodes: Vec::new(),
            selected,
            more,
            condition_types: types.iter().map(ToString::to_string).collect(),
        }),
        ..Surroundings::default()
    };
    let of = |kind: &str, more: &str| {
        format!("spec: {{conditions: [{{type: {kind}, requiredStatus: 'True'{more}}}]}}")
    };
    for (condition, surroundings, expected) in [
        (of("A", ""), sample(2, true, false, &["A"]), ""),
        (of("A", ""), sample(0, false, false, &[]), ""),
        (of("A", ""), Surroundings::default(), ""),
        (
            of("test.io/CriticalPodsReady", ""),
            sample(2, true, false, &["A"]),
            "",
        ),
        (
            of("B", ""),
            sample(2, true, false, &["A"]),
            "no node that the rule selects has a condition of type 'B' today: it counts as 'Unknown' until something reports it",
        ),
        (
            of("B", ", defaultStatus: 'False'"),
            sample(100, false, true, &["A"]),
            "none of the first 500 nodes has a condition of type 'B' today: it counts as 'False' until something reports it",
        ),
        (
            of("test.io/Misspelt", ""),
            sample(2, true, false, &["test.io/Misspelt"]),
            "nothing makes conditions of type 'test.io/Misspelt', though their prefix is Nodegate's: it counts as 'Unknown' on every node; check the spelling",
        ),
    ] {
        let expected: Vec<_> = Some(expected)
            .filter(|text| !text.is_empty())
            .into_iter()
            .collect();
        assert_eq!(warnings(&condition, &surroundings), expected, "{condition}");
    }
}

#[test]
fn a_critical_daemon_set_that_cannot_start_is_warned_of() {
    use crate::object::{DaemonSet, DaemonSetObject};
    let daemon_set = |name: &str, labels: &str, pod: &str| -> DaemonSet {
        let template: Value =
            serde_saphyr::from_str(&format!("{{metadata: {{labels: {labels}}}, spec: {pod}}}"))
                .unwrap();
        let object: DaemonSetObject = serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": name},
            "spec": {"template": template},
        }))
        .unwrap();
        object.read().unwrap()
    };
    let zone = |operator: &str, value: &str| {
        format!(
            "{{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, operator: {operator}, values: [{value}]}}]}}]}}}}}}}}"
        )
    };
    let critical = "{critical: 'true'}";
    let key = "readiness.k8s.io/x";
    for (what, labels, pod, warned) in [
        ("no toleration", critical, "{}".to_owned(), true),
        ("another template", "{}", "{}".into(), false),
        (
            "tolerating",
            critical,
            format!("{{tolerations: [{{key: {key}, operator: Exists}}]}}"),
            false,
        ),
        (
            "for these nodes",
            critical,
            "{nodeSelector: {zone: a}}".into(),
            true,
        ),
        (
            "for other nodes",
            critical,
            "{nodeSelector: {zone: b}}".into(),
            false,
        ),
        ("by affinity for these", critical, zone("NotIn", "b"), true),
        ("by affinity for others", critical, zone("In", "b"), false),
    ] {
        let daemon_sets = [
            daemon_set("one", labels, &pod),
            daemon_set("two", labels, &pod),
        ];
        let surroundings = Surroundings {
            daemon_sets: vec![
                daemon_sets
                    .into_iter()
                    .map(|daemon_set| (daemon_set.key.clone(), daemon_set))
                    .collect(),
            ],
            ..Surroundings::default()
        };
        let warnings = warnings("{}", &surroundings);
        assert_eq!(!warnings.is_empty(), warned, "{what}: {warnings:?}");
        for warning in warnings {
            assert!(
                warning.starts_with("critical DaemonSet ns/one (+1 more) does not tolerate the taint readiness.k8s.io/x:NoSchedule"),
                "{warning}"
            );
        }
    }
    let kept_away = "spec: {taint: {effect: PreferNoSchedule}}";
    let one = daemon_set("one", critical, "{}");
    let surroundings = Surroundings {
        daemon_sets: vec![[(one.key.clone(), one)].into()],
        ..Surroundings::default()
    };
    assert!(warnings(kept_away, &surroundings).is_empty());
}

#[test]
fn a_rule_that_closes_nodes_as_it_is_taken_is_warned_of_when_it_begins_to() {
    const WARNING: &str = "1 of 2 selected nodes are open and unmet now (1 have never reported A): they would be closed at \
                           once; existingNodes: Leave leaves them alone";
    let surroundings = || Surroundings {
        nodes: Some(NodeSample {
            count: 2,
            nodes: vec![
                testing::node("a").condition("A", "True").build(),
                testing::node("b").condition("B", "True").build(),
            ],
            selected: true,
            more: false,
            condition_types: ["A", "B"].map(str::to_owned).into(),
        }),
        ..Surroundings::default()
    };
    let rule = || {
        let rule = testing::rule("r").created(testing::at(100));
        rule.bootstrap_only().waits_for("A")
    };
    for (name, before, after, is_warned) in [
        ("new", None, rule(), true),
        ("a dry run", None, rule().dry_run(), false),
        (
            "it leaves them",
            None,
            rule().spec("existingNodes: Leave"),
            false,
        ),
        ("a dry run no more", Some(rule().dry_run()), rule(), true),
        (
            "leaves them no more",
            Some(rule().spec("existingNodes: Leave")),
            rule(),
            true,
        ),
        ("suspended", None, rule().spec("suspend: true"), false),
        (
            "suspended no more",
            Some(rule().spec("suspend: true")),
            rule(),
            true,
        ),
        (
            "acts already",
            Some(rule()),
            rule().spec("heartbeatTimeout: 10m"),
            false,
        ),
    ] {
        let classes = classes();
        let before = before.map(|rule| rule.build(&classes));
        let subject = Subject {
            rule: after.build(&classes),
            spec: None,
            faults: Vec::new(),
            before,
        };
        let expected = if is_warned {
            vec![WARNING.to_owned()]
        } else {
            Vec::new()
        };
        assert_eq!(
            review(&subject, &classes, &surroundings()),
            ReviewResult::Accepted { warnings: expected },
            "{name}"
        );
    }
}
