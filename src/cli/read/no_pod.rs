//! Why `DaemonSet`s have no pod on a node: their pods that wait for room there, and what keeps pods from being made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;

use super::builder::{LOOKED_AT, events};
use super::source::ObjectSource;
use crate::snapshot::{PendingPod, Snapshot, last_seen};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::object::ObjectKey;
use nodegate_core::plan::Outcome;
use nodegate_core::selector::Filter;

/// Annotations of a namespace by which admission gives its pods a node selector: `OpenShift`'s, and that of `PodNodeSelector`.
const NODE_SELECTORS: [&str; 2] = [
    "openshift.io/node-selector",
    "scheduler.alpha.kubernetes.io/node-selector",
];

/// An object, what it says, and since when.
type Why = (String, String, Option<Timestamp>);

/// Reads this of the first `DaemonSet`s that the node lacks pods of.
pub(super) async fn no_pod(
    source: &ObjectSource,
    node: &str,
    snapshot: &mut Snapshot,
) -> Result<(), Gap> {
    let plan = snapshot.view.plan(node);
    let outcomes = plan.iter().flat_map(|plan| &plan.outcomes);
    let missing: BTreeSet<ObjectKey> = outcomes.flat_map(Outcome::missing).cloned().collect();
    drop(plan);
    let mut spaces: BTreeMap<Arc<str>, Vec<Why>> = BTreeMap::new();
    for key in missing.into_iter().take(LOOKED_AT) {
        if !spaces.contains_key(&key.namespace) {
            let why = in_namespace(source, node, &key.namespace, snapshot).await?;
            spaces.insert(key.namespace.clone(), why);
        }
        let events = events(source, "DaemonSet", &key).await?.into_iter();
        let mut refused = events.filter(|it| it.reason.as_deref() == Some("FailedCreate"));
        let refused = refused.next().map(|it| {
            let (since, message) = (last_seen(&it), it.message.unwrap_or_default());
            ("event/FailedCreate".into(), message, since)
        });
        let of_namespace = spaces[&key.namespace].iter().cloned();
        let why = refused.into_iter().chain(of_namespace).collect();
        snapshot.no_pod.insert(key, why);
    }
    Ok(())
}

/// What keeps pods of this namespace off the node. Adds the pods that wait for room there to the snapshot.
async fn in_namespace(
    source: &ObjectSource,
    node: &str,
    namespace: &str,
    snapshot: &mut Snapshot,
) -> Result<Vec<Why>, Gap> {
    let unbound = Filter::default().within(Some(namespace));
    let unbound = unbound.is("spec.nodeName", "");
    let mut pods = source.list(ResourceKind::Pods, &unbound);
    while let Some(json) = pods.try_next().await? {
        if let Some(pod) = PendingPod::read(&json).filter(|pod| pod.is_for(node)) {
            let key = ObjectKey::of(&pod.unready.pod.metadata);
            snapshot.unready.insert(key, pod.unready);
        }
    }
    let named = Filter::named(namespace);
    let spaces = source.all::<Namespace>(ResourceKind::Namespaces, &named);
    let Namespace { metadata, .. } = spaces.await?.pop().unwrap_or_default();
    let object = format!("namespace/{namespace}");
    let going = metadata.deletion_timestamp.map(|since| {
        let going = "it is being deleted: no pod can be created in it";
        (object.clone(), going.into(), Some(since.0))
    });
    let labels = snapshot.view.node(node).map(|it| &it.node.labels);
    let lacks = |pair: &str| {
        let (key, value) = pair.trim().split_once('=').unwrap_or((pair, ""));
        let label = labels.and_then(|labels| labels.get(key));
        label.map_or("", String::as_str) != value
    };
    let mut selectors = metadata.annotations.into_iter().flatten();
    let narrow = selectors
        .find(|(by, selector)| NODE_SELECTORS.contains(&&**by) && selector.split(',').any(lacks));
    let narrow = narrow.map(|(by, selector)| {
        let narrows = format!("its {by} '{selector}' keeps its pods off this node");
        (object.clone(), narrows, None)
    });
    Ok([going, narrow].into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::FutureExt;
    use serde_json::{Value, json};

    use crate::explain::explain_node;
    use crate::page::{Page, Render};
    use crate::read::{Lists, ObjectSource, put, snapshot};
    use crate::snapshot::Wanted;
    use crate::testing::{Builder, GATE, at, daemon_set, node, rule};

    fn typed(kind: &str, mut object: Value) -> Value {
        object["kind"] = kind.into();
        object
    }

    /// What is said of node n, which lacks a pod of `n22/agent`, beside these objects.
    fn explained(others: &[Value]) -> String {
        let rule = rule("r")
            .waits_for("daemonset.nodegate.dev/n22.agent")
            .json()
            .clone();
        let node = node("n")
            .label("zone", "a")
            .taint(GATE, "NoSchedule")
            .json()
            .clone();
        let mut agent = daemon_set("n22/agent")
            .selecting("app", "agent")
            .toleration("{operator: Exists}");
        let agent = agent.json().clone();
        let known = [
            ("NodeReadinessRule", rule),
            ("Node", node),
            ("DaemonSet", agent),
        ];
        let known = known.map(|(kind, object)| typed(kind, object));
        let mut lists = Lists::of(at(60), BTreeMap::new());
        for object in known.iter().chain(others) {
            put(&mut lists, object.clone(), "file.yaml:1");
        }
        let source = ObjectSource::Memory(lists);
        let read = snapshot(&source, None, &Wanted::of_node("n")).now_or_never();
        let explained = explain_node(&read.unwrap().unwrap(), "n").unwrap();
        explained.text(&Page::plain(at(60)))
    }

    fn pending(node: &str) -> Value {
        let fields = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
        let terms = json!({"nodeSelectorTerms": [{"matchFields": fields}]});
        let full = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu.",
        });
        json!({"kind": "Pod",
            "metadata": {"namespace": "n22", "name": "agent-x", "labels": {"app": "agent"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": true}]},
            "spec": {"containers": [], "nodeSelector": {"added-by": "admission"},
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}},
            "status": {"phase": "Pending", "conditions": [full]},
        })
    }

    #[test]
    fn why_a_daemon_set_has_no_pod_on_a_node_is_said() {
        let event = |reason: &str| {
            json!({"kind": "Event", "metadata": {"namespace": "n22", "name": reason}, "type": "Warning", "reason": reason,
                "message": format!("{reason}: exceeded quota"), "lastTimestamp": at(30),
                "involvedObject": {"kind": "DaemonSet", "namespace": "n22", "name": "agent"}})
        };
        let namespace = |selector: &str| {
            json!({"kind": "Namespace", "metadata": {"name": "n22",
                "annotations": {"openshift.io/node-selector": selector}}})
        };
        let mut going = namespace("");
        going["metadata"]["deletionTimestamp"] = json!(at(0));
        for (object, expected) in [
            (
                pending("n"),
                "not bound to a node: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.",
            ),
            (
                event("FailedCreate"),
                "event/FailedCreate  FailedCreate: exceeded quota (30s)",
            ),
            (
                going,
                "namespace/n22  it is being deleted: no pod can be created in it (60s)",
            ),
            (
                namespace("zone=b, disk="),
                "namespace/n22  its openshift.io/node-selector 'zone=b, disk=' keeps its pods off this node",
            ),
        ] {
            let text = explained(&[object]);
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        let others = explained(&[
            pending("another"),
            event("SuccessfulDelete"),
            namespace("zone=a, disk="),
        ]);
        assert_eq!(others, explained(&[]));
    }
}
