//! Which workloads no node takes because a rule holds all of its nodes: what the rule waits for may need one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;

use super::source::ObjectSource;
use crate::snapshot::{PendingPod, Snapshot, condition, owner};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::finding::{Check, Finding};
use nodegate_core::object::{Node, Taint, Watched};
use nodegate_core::rule::CompiledSpec;
use nodegate_core::selector::Filter;
use nodegate_core::text::enumerated;

/// By rule in force that holds all of its nodes: pods that no node takes, and that only taints of rules keep off one of these.
pub(super) async fn kept_out(
    source: &ObjectSource,
    snapshot: &Snapshot,
) -> Result<BTreeMap<Arc<str>, Finding>, Gap> {
    let live = || snapshot.usable().filter(|(rule, _)| rule.live().is_some());
    let is_of = |taint: &Taint, spec: &CompiledSpec| taint.is(&spec.taint.key, spec.effect);
    let mut found = BTreeMap::new();
    for (rule, spec) in live() {
        let holds = |node: &Node| node.taints.iter().any(|taint| is_of(taint, spec));
        if !snapshot.selected(spec).any(holds) || !snapshot.selected(spec).all(holds) {
            continue;
        }
        // The snapshot may have only one of them.
        let nodes = Filter::labelled(spec.selector.clone());
        let nodes = source.all::<Watched<Node>>(ResourceKind::Nodes, &nodes);
        let nodes = nodes.await?.into_iter().filter_map(|it| it.read().ok());
        let nodes: Vec<Node> = nodes.collect();
        if !nodes.iter().all(holds) {
            continue;
        }
        let mut owners = BTreeSet::new();
        let unbound = Filter::default().is("spec.nodeName", "");
        let mut pods = source.list(ResourceKind::Pods, &unbound);
        while let Some(json) = pods.try_next().await? {
            let Some(pod) = PendingPod::read(&json) else {
                continue;
            };
            let scheduled = condition(&pod.unready.pod, "PodScheduled");
            let is_unschedulable =
                scheduled.and_then(|it| it.reason.as_deref()) == Some("Unschedulable");
            let is_of_rules = |taint: &Taint| live().any(|(_, spec)| is_of(taint, spec));
            let is_kept_off = |node: &Node| {
                pod.asks_for(node)
                    && pod.repelled_by(node).any(|taint| is_of(taint, spec))
                    && pod.repelled_by(node).all(is_of_rules)
            };
            if is_unschedulable && nodes.iter().any(is_kept_off) {
                owners.insert(workload(&pod.unready.pod));
            }
        }
        if !owners.is_empty() {
            let (key, effect) = (&spec.taint.key, spec.effect);
            let what = format!(
                "it holds all of its nodes ({}), and its taint {key}:{effect} keeps pods off them that no other node takes: {}",
                nodes.len(),
                enumerated(owners.into_iter())
            );
            let fix = format!(
                "if what the rule waits for needs one of these, let it tolerate the taint: tolerations: [{{key: {key}, operator: Exists}}]"
            );
            let finding = Finding::of_rule(Check::DEADLOCK, &rule.name, what, &fix);
            found.insert(rule.name.clone(), finding);
        }
    }
    Ok(found)
}

