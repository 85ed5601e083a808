//! Nodegate leaves others' data alone: taints of no rule, the order of the taints that stay, labels, annotations, cordons and
//! conditions; of a rule everything but its status and Nodegate's finalizer; of a claim everything but its deletion time.

use nodegate_core::api::names::{FINALIZER, NOT_READY_IN_TIME};
use nodegate_core::condition::CriticalComponentClass;
use serde_json::{Value, json};

use super::ledger::is_ours;
use super::rule::TaintId;
use super::{is_synthesized, seconds};
use crate::Kind;
use crate::sim::actors::ask::text;
use crate::sim::cluster::Change;
use crate::sim::law::{Law, Moment};

/// The annotation prefixes of Nodegate and of the project that it replaces.
const ANNOTATIONS: [&str; 2] = ["nodegate.dev/", "readiness.k8s.io/"];
/// The only annotation on claims that Nodegate may set.
const TERMINATION: &str = "karpenter.sh/nodeclaim-termination-timestamp";

pub(super) struct Foreign;

impl Law for Foreign {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        let changes = moment.new_changes.iter();
        for change in changes.filter(|change| is_ours(change.who)) {
            let (Some(before), Some(after)) = (&change.before, &change.after) else {
                continue;
            };
            let classes = &moment.settings.classes;
            let kept = |object: &Value| match change.key.kind {
                Kind::Node => node_of_others(object, classes),
                Kind::NodeReadinessRule => rule_of_others(object),
                Kind::NodeClaim => claim_of_others(object),
                _ => Value::Null,
            };
            let (was, is) = (kept(before), kept(after));
            if was != is {
                return Err(tell(change, &format!("{was} became {is}")));
            }
            if change.key.kind == Kind::Node {
                taints(moment, before, after).map_err(|what| tell(change, &what))?;
            }
        }
        Ok(())
    }
}

fn tell(change: &Change, what: &str) -> String {
    let at = seconds(change.at);
    format!("{:?} changed {} at {at}: {what}", change.who, change.key)
}

fn taints(moment: &Moment<'_>, before: &Value, after: &Value) -> Result<(), String> {
    let is_known = |taint: &TaintId| moment.all_rules().any(|rule| rule.is_about(taint));
    for (taint, object) in TaintId::all(before) {
        match TaintId::all(after).find(|(other, _)| *other == taint) {
            Some((_, now)) if now != object => return Err(format!("{object} became {now}")),
            // Another law covers taints that were removed because of an annotation.
            None if !is_known(&taint) && object.get("timeAdded").is_none() => {
                return Err(format!("{object} is gone, which no rule was ever about"));
            }
            _ => {}
        }
    }
    let stays = |taints: &Value, other: &Value| -> Vec<TaintId> {
        let all = TaintId::all(taints).map(|(taint, _)| taint);
        all.filter(|taint| taint.is_on(other)).collect()
    };
    if stays(before, after) != stays(after, before) {
        return Err("what stays is in another order".to_owned());
    }
    let mut new = TaintId::all(after).filter(|(taint, _)| !taint.is_on(before));
    let adds = |taint: &TaintId| {
        moment
            .all_rules()
            .any(|rule| rule.adds() && rule.taint() == *taint)
    };
    match new.find(|(taint, _)| !adds(taint)) {
        Some((taint, _)) => Err(format!("{taint} is new, which no rule puts on")),
        None => Ok(()),
    }
}

/// Everything on a node that belongs to others: all but the taints, which are compared one by one, our annotations, and our
/// conditions.
fn node_of_others(node: &Value, classes: &[CriticalComponentClass]) -> Value {
    let mut node = without_version(node);
    if let Some(spec) = node["spec"].as_object_mut() {
        spec.remove("taints");
    }
    if let Some(annotations) = node["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| !ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix)));
    }
    let is_made = |condition: &Value| {
        let kind = text(&condition["type"]);
        kind == NOT_READY_IN_TIME || is_synthesized(kind, classes)
    };
    if let Some(conditions) = node["status"]["conditions"].as_array_mut() {
        conditions.retain(|condition| !is_made(condition));
    }
    without_empty(node)
}

fn rule_of_others(rule: &Value) -> Value {
    let mut rule = without_version(rule);
    if let Some(fields) = rule.as_object_mut() {
        fields.remove("status");
    }
    if let Some(finalizers) = rule["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    without_empty(rule)
}

fn claim_of_others(claim: &Value) -> Value {
    let mut claim = without_version(claim);
    if let Some(annotations) = claim["metadata"]["annotations"].as_object_mut() {
        annotations.remove(TERMINATION);
    }
    without_empty(claim)
}

fn without_version(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // The API server maintains these fields.
        for field in [
            "resourceVersion",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            metadata.remove(field);
        }
    }
    object
}

/// Treats empty values like absent ones.
fn without_empty(mut object: Value) -> Value {
    for part in ["metadata", "spec", "status"] {
        let is_empty =
            |value: &Value| *value == Value::Null || *value == json!({}) || *value == json!([]);
        if let Some(fields) = object[part].as_object_mut() {
            fields.retain(|_, value| !is_empty(value));
        }
        if is_empty(&object[part])
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove(part);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::laws::testing::{Story, node, taint};

    #[test]
    fn only_our_own_taints_and_annotations_may_change() {
        let gpu = json!({ "key": "example.com/gpu", "effect": "NoSchedule", "value": "yes" });
        let cordon = json!({ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" });
        #[rustfmt::skip]
        let cases = [
            ("our taint", json!({ "spec": { "taints": [gpu, cordon] } }), true),
            ("another's taint", json!({ "spec": { "taints": [taint(), cordon] } }), false),
            ("its value", json!({ "spec": { "taints": [taint(), { "key": "example.com/gpu", "effect": "NoSchedule" }, cordon] } }), false),
            ("the order", json!({ "spec": { "taints": [taint(), cordon, gpu] } }), false),
            ("a taint of nobody", json!({ "spec": { "taints": [taint(), gpu, cordon, { "key": "x", "effect": "NoExecute" }] } }), false),
            ("our annotation", json!({ "metadata": { "annotations": { "nodegate.dev/x": "y" } } }), true),
            ("another's annotation", json!({ "metadata": { "annotations": { "x": "z" } } }), false),
            ("a label", json!({ "metadata": { "labels": { "pool": "b" } } }), false),
            ("the cordon", json!({ "spec": { "unschedulable": null } }), false),
        ];
        for (name, patch, fine) in cases {
            let mut story = Story::under(json!({}));
            let mut node = node("n");
            node["metadata"]["annotations"] = json!({ "x": "y" });
            node["spec"] = json!({ "unschedulable": true, "taints": [taint(), gpu, cordon] });
            story.create(node);
            story.patch_by_nodegate("n", patch);
            story.judged(&mut Foreign, fine, name);
        }
    }
}
