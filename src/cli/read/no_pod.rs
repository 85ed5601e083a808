//! Why `DaemonSet`s have no pod on a node: their pods that wait for room there, and what keeps pods from being made.

use std::collections::BTreeSet;

use futures::TryStreamExt;

use super::builder::{EVENTS_OF, events};
use super::source::ObjectSource;
use crate::snapshot::{PendingPod, Snapshot, last_seen};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::object::ObjectKey;
use nodegate_core::plan::Outcome;
use nodegate_core::selector::Filter;

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
    for key in missing.into_iter().take(EVENTS_OF) {
        let unbound = Filter::default().within(Some(&key.namespace));
        let unbound = unbound.is("spec.nodeName", "");
        let mut pods = source.list(ResourceKind::Pods, &unbound);
        while let Some(json) = pods.try_next().await? {
            if let Some(pod) = PendingPod::read(&json).filter(|pod| pod.is_for(node)) {
                let key = ObjectKey::of(&pod.unready.pod.metadata);
                snapshot.unready.insert(key, pod.unready);
            }
        }
        let events = events(source, "DaemonSet", &key).await?.into_iter();
        let mut refusals = events.filter(|it| it.reason.as_deref() == Some("FailedCreate"));
        let refusal = refusals.next().map(|it| {
            let since = last_seen(&it);
            (
                "event/FailedCreate".into(),
                it.message.unwrap_or_default(),
                since,
            )
        });
        snapshot.no_pod.insert(key, refusal.into_iter().collect());
    }
    Ok(())
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
        for (object, expected) in [
            (
                pending("n"),
                "not bound to a node: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.",
            ),
            (
                event("FailedCreate"),
                "event/FailedCreate  FailedCreate: exceeded quota (30s)",
            ),
        ] {
            let text = explained(&[object]);
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        let others = explained(&[pending("another"), event("SuccessfulDelete")]);
        assert_eq!(others, explained(&[]));
    }
}
