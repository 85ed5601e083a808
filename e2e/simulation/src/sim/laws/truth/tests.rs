//! Conditions case by case, as in `docs/conditions.md`.

use serde_json::{Value, json};

use super::Answer::{self, Maybe, No, Yes};
use crate::sim::laws::testing::{Story, node};
use crate::{Key, Kind};

const LABEL: &str = "node.gardener.cloud/critical-component";
const READY: &str = "node.gardener.cloud/CriticalComponentsReady";
const NAMED: &str = "daemonset.nodegate.dev/kube-system.cni";
const ALL: &str = "daemonsets.nodegate.dev/all";
const SCHEDULED: &str = "daemonsets.nodegate.dev/scheduled";

fn daemon_set(fields: &Value) -> Value {
    let mut object = json!({
        "kind": "DaemonSet",
        "metadata": { "name": "cni", "namespace": "kube-system", "labels": { LABEL: "true" } },
        "spec": {
            "selector": { "matchLabels": { "app": "cni" } },
            "template": {
                "metadata": { "labels": { LABEL: "true", "app": "cni" } },
                "spec": { "tolerations": [{ "operator": "Exists" }], "containers": [{ "name": "c", "image": "c" }] },
            },
        },
    });
    json_patch::merge(&mut object, fields);
    object
}

/// A pod of the class on the node, owned by the `DaemonSet` with this UID.
fn pod(name: &str, owner: &str, fields: &Value) -> Value {
    let mut object = json!({
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": { LABEL: "true", "app": "cni" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": owner, "controller": true }],
        },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "c" }] },
    });
    json_patch::merge(&mut object, fields);
    object
}

fn uid_of_cni(story: &Story) -> String {
    story.uid(&Key::namespaced(Kind::DaemonSet, "kube-system", "cni"))
}

/// Creates the `DaemonSet`, and a pod of it on the node.
fn with_pod(story: &mut Story, set: &Value, fields: &Value) {
    story.create(daemon_set(set));
    let uid = uid_of_cni(story);
    story.create_pod(pod("p", &uid, fields));
}

fn ready() -> Value {
    json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z" }] } })
}

/// A node under a rule that waits for this condition, with supporting objects.
fn world(kind: &str) -> Story {
    let conditions = json!([{ "type": kind, "requiredStatus": "True" }]);
    let mut story = Story::under(json!({ "conditions": conditions }));
    story.create(node("n"));
    story.at(10);
    story
}

/// Whether the rule `r` is met.
fn met(story: &Story) -> Answer {
    story.ask("n", |facts| facts.met(&facts.rules[0])).unwrap()
}

#[test]
fn a_daemon_set_of_the_class_is_waited_for_where_it_is_meant_to_be() {
    let strict = json!({ "spec": { "template": { "spec": { "tolerations": null } } } });
    let elsewhere =
        json!({ "spec": { "template": { "spec": { "nodeSelector": { "pool": "b" } } } } });
    let affine = |value: &str| {
        let expression = json!({ "key": "pool", "operator": "In", "values": [value] });
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [expression] }] });
        let affinity =
            json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } });
        json!({ "spec": { "template": { "spec": { "affinity": affinity } } } })
    };
    #[rustfmt::skip]
    let cases = [
        ("meant", json!({}), No),
        ("selected elsewhere", elsewhere, Yes),
        ("affine", affine("a"), No),
        ("affine to others", affine("b"), Yes),
        ("shut out by the rule's own taint", strict, Yes),
        ("only labelled as a whole", json!({ "spec": { "template": { "metadata": { "labels": { LABEL: null } } } } }), Yes),
        ("elsewhere", json!({ "metadata": { "namespace": "default" } }), Yes),
    ];
    for (name, fields, expected) in cases {
        let mut story = world(READY);
        story.create(daemon_set(&fields));
        assert_eq!(met(&story), expected, "{name}");
    }
}