/// What a pod belongs to, as `kind/namespace/name`: the Deployment instead of its `ReplicaSet`.
fn workload(pod: &Pod) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let namespace = text(&pod.metadata.namespace);
    let Some(owner) = owner(pod) else {
        return format!("pod/{namespace}/{}", text(&pod.metadata.name));
    };
    let labels = pod.metadata.labels.as_ref();
    let hash = labels.and_then(|labels| labels.get("pod-template-hash"));
    match hash.and_then(|hash| owner.name.strip_suffix(&format!("-{hash}"))) {
        Some(deployment) => format!("deployment/{namespace}/{deployment}"),
        None => format!("{}/{namespace}/{}", owner.kind.to_lowercase(), owner.name),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::FutureExt;
    use serde_json::{Value, json};

    use crate::check::check;
    use crate::explain::{explain_node, explain_pod, explain_rule};
    use crate::page::{Page, Render};
    use crate::read::{Lists, ObjectSource, put, snapshot};
    use crate::snapshot::{PendingPod, Snapshot, Wanted};
    use crate::testing::at;

    fn rule(name: &str) -> Value {
        json!({"kind": "NodeReadinessRule", "metadata": {"name": name, "finalizers": ["readiness.node.x-k8s.io/cleanup-taints"]},
            "spec": {
                "dryRun": false,
                "enforcementMode": "bootstrap-only",
                "conditions": [{"type": "example.com/Net", "requiredStatus": "True"}],
                "taint": {"key": format!("readiness.k8s.io/{name}"), "effect": "NoSchedule"},
                "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
        }})
    }

    fn node(name: &str, taints: &[&str]) -> Value {
        let taints = taints
            .iter()
            .map(|key| json!({"key": key, "effect": "NoSchedule"}));
        json!({"kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}},
            "spec": {"taints": taints.collect::<Value>()}})
    }

    fn pod() -> Value {
        json!({"kind": "Pod",
            "metadata": {
                "namespace": "kube-system", "name": "operator-7d9-x", "labels": {"pod-template-hash": "7d9"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "operator-7d9", "uid": "u", "controller": true}],
            },
            "spec": {"containers": [], "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]},
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
        })
    }

    fn read(objects: &[Value], wanted: &Wanted) -> Snapshot {
        let mut lists = Lists::of(at(0), BTreeMap::new());
        for object in objects {
            put(&mut lists, object.clone(), "file.yaml:1");
        }
        let source = ObjectSource::Memory(lists);
        snapshot(&source, None, wanted)
            .now_or_never()
            .unwrap()
            .unwrap()
    }

    fn with(mut object: Value, path: &str, value: Value) -> Value {
        *object.pointer_mut(path).unwrap() = value;
        object
    }

    const NET: &str = "readiness.k8s.io/net";
    const DISK: &str = "readiness.k8s.io/disk";
    const NOT_READY: &str = "node.kubernetes.io/not-ready";

    #[test]
    fn workloads_that_no_node_takes_because_of_a_rule_are_found() {
        let held = || node("a", &[NET, NOT_READY]);
        let both = || node("a", &[NET, DISK]);
        let tolerant = with(pod(), "/spec/tolerations", json!([{"operator": "Exists"}]));
        let unseen = with(pod(), "/status/conditions", json!([]));
        #[rustfmt::skip]
        let cases = [
            ("the only node is held", vec![rule("net"), held(), pod()], &["rule/net"][..]),
            ("all are held", vec![rule("net"), held(), node("b", &[NET]), pod()], &["rule/net"]),
            ("by two rules", vec![rule("net"), rule("disk"), both(), pod()], &["rule/disk", "rule/net"]),
            ("a node is not held", vec![rule("net"), held(), node("b", &[]), pod()], &[]),
            ("another taint stays", vec![rule("net"), node("a", &[NET, "dedicated"]), pod()], &[]),
            ("it tolerates the taint", vec![rule("net"), held(), tolerant], &[]),
            ("the scheduler has not seen it", vec![rule("net"), held(), unseen], &[]),
            ("a dry run", vec![with(rule("net"), "/spec/dryRun", json!(true)), held(), pod()], &[]),
        ];
        for (name, objects, expected) in cases {
            let snapshot = read(&objects, &Wanted::checkup());
            let checkup = check(Vec::new(), &snapshot);
            let found = checkup.findings.iter().filter(|it| it.check.id == "NG005");
            let found: Vec<&str> = found.map(|it| &*it.object).collect();
            assert_eq!(found, expected, "{name}");
            assert!(found.is_empty() || checkup.is_no(), "{name}");
        }
    }

    #[test]
    fn node_rule_and_pod_are_explained_by_the_workloads_that_no_node_takes() {
        const DEADLOCK: &str = "keeps pods off them that no other node takes: deployment/kube-system/operator (if what the \
            rule waits for needs one of these, let it tolerate the taint: tolerations: [{key: readiness.k8s.io/net, operator: \
            Exists}])";
        let objects = [rule("net"), node("a", &[NET]), node("b", &[NET]), pod()];
        let page = Page::plain(at(0));
        let one = read(&objects, &Wanted::of_node("a"));
        let all = read(&objects, &Wanted::default());
        let pending = PendingPod::read(&pod().to_string()).unwrap();
        for text in [
            explain_node(&one, "a").unwrap().text(&page),
            explain_rule(&all, "net").unwrap().text(&page),
            explain_pod(&all, &pending).text(&page),
        ] {
            assert!(text.contains(DEADLOCK), "{text}");
        }
        // The other node, which is not what is explained, would take it.
        let one_free = [rule("net"), node("a", &[NET]), node("b", &[]), pod()];
        let one = read(&one_free, &Wanted::of_node("a"));
        let text = explain_node(&one, "a").unwrap().text(&page);
        assert!(!text.contains("operator"), "{text}");
    }
}
