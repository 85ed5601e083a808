//! Random sequences of typical changes to objects of each kind.

use nodegate_simulation::{Kind, Part};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::step::{Slot, Step};

/// The most requests in a sequence.
const LENGTH: usize = 40;

/// Random requests about a few objects of one or two kinds, most of which exist.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kinds = vec![
        Kind::Node,
        Kind::Node,
        Kind::Pod,
        Kind::DaemonSet,
        Kind::CsiNode,
        Kind::NodeReadinessRule,
        Kind::NodeClaim,
        Kind::NodePool,
    ];
    vec(select(kinds), 1..3).prop_flat_map(|kinds| {
        let slots: Vec<Slot> = kinds
            .iter()
            .flat_map(|kind| [Slot(*kind, 0), Slot(*kind, 2)])
            .collect();
        let first: Vec<_> = slots.iter().map(|slot| create(*slot)).collect();
        (first, vec(select(slots).prop_flat_map(step), 1..LENGTH))
            .prop_map(|(first, then)| first.into_iter().chain(then).collect())
    })
}

fn create(slot: Slot) -> impl Strategy<Value = Step> {
    select(bodies(slot.0)).prop_map(move |body| Step::Create(slot, body))
}

fn step(slot: Slot) -> BoxedStrategy<Step> {
    let kind = slot.0;
    let part = || {
        let parts = [Part::Main, Part::Main, Part::Status];
        select(parts[..if kind.has_status() { 3 } else { 1 }].to_vec())
    };
    let edit = || select(edits(kind));
    // Custom resources accept none.
    let strategics = if kind.is_custom() { 1 } else { 4 };
    let namespaces = if kind.is_namespaced() {
        vec![None, Some("default"), Some("kube-system")]
    } else {
        vec![None]
    };
    let labels = [
        "",
        "pool=a",
        "pool!=a",
        "pool in (a,b)",
        "pool notin (b)",
        "pool",
        "!pool",
    ];
    let binds = u32::from(kind == Kind::Pod) * 2;
    prop_oneof![
        4 => create(slot),
        binds => select(vec!["w1", "w2"]).prop_map(move |node| Step::Bind(slot, node)),
        1 => (select(namespaces), select(labels.to_vec()), select(fields(kind)))
            .prop_map(move |(namespace, labels, fields)| Step::List(kind, namespace, labels, fields)),
        4 => (part(), select(json_patches(kind))).prop_map(move |(part, patch)| Step::Json(slot, part, patch)),
        4 => (part(), edit()).prop_map(move |(part, patch)| Step::Merge(slot, part, patch)),
        strategics => (part(), select(strategic(kind))).prop_map(move |(part, patch)| Step::Strategic(slot, part, patch)),
        2 => (select(preconditions()), select(vec![None, None, Some(0), Some(5)]))
            .prop_map(move |(preconditions, grace)| Step::Delete(slot, preconditions, grace)),
    ]
    .boxed()
}

fn fields(kind: Kind) -> Vec<&'static str> {
    let mut fields = vec!["", "metadata.name=<prefix>-0", "metadata.name!=<prefix>-0"];
    if kind == Kind::Pod {
        fields.extend([
            "spec.nodeName=w1",
            "spec.nodeName!=",
            "spec.nodeName=",
            "spec.nodeName!=,status.phase!=Succeeded",
            "metadata.namespace=default",
        ]);
    }
    fields
}

fn preconditions() -> Vec<Value> {
    vec![
        json!({}),
        json!({"uid": "<uid>"}),
        json!({"uid": "<uid>", "resourceVersion": "<version>"}),
        json!({"uid": "<first uid>"}),
        json!({"resourceVersion": "<first version>"}),
    ]
}

