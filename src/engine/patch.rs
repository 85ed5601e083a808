//! Builds the patches that carry out plans. Each tests the values that it was computed from, so it can neither overwrite
//! another writer's change nor change a new object of the same name.

use std::collections::BTreeMap;

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, TestOperation};
use serde_json::{Value, json};

use nodegate_core::api::NodeReadinessRuleStatus;
use nodegate_core::object::{Node, NodeClaim, karpenter::TERMINATION_TIMESTAMP};
use nodegate_core::plan::{ConditionChanges, TaintPlan, Urgency};

struct Operations(Vec<PatchOperation>);

impl Operations {
    /// Starts with a test of the UID.
    fn on(uid: &str) -> Self {
        Self(Vec::new()).test(&["metadata", "uid"], json!(uid))
    }

    fn test(self, path: &[&str], value: Value) -> Self {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.and(PatchOperation::Test(TestOperation { path, value }))
    }

    fn add(self, path: &[&str], value: Value) -> Self {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.and(PatchOperation::Add(AddOperation { path, value }))
    }

    fn remove(self, path: &[&str]) -> Self {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.and(PatchOperation::Remove(RemoveOperation { path }))
    }

    fn and(mut self, operation: PatchOperation) -> Self {
        self.0.push(operation);
        self
    }

    /// Tests a list. An empty list is an absent field.
    fn test_list<T: serde::Serialize>(self, path: &[&str], list: &[T]) -> Self {
        let value = (!list.is_empty()).then(|| json!(list));
        self.test(path, value.unwrap_or_default())
    }

    /// Replaces a list after testing its old value.
    fn replace_list<T: serde::Serialize>(self, path: &[&str], old: &[T], new: &[T]) -> Self {
        let tested = self.test_list(path, old);
        match (old.is_empty(), new.is_empty()) {
            (true, true) => tested,
            (false, true) => tested.remove(path),
            (_, false) => tested.add(path, json!(new)),
        }
    }
}

/// A plan's patch for a Node's taints and annotations.
pub(super) fn node(node: &Node, plan: &TaintPlan) -> Patch {
    const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];
    let mut operations = Operations::on(&node.uid);
    let annotations = &plan.annotations;
    if let Some(taints) = plan.taints(node) {
        operations = operations.replace_list(&["spec", "taints"], &node.taints, &taints);
    } else if !plan.completes.is_empty() {
        // What is completed has no taint.
        operations = operations.test_list(&["spec", "taints"], &node.taints);
    }
    if node.annotations.is_none() {
        let added = annotations.iter();
        let added = added.filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let added: BTreeMap<_, _> = added.collect();
        if !added.is_empty() || !plan.relied_on.is_empty() {
            operations = operations.test(&ANNOTATIONS, Value::Null);
        }
        if !added.is_empty() {
            operations = operations.add(&ANNOTATIONS, json!(added));
        }
    } else {
        for key in &plan.relied_on {
            let path = [ANNOTATIONS[0], ANNOTATIONS[1], key];
            operations = operations.test(&path, json!(node.annotation(key)));
        }
        for (key, value) in annotations {
            let path = [ANNOTATIONS[0], ANNOTATIONS[1], key];
            operations = match value {
                Some(value) => operations.add(&path, json!(value)),
                None => operations.remove(&path),
            };
        }
    }
    Patch(operations.0)
}

/// Changes a node's published conditions by a strategic merge patch of the status, which leaves other reporters' conditions alone.
pub(super) fn conditions(node: &Node, changes: &ConditionChanges<'_>, now: Timestamp) -> Value {
    let written = |time: Timestamp| time.strftime("%FT%TZ").to_string();
    let set = changes.set.iter().map(|condition| {
        // Its time stays if its status does.
        let is_kept = condition.urgency == Urgency::Detail;
        let published = node.condition(condition.kind).filter(|_| is_kept);
        let transition = published.and_then(|it| it.transition);
        json!({
            "type": condition.kind,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastHeartbeatTime": written(now),
            "lastTransitionTime": written(transition.unwrap_or(now)),
        })
    });
    let withdrawn = changes.withdraw.iter();
    let withdrawn = withdrawn.map(|kind| json!({ "$patch": "delete", "type": kind }));
    json!({
        "metadata": { "uid": &*node.uid },
        "status": { "conditions": set.chain(withdrawn).collect::<Vec<_>>() },
    })
}

/// Makes Karpenter wait for the pods of a claim's node until `now` at most; `None` if it does anyway: no termination is postponed.
/// The patch names the UID, so no other claim takes it, and no version: Karpenter may write meanwhile, but never an earlier time.
pub(super) fn claim_termination(claim: &NodeClaim, now: Timestamp) -> Option<Value> {
    let known = claim.termination.as_ref();
    let known: Option<Timestamp> = known.and_then(|time| time.parse().ok());
    if known.is_some_and(|known| known <= now) {
        return None;
    }
    Some(json!({
        "metadata": {
            "uid": &*claim.uid,
            "annotations": { TERMINATION_TIMESTAMP: now.strftime("%FT%TZ").to_string() },
        },
    }))
}

pub(super) fn finalizers(rule_uid: &str, old: &[String], new: &[String]) -> Patch {
    let operations = Operations::on(rule_uid);
    let operations = operations.replace_list(&["metadata", "finalizers"], old, new);
    Patch(operations.0)
}