#[test]
fn a_taint_shuts_out_a_daemon_set_that_no_rule_names_if_it_stays_and_a_named_one_if_it_says_what_the_node_is()
 {
    let tolerating = json!({ "spec": { "template": { "spec": { "tolerations": [
        { "key": "readiness.k8s.io/net", "operator": "Exists" },
    ] } } } });
    for (key, of_named, of_others) in [
        ("node.kubernetes.io/not-ready", No, No),
        ("ToBeDeletedByClusterAutoscaler", No, No),
        ("karpenter.sh/disrupted", No, No),
        ("x.csi.example.com/agent-not-ready", No, No),
        ("readiness.k8s.io/other", No, Maybe),
        ("dedicated", No, Yes),
        ("node-role.kubernetes.io/control-plane", Yes, Yes),
    ] {
        for (kind, expected) in [(NAMED, of_named), (READY, of_others), (ALL, of_others)] {
            let mut story = world(kind);
            story.create(daemon_set(&tolerating));
            story.patch_node(
                "n",
                json!({ "spec": { "taints": [{ "key": key, "effect": "NoSchedule" }] } }),
            );
            assert_eq!(met(&story), expected, "{kind} {key}");
        }
    }
}

#[test]
fn a_daemon_set_with_a_live_pod_on_the_node_is_waited_for_whatever_labels_and_taints_say() {
    let elsewhere =
        json!({ "spec": { "template": { "spec": { "nodeSelector": { "pool": "b" } } } } });
    let intolerant = json!({ "spec": { "template": { "spec": { "tolerations": [
        { "key": "readiness.k8s.io/net", "operator": "Exists" },
    ] } } } });
    for key in ["dedicated", "node-role.kubernetes.io/control-plane"] {
        for fields in [&elsewhere, &intolerant] {
            for (kind, pod_fields, expected) in [
                (NAMED, json!({}), No),
                (NAMED, ready(), Yes),
                (ALL, json!({}), No),
                (ALL, ready(), Yes),
            ] {
                let mut story = world(kind);
                with_pod(&mut story, fields, &pod_fields);
                let taints = json!([{ "key": key, "effect": "NoSchedule" }]);
                story.patch_node("n", json!({ "spec": { "taints": taints } }));
                assert_eq!(met(&story), expected, "{kind} {key} {fields} {pod_fields}");
            }
        }
    }
}

#[test]
fn a_pod_in_another_namespace_is_none_of_a_daemon_sets() {
    for (namespace, expected) in [("kube-system", Yes), ("default", No)] {
        let mut story = world(ALL);
        let mut fields = ready();
        fields["metadata"]["namespace"] = json!(namespace);
        with_pod(&mut story, &json!({}), &fields);
        assert_eq!(met(&story), expected, "{namespace}");
    }
}

#[test]
fn a_pod_that_nobody_controls_is_the_daemon_sets_that_selects_it() {
    for (app, expected) in [("cni", Yes), ("proxy", No)] {
        for kind in [NAMED, ALL] {
            let mut story = world(kind);
            let mut fields = ready();
            fields["metadata"] = json!({ "ownerReferences": null, "labels": { "app": app } });
            with_pod(&mut story, &json!({}), &fields);
            assert_eq!(met(&story), expected, "{kind} {app}");
        }
    }
}

#[test]
fn a_daemon_set_may_be_meant_for_a_node_that_has_yet_to_be_labelled() {
    let by_label = json!({ "nodeSelector": { "pool": "b" } });
    let by_name = json!({ "nodeName": "another" });
    for (key, template, expected) in [
        ("node.cluster.x-k8s.io/uninitialized", &by_label, No),
        ("karpenter.sh/unregistered", &by_label, No),
        ("karpenter.sh/unregistered", &by_name, Yes),
        (
            "node.cloudprovider.kubernetes.io/uninitialized",
            &by_label,
            Yes,
        ),
        ("karpenter.sh/disrupted", &by_label, Yes),
    ] {
        for kind in [NAMED, READY, ALL, SCHEDULED] {
            let mut story = world(kind);
            story.create(daemon_set(
                &json!({ "spec": { "template": { "spec": template } } }),
            ));
            let taints = json!([{ "key": key, "effect": "NoSchedule" }]);
            story.patch_node("n", json!({ "spec": { "taints": taints } }));
            assert_eq!(met(&story), expected, "{kind} {key} {template}");
        }
    }
}