pub(crate) fn resource_slice() -> Value {
    json!({"spec": {
        "driver": "gpu.example.com",
        "nodeName": "w1",
        "pool": {"name": "w1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }})
}

/// Objects of each kind to create.
pub(crate) fn bodies(kind: Kind) -> Vec<Value> {
    let plain = match kind {
        Kind::Node => json!({}),
        Kind::Pod => pod(None),
        Kind::DaemonSet => daemon_set(),
        Kind::CsiNode => json!({"spec": {"drivers": [{"name": "a.example.com", "nodeID": "n"}]}}),
        Kind::ResourceSlice => resource_slice(),
        Kind::NodeReadinessRule => rule(),
        Kind::NodeClaim => claim(),
        Kind::NodePool => pool(),
    };
    let with = |patch: Value| {
        let mut body = plain.clone();
        json_patch::merge(&mut body, &patch);
        body
    };
    let mut bodies = vec![
        plain.clone(),
        with(json!({"metadata": {"labels": {"pool": "a"}, "annotations": {"example.com/a": ""}}})),
        with(json!({"metadata": {"labels": {"pool": "b"}, "finalizers": ["example.com/f"]}})),
    ];
    match kind {
        Kind::Node => bodies.extend([
            json!({
                "spec": {"taints": [taint("readiness.k8s.io/a"), taint("node.kubernetes.io/not-ready")]},
                "status": {"conditions": [condition("A", "True"), condition("B", "False")]},
            }),
            json!({"spec": {"taints": [taint("twice"), taint("twice")]}}),
        ]),
        Kind::Pod => bodies.extend([pod(Some("w1")), pod(Some("w1")), pod(Some("w2"))]),
        Kind::NodeReadinessRule
        | Kind::NodeClaim
        | Kind::NodePool => {
            bodies.push(with(json!({"status": {}})));
        }
        _ => {}
    }
    bodies
}

/// Changes for merge patches.
fn edits(kind: Kind) -> Vec<Value> {
    let mut edits = vec![
        json!({}),
        json!({"metadata": {"labels": {"pool": "a"}}}),
        json!({"metadata": {"labels": {"pool": "b"}}}),
        json!({"metadata": {"labels": {"pool": null}}}),
        json!({"metadata": {"annotations": {"example.com/a": "1"}}}),
        json!({"metadata": {"annotations": {"example.com/a": null}}}),
        json!({"metadata": {"finalizers": ["example.com/f"]}}),
        json!({"metadata": {"finalizers": ["example.com/g"]}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"uid": "<uid>", "resourceVersion": "<version>", "labels": {"pool": "c"}}}),
        json!({"metadata": {"uid": "<first uid>", "labels": {"pool": "d"}}}),
        json!({"metadata": {"resourceVersion": "<first version>", "labels": {"pool": "e"}}}),
        json!({"metadata": {"generation": 7}}),
    ];
    if kind.has_status() && !kind.is_custom() {
        edits.extend([
            json!({"status": {"conditions": [condition("A", "False")]}}),
            json!({"status": {"conditions": [condition("B", "True"), condition("C", "True")]}}),
        ]);
    }
    edits.extend(match kind {
        Kind::Node => vec![
            json!({"spec": {"taints": [taint("readiness.k8s.io/a")]}}),
            json!({"spec": {"taints": [taint("readiness.k8s.io/b"), taint("example.com/theirs")]}}),
            json!({"spec": {"taints": null}}),
            json!({"spec": {"taints": [taint("twice"), taint("twice")]}}),
            json!({"spec": {"unschedulable": true}, "status": {"allocatable": {"example.com/gpu": "1"}}}),
            json!({"spec": {"unschedulable": null}, "status": {"allocatable": {"example.com/gpu": "2"}}}),
        ],
        Kind::Pod => vec![
            json!({"status": {"phase": "Running"}}),
            json!({"status": {"phase": "Failed"}}),
            json!({"spec": {"nodeName": "w3"}}),
        ],
        Kind::DaemonSet => vec![
            json!({"spec": {"minReadySeconds": 5}, "status": {"observedGeneration": 1}}),
            json!({"spec": {"template": {"spec": {"nodeSelector": {"pool": ""}}}}}),
        ],
        Kind::CsiNode => vec![
            json!({"spec": {"drivers": [{"name": "b.example.com", "nodeID": "n"}]}}),
            // Not `[]`: it differs from `null` only in the managed fields, which makes a revision.
            json!({"spec": {"drivers": null}}),
        ],
        Kind::ResourceSlice => {
            let pool = |generation| json!({"name": "w1", "generation": generation, "resourceSliceCount": 1});
            vec![
                json!({"spec": {"pool": pool(2)}}),
                json!({"spec": {"pool": pool(3), "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}}),
            ]
        }
        Kind::NodeReadinessRule => vec![
            json!({"spec": {"dryRun": true}, "status": {"observedGeneration": 1}}),
            json!({"spec": {"dryRun": false}, "status": {"observedGeneration": 2}}),
            json!({"spec": {"dryRun": null}}),
            json!({"status": null}),
        ],
        Kind::NodeClaim => vec![
            json!({"status": {"nodeName": "w1"}}),
            json!({"status": {"nodeName": "w2", "providerID": "p"}}),
        ],
        Kind::NodePool => vec![
            json!({"spec": {"weight": 1}}),
            json!({"spec": {"weight": 2}, "status": {"resources": {"nodes": "1"}}}),
        ],
    });
    edits
}

/// Patches that test what they replace, as the product's do, and some that do not apply.
fn json_patches(kind: Kind) -> Vec<Value> {
    let test = |path: &str, value: &str| json!({"op": "test", "path": path, "value": value});
    let uid = || test("/metadata/uid", "<uid>");
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let mut patches = vec![
        json!([uid(), add("/metadata/labels", json!({"pool": "a"}))]),
        json!([
            test("/metadata/uid", "<first uid>"),
            add("/metadata/labels", json!({"pool": "b"}))
        ]),
        json!([
            uid(),
            add("/metadata/annotations/example.com~1a", json!("2"))
        ]),
        json!([uid(), {"op": "remove", "path": "/metadata/annotations/example.com~1a"}]),
        json!([
            {"op": "test", "path": "/metadata/annotations", "value": null},
            add("/metadata/annotations", json!({"example.com/a": "3"})),
        ]),
        json!([{"op": "test", "path": "/metadata/annotations/absent", "value": null}, add("/metadata/labels/pool", json!("a"))]),
        json!([
            uid(),
            test("/metadata/finalizers", "<finalizers>"),
            add("/metadata/finalizers", json!(["example.com/f"])),
        ]),
        json!([uid(), {"op": "remove", "path": "/metadata/finalizers"}]),
        json!([test("/metadata/name", "another")]),
        json!([{"op": "replace", "path": "/absent/field", "value": 1}]),
        json!([add("/metadata/resourceVersion", json!("<first version>"))]),
    ];
    match kind {
        Kind::Node => patches.extend([
            json!([uid(), test("/spec/taints", "<taints>"), add("/spec/taints", json!([taint("readiness.k8s.io/a")]))]),
            json!([uid(), test("/spec/taints", "<taints>"), {"op": "remove", "path": "/spec/taints"}]),
            json!([
                {"op": "test", "path": "/spec/taints", "value": null},
                add("/spec/taints", json!([taint("readiness.k8s.io/c")])),
            ]),
            json!([add("/spec/taints/-", taint("example.com/more"))]),
            json!([add("/spec/taints", json!([]))]),
        ]),
        Kind::NodeReadinessRule => patches.extend([
            json!([uid(), add("/status", json!({"observedGeneration": 3}))]),
            json!([uid(), add("/spec/dryRun", json!(true))]),
        ]),
        _ => {}
    }
    patches
}

fn strategic(kind: Kind) -> Vec<Value> {
    let mut patches = vec![
        json!({"metadata": {"labels": {"pool": "a"}}}),
        json!({"metadata": {"finalizers": ["example.com/g"]}}),
        json!({"metadata": {"uid": "<first uid>", "labels": {"pool": "b"}}}),
    ];
    if matches!(kind, Kind::Node | Kind::Pod) {
        patches.extend([
            json!({"metadata": {"uid": "<uid>"}, "status": {"conditions": [condition("A", "True")]}}),
            json!({"status": {"conditions": [condition("A", "False"), condition("C", "True")]}}),
            json!({"status": {"conditions": [{"$patch": "delete", "type": "A"}, condition("B", "True")]}}),
            json!({"status": {"conditions": [condition("D", "True"), condition("B", "Unknown")]}}),
            json!({"status": {"conditions": [{"$patch": "delete", "type": "absent"}]}}),
        ]);
    }
    if kind == Kind::Node {
        patches.push(json!({"spec": {"taints": [taint("readiness.k8s.io/a")]}}));
    }
    patches
}

fn taint(key: &str) -> Value {
    json!({"key": key, "effect": "NoSchedule"})
}

pub(crate) fn condition(condition_type: &str, status: &str) -> Value {
    json!({
        "type": condition_type,
        "status": status,
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// A pod, bound to this node.
pub(crate) fn pod(node: Option<&str>) -> Value {
    json!({"spec": {"nodeName": node, "containers": [{"name": "main", "image": "example.invalid/main"}]}})
}

pub(crate) fn daemon_set() -> Value {
    let labels = json!({"app": "test"});
    json!({"spec": {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example.invalid/main"}]},
        },
    }})
}

pub(crate) fn rule() -> Value {
    json!({"spec": {
        "conditions": [{"type": "example.com/Ready", "requiredStatus": "True"}],
        "enforcementMode": "continuous",
        "taint": {"key": "readiness.k8s.io/test", "effect": "NoSchedule"},
        "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
    }})
}

pub(crate) fn claim() -> Value {
    let class = json!({"group": "karpenter.test", "kind": "TestNodeClass", "name": "default"});
    json!({"spec": {"nodeClassRef": class, "requirements": []}})
}

pub(crate) fn pool() -> Value {
    json!({"spec": {"template": claim()}})
}