pub(super) fn rule_status(rule_uid: &str, status: &NodeReadinessRuleStatus) -> Patch {
    Patch(Operations::on(rule_uid).add(&["status"], json!(status)).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodegate_core::api::TaintEffect;
    use nodegate_core::object::Taint;
    use nodegate_core::plan::{ChangeKind, TaintChange};

    fn taint(key: &str) -> Taint {
        Taint::new(key, "", TaintEffect::NoSchedule)
    }

    fn tainted(taints: &[&str], annotations: Option<&[&str]>) -> Node {
        Node {
            uid: "u".into(),
            taints: taints.iter().map(|key| taint(key)).collect(),
            annotations: annotations.map(|keys| {
                keys.iter()
                    .map(|key| ((*key).to_owned(), String::new()))
                    .collect()
            }),
            ..Node::default()
        }
    }

    #[test]
    fn a_node_is_not_gated_over_a_completion_that_was_not_seen() {
        let plan = TaintPlan {
            annotations: BTreeMap::from([("n/owner".to_owned(), Some("v".to_owned()))]),
            relied_on: vec!["n/completed".to_owned()],
            ..TaintPlan::default()
        };
        let test = |path: &str| json!({"op": "test", "path": path, "value": null});
        let some = json!(node(&tainted(&[], Some(&[])), &plan));
        assert_eq!(some[1], test("/metadata/annotations/n~1completed"));
        let none = json!(node(&tainted(&[], None), &plan));
        assert_eq!(none[1], test("/metadata/annotations"));
        let without_record = TaintPlan {
            annotations: BTreeMap::new(),
            ..plan
        };
        let bare = json!(node(&tainted(&[], None), &without_record));
        assert_eq!(
            bare.as_array().unwrap()[1..],
            [test("/metadata/annotations")]
        );
    }

    #[test]
    fn a_bootstrap_is_not_completed_beside_a_taint_that_was_not_seen() {
        let plan = TaintPlan {
            annotations: BTreeMap::from([("n/completed".to_owned(), Some("v".to_owned()))]),
            completes: vec!["r-uid".into()],
            ..TaintPlan::default()
        };
        for (taints, seen) in [
            (&[][..], Value::Null),
            (&["other"], json!([taint("other")])),
        ] {
            let patch = json!(node(&tainted(taints, Some(&[])), &plan));
            let test = json!({"op": "test", "path": "/spec/taints", "value": seen});
            assert_eq!(patch[1], test, "{taints:?}");
        }
    }

    #[test]
    fn a_termination_is_brought_forward_and_never_put_off() {
        let now = Timestamp::from_second(1_767_225_600).unwrap();
        for (name, known, is_written) in [
            ("none", None, true),
            ("earlier", Some("2025-12-31T23:00:00Z"), false),
            ("the same", Some("2026-01-01T00:00:00Z"), false),
            (
                "earlier in another zone",
                Some("2026-01-01T00:30:00+01:00"),
                false,
            ),
            ("later", Some("2026-01-01T01:00:00Z"), true),
            ("unreadable", Some("soon"), true),
        ] {
            let claim = NodeClaim {
                uid: "u".into(),
                termination: known.map(str::to_owned),
                ..NodeClaim::default()
            };
            let expected = json!({"metadata": {
                "uid": "u",
                "annotations": {"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-01T00:00:00Z"},
            }});
            let patch = claim_termination(&claim, now);
            assert_eq!(patch, is_written.then_some(expected), "{name}");
        }
    }

    #[test]
    fn a_node_patch_tests_what_it_replaces() {
        let set = |key: &str| BTreeMap::from([(key.to_owned(), Some("v".to_owned()))]);
        let drop = |key: &str| BTreeMap::from([(key.to_owned(), None)]);
        let uid = json!({"op": "test", "path": "/metadata/uid", "value": "u"});
        let a = json!([{"key": "a", "effect": "NoSchedule"}]);
        let change = |kind, key| TaintChange {
            kind,
            rule_name: "r".into(),
            rule_uid: "r-uid".into(),
            taint: taint(key),
            transition: None,
            why: String::new(),
            missing: None,
            components_ready: false,
            gave_up: false,
        };
        for (name, node_before, changes, annotations, expected) in [
            (
                "first taint, first annotation",
                tainted(&[], None),
                vec![change(ChangeKind::Added, "a")],
                set("n/k"),
                json!([uid, {"op": "test", "path": "/spec/taints", "value": null},
                       {"op": "add", "path": "/spec/taints", "value": a},
                       {"op": "test", "path": "/metadata/annotations", "value": null},
                       {"op": "add", "path": "/metadata/annotations", "value": {"n/k": "v"}}]),
            ),
            (
                "last taint goes",
                tainted(&["a"], Some(&["n/k"])),
                vec![change(ChangeKind::Removed, "a")],
                drop("n/k"),
                json!([uid, {"op": "test", "path": "/spec/taints", "value": a},
                       {"op": "remove", "path": "/spec/taints"},
                       {"op": "remove", "path": "/metadata/annotations/n~1k"}]),
            ),
            (
                "annotation alone",
                tainted(&["a"], Some(&[])),
                vec![],
                set("n/k"),
                json!([uid, {"op": "add", "path": "/metadata/annotations/n~1k", "value": "v"}]),
            ),
        ] {
            let plan = TaintPlan {
                annotations,
                changes,
                ..TaintPlan::default()
            };
            assert_eq!(json!(node(&node_before, &plan)), expected, "{name}");
        }
    }
}