#[test]
fn critical_pods_have_to_be_ready() {
    let gone = json!({ "status": { "phase": "Failed", "conditions": [{ "type": "Ready", "status": "True" }] } });
    for (name, fields, owner, expected) in [
        ("ready", ready(), "own", Yes),
        ("not ready", json!({}), "own", No),
        ("finished", gone, "own", No),
        ("another's", ready(), "another", No),
    ] {
        let mut story = world(READY);
        story.create(daemon_set(&json!({})));
        let uid = uid_of_cni(&story);
        let owner = if owner == "own" { &uid } else { owner };
        story.create_pod(pod("p", owner, &fields));
        assert_eq!(met(&story), expected, "{name}");
        story.create_pod(pod("bare", "nobody", &json!({})));
        assert_eq!(met(&story), No, "{name}, and another one is not");
    }
}

#[test]
fn a_pod_of_a_daemon_set_has_to_be_ready_for_its_min_ready_seconds_and_a_bare_one_does_not() {
    let slow = json!({ "spec": { "minReadySeconds": 30 } });
    for (asked_at, expected) in [(10, No), (39, No), (40, Maybe), (69, Maybe), (70, Yes)] {
        for (kind, expected) in [
            (READY, expected),
            (NAMED, expected),
            (ALL, expected),
            (SCHEDULED, Yes),
        ] {
            let mut story = world(kind);
            with_pod(&mut story, &slow, &ready());
            story.at(asked_at);
            assert_eq!(met(&story), expected, "{kind} {asked_at}");
        }
    }
    let mut story = world(READY);
    story.create_pod(pod("bare", "nobody", &ready()));
    assert_eq!(met(&story), Yes);
}

#[test]
fn a_daemon_set_has_its_room_once_a_live_pod_of_it_is_bound() {
    let ended = json!({ "status": { "phase": "Failed" } });
    let elsewhere = json!({ "spec": { "nodeName": "another" } });
    for (name, fields, expected) in [
        ("bound", json!({}), Yes),
        ("ready", ready(), Yes),
        ("ended", ended, No),
        ("elsewhere", elsewhere, No),
    ] {
        let mut story = world(SCHEDULED);
        story.create(daemon_set(&json!({})));
        assert_eq!(met(&story), No, "{name}");
        let uid = uid_of_cni(&story);
        story.create_pod(pod("p", &uid, &fields));
        assert_eq!(met(&story), expected, "{name}");
    }
}

#[test]
fn a_daemon_set_that_a_rule_leaves_out_does_not_count_nor_do_its_pods() {
    let waits = json!({ "metadata": { "annotations": { "node.gardener.cloud/wait-for-csi-node-ebs": "ebs" } } });
    for kind in [READY, ALL, SCHEDULED] {
        for (left_out, expected) in [("kube-system/cni", Yes), ("kube-system/other", No)] {
            let ours = json!({ "except": [left_out] });
            let condition = json!({ "type": kind, "requiredStatus": "True", "nodegate": ours });
            let mut story = Story::under(json!({ "conditions": [condition] }));
            story.create(node("n"));
            story.create(daemon_set(&json!({})));
            assert_eq!(met(&story), expected, "{kind} {left_out}: no pod");
            let uid = uid_of_cni(&story);
            story.create_pod(pod("p", &uid, &waits));
            let expected = if kind == SCHEDULED { Yes } else { expected };
            assert_eq!(met(&story), expected, "{kind} {left_out}: a pod");
        }
    }
}

#[test]
fn a_pod_older_than_its_node_does_not_count_at_first() {
    for (created_at, asked_at, expected) in [
        (5, 30, Yes),
        (20, 30, No),
        (20, 79, No),
        (20, 81, Maybe),
        (20, 200, Yes),
    ] {
        let mut story = world(READY);
        with_pod(&mut story, &json!({}), &ready());
        story.delete_node("n");
        story.at(created_at);
        let mut node = node("n");
        node["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:00:{created_at:02}Z"));
        story.create(node);
        story.at(asked_at);
        assert_eq!(met(&story), expected, "{created_at} {asked_at}");
    }
}

