//! Handwritten sequences, of what chance makes seldom or never.

use nodegate_simulation::{Kind, Part};
use serde_json::{Value, json};

use crate::random::{self, bodies, pod};
use crate::step::{Slot, Step};

const NODE: Slot = Slot(Kind::Node, 0);
const POD: Slot = Slot(Kind::Pod, 0);
const RULE: Slot = Slot(Kind::NodeReadinessRule, 0);

/// Every sequence with the behaviour it shows.
pub(crate) fn all() -> Vec<(&'static str, Vec<Step>)> {
    #[rustfmt::skip]
    let mut all = vec![
        ("what is not there is not found", nothing()),
        ("a namespace that is not there takes nothing", no_namespace()),
        ("an object goes with its last finalizer", finalizers()),
        ("a pod has its time to end", pods()),
        ("a pod is bound once", binding()),
    ];
    all.extend(Kind::ALL.map(|kind| ("the life of each kind", life(kind))));
    all
}

fn life(kind: Kind) -> Vec<Step> {
    let slot = Slot(kind, 0);
    let mut steps: Vec<Step> = bodies(kind)
        .into_iter()
        .flat_map(|body| {
            [
                Step::Create(slot, body),
                Step::Delete(slot, json!({}), Some(0)),
            ]
        })
        .collect();
    let finalizers = json!({"metadata": {"finalizers": null}});
    steps.push(Step::Merge(slot, Part::Main, finalizers));
    steps
}

fn nothing() -> Vec<Step> {
    let mut steps = Vec::new();
    for kind in Kind::ALL {
        let slot = Slot(kind, 1);
        steps.extend([
            Step::Merge(slot, Part::Main, json!({})),
            Step::Delete(slot, json!({}), None),
            Step::Delete(slot, json!({"uid": "1"}), None),
            Step::List(kind, None, "", ""),
        ]);
        if kind.has_status() {
            steps.push(Step::Merge(slot, Part::Status, json!({})));
        }
    }
    steps
}

fn no_namespace() -> Vec<Step> {
    vec![
        Step::Create(Slot(Kind::Pod, 3), pod(None)),
        Step::List(Kind::Pod, Some("nowhere"), "", ""),
    ]
}

fn finalizers() -> Vec<Step> {
    let mut steps = Vec::new();
    let none = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    for slot in [NODE, RULE, POD] {
        let with_two = json!({"metadata": {"finalizers": ["example.com/f", "example.com/g"]}});
        let mut body = bodies(slot.0)[0].clone();
        json_patch::merge(&mut body, &with_two);
        let list = |finalizers: Value| {
            let patch = json!({"metadata": {"finalizers": finalizers, "labels": {"pool": "a"}}});
            Step::Merge(slot, Part::Main, patch)
        };
        steps.extend([
            Step::Create(slot, body.clone()),
            Step::Delete(slot, json!({}), None),
            Step::Delete(slot, json!({}), None),
            Step::Create(slot, body.clone()),
            list(json!(["example.com/h", "example.com/f"])),
            list(json!(["example.com/f"])),
            list(json!([])),
            Step::Create(slot, body),
            Step::Json(slot, Part::Main, none.clone()),
            Step::Delete(slot, json!({}), None),
        ]);
    }
    steps
}

fn binding() -> Vec<Step> {
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    vec![
        Step::Bind(POD, "w1"),
        Step::Bind(NODE, "w1"),
        Step::Create(POD, pod(None)),
        Step::Bind(POD, "w1"),
        Step::Bind(POD, "w1"),
        Step::Bind(POD, "w2"),
        Step::Delete(POD, json!({}), None),
        Step::Bind(POD, "w1"),
        Step::Delete(POD, json!({}), Some(0)),
        Step::Create(POD, pod(None)),
        Step::Merge(POD, Part::Main, finalizers(json!(["example.com/f"]))),
        Step::Delete(POD, json!({}), None),
        Step::Bind(POD, "w1"),
        Step::Merge(POD, Part::Main, finalizers(Value::Null)),
    ]
}

fn pods() -> Vec<Step> {
    let delete = |grace| Step::Delete(POD, json!({"uid": "<uid>"}), grace);
    let status = |status: Value| Step::Merge(POD, Part::Status, json!({"status": status}));
    let ready = random::condition("Ready", "True");
    let live = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";
    vec![
        Step::Create(POD, pod(None)),
        delete(None),
        Step::Create(POD, pod(Some("w1"))),
        status(json!({"phase": "Running", "conditions": [ready]})),
        delete(None),
        delete(None),
        delete(Some(60)),
        delete(Some(10)),
        status(json!({"phase": "Succeeded"})),
        delete(Some(0)),
        Step::Create(POD, pod(Some("w2"))),
        status(json!({"phase": "Failed"})),
        Step::Create(Slot(Kind::Pod, 1), pod(Some("w1"))),
        Step::List(Kind::Pod, None, "", live),
        delete(None),
        Step::Delete(Slot(Kind::Pod, 1), json!({}), Some(0)),
    ]
}
