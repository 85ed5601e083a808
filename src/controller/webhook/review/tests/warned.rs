//! Warnings to a rule's author.

use super::*;
use crate::webhook::surroundings::ListedNodes;

#[test]
fn a_rule_that_evicts_pods_is_warned_of() {
    let no_execute = "taint: {effect: NoExecute}";
    #[rustfmt::skip]
    let cases = [
        (
            format!("{{{no_execute}}}"),
            Some(
                "CAUTION: NoExecute with continuous mode evicts pods when conditions fail, risking workload disruption. Consider NoSchedule or bootstrap-only, or set spec.nodegate.disruption",
            ),
        ),
        (format!("{{{no_execute}, nodegate: {{disruption: {{}}}}}}"), Some("Consider NoSchedule or bootstrap-only")),
        (
            format!("{{{no_execute}, enforcementMode: bootstrap-only}}"),
            Some(
                "NOTE: NoExecute will evict existing pods without tolerations. Ensure critical system pods have appropriate tolerations",
            ),
        ),
        (format!("{{{no_execute}, nodegate: {{taintPolicy: remove-only}}}}"), None),
        ("{nodegate: {heartbeatTimeout: 5m}}".into(), Some("heartbeatTimeout 5m is shorter")),
        ("{nodegate: {heartbeatTimeout: 6m}}".into(), None),
    ];
    for (spec, expected) in cases {
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
    let sample = |count: usize, selected, types: &[&str]| {
        let types = types.iter();
        let node = testing::node("n").label("zone", "a").deleting();
        let node = types.fold(node, |node, kind| node.condition(kind, "True"));
        Surroundings {
            nodes: Some(ListedNodes {
                nodes: vec![testing::kept(node.build()); count],
                selected,
            }),
            ..Surroundings::default()
        }
    };
    let drivers = |names: &[&str]| Surroundings {
        csi_drivers: Some(names.iter().map(ToString::to_string).collect()),
        ..sample(2, true, &[])
    };
    let of = |kind: &str, more: &str| {
        format!("spec: {{conditions: [{{type: {kind}, requiredStatus: 'True'{more}}}]}}")
    };
    #[rustfmt::skip]
    let cases = [
        (of("A", ""), sample(2, true, &["A"]), ""),
        (of("A", ""), sample(0, false, &[]), ""),
        (of("A", ""), Surroundings::default(), ""),
        (of("test.io/CriticalPodsReady", ""), sample(2, true, &["A"]), ""),
        (
            of("B", ""),
            sample(2, true, &["A"]),
            "no node that the rule selects has a condition of type 'B' today: it counts as 'Unknown' until something reports it",
        ),
        (
            of("B", ", defaultStatus: 'False'"),
            sample(100, false, &["A"]),
            "no node has a condition of type 'B' today: it counts as 'False' until something reports it",
        ),
        (
            of("test.io/Misspelt", ""),
            sample(2, true, &["test.io/Misspelt"]),
            "nothing makes conditions of type test.io/Misspelt, though their prefix is Nodegate's: counted as absent on every node; check the spelling",
        ),
        (
            of("daemon-sets.nodegate.dev/a.b", ""),
            sample(0, false, &[]),
            "no node reports daemon-sets.nodegate.dev/a.b, and Nodegate makes no conditions with that prefix: counted as absent on every node; check the spelling",
        ),
        (of("bench.nodegate.dev/A", ""), sample(2, true, &["bench.nodegate.dev/A"]), ""),
        (
            of("csidriver.nodegate.dev/", ""),
            sample(2, true, &[]),
            "nothing makes conditions of type csidriver.nodegate.dev/, though their prefix is Nodegate's: counted as absent on every node; check the spelling",
        ),
        (
            of("csidriver.nodegate.dev/a.csi", ""),
            drivers(&["b.csi"]),
            "no node has CSI driver a.csi today: until one has, no node meets the condition; check the driver's name",
        ),
        (of("csidriver.nodegate.dev/a.csi", ""), drivers(&["a.csi"]), ""),
        (of("csidriver.nodegate.dev/a.csi", ""), sample(2, true, &[]), ""),
    ];
    for (condition, surroundings, expected) in cases {
        let expected: Vec<_> = Some(expected)
            .filter(|text| !text.is_empty())
            .into_iter()
            .collect();
        assert_eq!(warnings(&condition, &surroundings), expected, "{condition}");
        let longest = expected.iter().map(|it| it.len()).max();
        assert!(longest <= Some(256), "{longest:?}");
    }
}

#[test]
fn a_minimum_that_no_node_reaches_is_warned_of() {
    let sample = |nodes: &[testing::NodeBuilder]| Surroundings {
        nodes: Some(ListedNodes {
            nodes: nodes.iter().map(|it| testing::kept(it.build())).collect(),
            selected: !nodes.is_empty(),
        }),
        ..Surroundings::default()
    };
    let node = |amount: &str| {
        let node = testing::node("n").allocatable("nvidia.com/gpu", amount);
        node.deleting()
    };
    let labelled = |amount: &str, label: &str| node(amount).label("gpu.count", label);
    let (eight, by_label) = (
        "nodegate: {minimum: 8}",
        "nodegate: {minimumFromLabel: gpu.count}",
    );
    for (minimum, nodes, expected) in [
        (eight, vec![], ""),
        (eight, vec![node("7"), node("8")], ""),
        (
            eight,
            vec![node("7"), node("4")],
            "no node that the rule selects has 8 nvidia.com/gpu to allocate today, and the most is 7",
        ),
        (by_label, vec![node("8"), labelled("8", "8")], ""),
        (
            by_label,
            vec![node("8"), labelled("8", "many")],
            "no node that the rule selects has a label gpu.count with a number today: none meets the minimum",
        ),
        (
            by_label,
            vec![labelled("7", "8")],
            "no node that the rule selects has as many nvidia.com/gpu to allocate today as its label gpu.count says",
        ),
    ] {
        let rule = format!(
            "spec: {{conditions: [{{type: resource.nodegate.dev/nvidia.com/gpu, requiredStatus: 'True', {minimum}}}]}}"
        );
        let warnings = warnings(&rule, &sample(&nodes));
        assert_eq!(warnings.join("; "), expected, "{minimum}");
    }
}

#[test]
fn a_critical_daemon_set_that_cannot_start_is_warned_of() {
    use nodegate_core::object::{DaemonSet, Watched};
    let daemon_set = |name: &str, labels: &str, pod: &str| -> Watched<DaemonSet> {
        let template: Value =
            serde_saphyr::from_str(&format!("{{metadata: {{labels: {labels}}}, spec: {pod}}}"))
                .unwrap();
        let object = json!({
            "metadata": {"namespace": "ns", "name": name, "labels": {"critical": "true"}},
            "spec": {"template": template},
        });
        serde_json::from_value(object).unwrap()
    };
    let zone = |operator: &str, value: &str| {
        format!(
            "{{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, operator: {operator}, values: [{value}]}}]}}]}}}}}}}}"
        )
    };
    let critical = "{critical: 'true'}";
    let key = "readiness.k8s.io/x";
    #[rustfmt::skip]
    let cases = [
        ("no toleration", critical, "{}".to_owned(), true),
        ("another template", "{}", "{}".into(), false),
        ("tolerating", critical, format!("{{tolerations: [{{key: {key}, operator: Exists}}]}}"), false),
        ("for these nodes", critical, "{nodeSelector: {zone: a}}".into(), true),
        ("for other nodes", critical, "{nodeSelector: {zone: b}}".into(), false),
        ("by affinity for these", critical, zone("NotIn", "b"), true),
        ("by affinity for others", critical, zone("In", "b"), false),
    ];
    for (what, labels, pod, warned) in cases {
        let daemon_sets = [
            daemon_set("one", labels, &pod),
            daemon_set("two", labels, &pod),
        ];
        let surroundings = Surroundings {
            daemon_sets: Some(daemon_sets.into()),
            ..Surroundings::default()
        };
        let warnings = warnings("{}", &surroundings);
        assert_eq!(!warnings.is_empty(), warned, "{what}: {warnings:?}");
        for warning in warnings {
            assert!(
                warning.starts_with(
                    "DaemonSet ns/one does not tolerate the taint readiness.k8s.io/x:NoSchedule"
                ) && warning.contains("(+1 more)"),
                "{warning}"
            );
        }
    }
    let kept_away = "spec: {taint: {effect: PreferNoSchedule}}";
    let one = daemon_set("one", critical, "{}");
    let surroundings = Surroundings {
        daemon_sets: Some([one].into()),
        ..Surroundings::default()
    };
    assert!(warnings(kept_away, &surroundings).is_empty());
}

#[test]
fn a_rule_that_taints_nodes_at_once_is_warned_of_when_it_begins_to_act() {
    const WARNING: &str = "1 of 2 selected nodes is unmet and not held (1 has never reported A): it would be gated at \
                           once; nodegate.existingNodes: Leave leaves such nodes alone";
    let surroundings = || Surroundings {
        nodes: Some(ListedNodes {
            nodes: vec![
                testing::kept(testing::node("a").condition("A", "True").build()),
                testing::kept(testing::node("b").condition("B", "True").build()),
            ],
            selected: true,
        }),
        ..Surroundings::default()
    };
    let rule = || {
        let rule = testing::rule("r").created(testing::at(100));
        rule.bootstrap_only().waits_for("A")
    };
    #[rustfmt::skip]
    let cases = [
        ("new", None, rule(), true),
        ("a dry run", None, rule().dry_run(), false),
        ("it leaves them", None, rule().nodegate("existingNodes: Leave"), false),
        ("a dry run no more", Some(rule().dry_run()), rule(), true),
        ("leaves them no more", Some(rule().nodegate("existingNodes: Leave")), rule(), true),
        ("suspended", None, rule().nodegate("suspend: true"), false),
        ("suspended no more", Some(rule().nodegate("suspend: true")), rule(), true),
        ("acts already", Some(rule()), rule().nodegate("gracePeriod: 10m"), false),
    ];
    for (name, before, after, is_warned) in cases {
        let classes = classes();
        let before = before.map(|rule| rule.build(&classes));
        let subject = Proposal {
            rule: after.build(&classes),
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
            Ok(expected),
            "{name}"
        );
    }
}