#[test]
fn drivers_that_pods_name_have_to_be_registered_on_this_very_node() {
    let waits = json!({ "metadata": { "annotations": { "node.gardener.cloud/wait-for-csi-node-ebs": "ebs" } } });
    let mut pod_fields = ready();
    json_patch::merge(&mut pod_fields, &waits);
    let mut story = world("node.gardener.cloud/CSIDriversRegistered");
    story.create_pod(pod("p", "nobody", &pod_fields));
    assert_eq!(met(&story), No);
    story.register("n", "ebs");
    assert_eq!(met(&story), Yes);
    let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "another" }]);
    story.patch_csi_node("n", json!({ "metadata": { "ownerReferences": owner } }));
    assert_eq!(met(&story), No);
}

#[test]
fn a_driver_that_a_rule_names_must_report_nothing_wrong_with_its_storage() {
    let mut story = world("csidriver.nodegate.dev/ebs");
    story.register("n", "ebs");
    let is = |status: &str| json!([{ "status": status, "reason": "R" }]);
    for (driver, wrong, expected) in [
        ("other", is("StorageUnreachable"), Yes),
        ("ebs", is("StorageDegraded"), No),
        ("ebs", json!([]), Yes),
    ] {
        let health = json!([{ "name": driver, "healthConditions": wrong }]);
        story.patch_csi_node("n", json!({ "status": { "storageHealth": health } }));
        assert_eq!(met(&story), expected, "{health}");
    }
}

#[test]
fn a_resource_is_there_when_there_is_some_of_it_or_its_minimum() {
    let from = |label: &str| json!({ "minimumFromLabel": label });
    for (terms, amount, expected) in [
        (json!({}), "", No),
        (json!({}), "0", No),
        (json!({}), "8", Yes),
        (json!({ "minimum": 8 }), "7", No),
        (json!({ "minimum": 8 }), "8", Yes),
        (from("four"), "3", No),
        (from("four"), "4", Yes),
        (from("missing"), "4", No),
    ] {
        let kind = "resource.nodegate.dev/nvidia.com/gpu";
        let condition = json!({ "type": kind, "requiredStatus": "True", "nodegate": terms });
        let mut story = Story::under(json!({ "conditions": [condition] }));
        let mut object = node("n");
        object["metadata"]["labels"]["four"] = json!("4");
        story.create(object);
        let amounts = json!({ "allocatable": { "nvidia.com/gpu": amount } });
        story.patch_node_status("n", json!({ "status": amounts }));
        story.at(10);
        assert_eq!(met(&story), expected, "{terms} {amount}");
    }
}

#[test]
fn a_label_counts_with_one_of_the_values() {
    for (terms, expected) in [
        (json!({}), Yes),
        (json!({ "values": ["a", "b"] }), Yes),
        (json!({ "values": ["a"] }), No),
    ] {
        let condition = json!({ "type": "label.nodegate.dev/x.com/y", "requiredStatus": "True", "nodegate": terms });
        let mut story = Story::under(json!({ "conditions": [condition] }));
        story.create(node("n"));
        assert_eq!(met(&story), No);
        story.patch_node("n", json!({ "metadata": { "labels": { "x.com/y": "b" } } }));
        assert_eq!(met(&story), expected, "{terms}");
    }
}

#[test]
fn a_condition_from_before_a_reboot_counts_only_later() {
    for (asked_at, renewed, expected) in [
        (60, false, No),
        (380, false, Maybe),
        (500, false, Yes),
        (60, true, Yes),
    ] {
        let mut story = Story::under(
            json!({ "enforcementMode": "bootstrap-only", "nodegate": { "regateOn": ["Reboot"] } }),
        );
        story.create(node("n"));
        story.at(5);
        story.report("n", "Net", "True");
        let annotations =
            json!({ "readiness.k8s.io/bootstrap-completed-r": r#"{"boot-id":"boot-1"}"# });
        story.patch_node("n", json!({ "metadata": { "annotations": annotations } }));
        story.at(20);
        story.patch_node_status(
            "n",
            json!({ "status": { "nodeInfo": { "bootID": "boot-2" } } }),
        );
        if renewed {
            story.at(30);
            story.report("n", "Net", "True");
        }
        story.at(asked_at);
        assert_eq!(met(&story), expected, "{asked_at} {renewed}");
    }
}
