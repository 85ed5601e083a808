//! Explains a rule's condition on a node, down to the container that keeps it unmet.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::ConditionStatus;
use crate::cli::page::NextStep;
use crate::cli::rows::gap;
use crate::cli::snapshot::{
    Snapshot, UnreadyPod, condition, culprit, last_seen, node_of, owner, phase, unready_since,
};
use crate::cluster::Unreadable;
use crate::condition::{Component, Counted, Detail, Source};
use crate::object::{Node, ObjectKey};
use crate::plan::Finding;

/// A condition of a rule on a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionOnNode {
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// The status that counts for the rule.
    pub status: ConditionStatus,
    /// The status that the rule requires.
    pub required: ConditionStatus,
    /// Whether `status` is `required`.
    pub met: bool,
    /// The controller's reason, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The controller's message, as in its events and statuses.
    pub message: String,
    /// When the condition last changed, according to the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The kind of source that the condition comes from.
    pub source: &'static str,
    /// Evidence that could not be read: `status` is then the one that the controller published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Whether it is met because nothing that it could wait for is meant for the node.
    #[serde(skip)]
    pub(crate) is_vacuous: bool,
    /// What keeps it unmet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
}

/// Something that keeps a condition from being met.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    /// The object, as `kind/name`.
    pub object: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(skip)]
    pub next: Option<NextStep>,
}

impl ConditionOnNode {
    /// The finding, with the causes that the snapshot shows if it is to be `whole`; or the published condition if evidence is
    /// missing.
    pub(crate) fn of(finding: &Finding<'_>, node: &Node, snapshot: &Snapshot, whole: bool) -> Self {
        let requirement = finding.requirement;
        let source = &requirement.source;
        if let Some(gap) = gap(source, snapshot) {
            return Self::as_published(finding, node, gap);
        }
        let detail = finding.detail();
        let met = finding.is_met();
        Self {
            kind: requirement.kind.clone(),
            status: finding.current,
            required: requirement.required,
            met,
            reason: detail.map_or_else(String::new, |it| it.reason().into()),
            message: match detail {
                Some(detail) if met => detail.to_string(),
                _ => finding.why(),
            },
            since: finding.transition(),
            source: word(source),
            unknown: None,
            is_vacuous: met
                && matches!(
                    detail,
                    Some(
                        Detail::NoComponent
                            | Detail::NoDaemonSetMeant
                            | Detail::DaemonSetNotMeant { .. }
                    )
                ),
            causes: if whole && !met {
                causes(finding, node, snapshot)
            } else {
                Vec::new()
            },
        }
    }

    /// The reason in one word; `NotReported` if the node lacks the condition.
    pub(crate) fn cause(&self) -> &str {
        if self.reason.is_empty() {
            "NotReported"
        } else {
            &self.reason
        }
    }

    /// The controller's published condition, when it cannot be evaluated here.
    fn as_published(finding: &Finding<'_>, node: &Node, gap: &Unreadable) -> Self {
        let requirement = finding.requirement;
        let published = node.condition(&requirement.kind);
        let status = published.map_or(requirement.status_if_missing(), |it| {
            requirement.status_of(it)
        });
        let text = published.map_or_else(
            || "the controller has not published it".into(),
            |it| it.message.clone(),
        );
        Self {
            kind: requirement.kind.clone(),
            status,
            required: requirement.required,
            met: status == requirement.required,
            reason: published.map_or_else(String::new, |it| it.reason.clone()),
            message: text,
            since: published.and_then(|it| it.transition),
            source: word(&requirement.source),
            unknown: Some(gap.to_string()),
            is_vacuous: false,
            causes: Vec::new(),
        }
    }
}

/// The kind of a condition's source, in one word.
fn word(source: &Source) -> &'static str {
    match source {
        Source::Node => "reporter",
        Source::Class { .. } => "criticalComponents",
        Source::CsiDriver(_) => "csiNode",
        Source::Resource(_) => "allocatable",
        Source::Component(Component::DaemonSet(_)) => "daemonSet",
        Source::Component(Component::AllDaemonSets) => "daemonSets",
        Source::Component(Component::Check(_)) => "check",
        Source::Component(Component::Devices(_)) => "resourceSlices",
        Source::Nobody => "nobody",
    }
}

fn causes(finding: &Finding<'_>, node: &Node, snapshot: &Snapshot) -> Vec<Cause> {
    // A reason that the rule does not accept has the causes of the condition itself.
    let detail = match finding.detail() {
        Some(Detail::ReasonNotAccepted { .. }) => finding.condition.as_ref().map(|it| &it.detail),
        detail => detail,
    };
    let Some(detail) = detail else {
        return vec![unreported(finding, node)];
    };
    let of_node = |message: String, say: &str| vec![Cause::of_node(node, message, say)];
    match detail {
        Detail::DaemonSetPodMissing { daemon_sets } => daemon_sets
            .iter()
            .map(|key| no_pod(key, node, snapshot))
            .collect(),
        Detail::PodNotReady { pods } => pods.iter().map(|key| of_pod(key, snapshot)).collect(),
        Detail::PodOlderThanNode { pods } | Detail::PodOlderThanBoot { pods } => pods
            .iter()
            .map(|key| Cause {
                message:
                    "its readiness has not been confirmed since then; that takes at most a minute"
                        .into(),
                ..Cause::new("pod", key)
            })
            .collect(),
        Detail::DaemonSetNotFound { daemon_set } => vec![Cause {
            message: "there is no DaemonSet of this name".into(),
            next: Some(NextStep::new(
                "create the DaemonSet, or name another one in a new rule",
                format!("kubectl -n {} get daemonsets", daemon_set.namespace),
            )),
            ..Cause::new("daemonset", daemon_set)
        }],
        Detail::CsiDriverMissing { drivers }
        | Detail::CsiDriverOlderThanBoot { drivers }
        | Detail::CsiDriverWithoutCount { drivers } => {
            let of_driver = |driver| Cause {
                object: format!("csidriver/{driver}"),
                message: "the kubelet has not registered it on this node".into(),
                next: Some(NextStep::new(
                    "see which drivers are registered, and read the log of the driver's pod on the node",
                    format!("kubectl describe csinode {}", node.name),
                )),
                ..Cause::default()
            };
            drivers.iter().map(of_driver).collect()
        }
        Detail::CsiDriverUnhealthy { storage } => vec![Cause {
            object: format!("csidriver/{}", storage.driver),
            message: "the driver's pod on this node reports this of its storage to the kubelet"
                .into(),
            next: Some(NextStep::new(
                "see all that it reports, and look at the storage",
                format!("kubectl get csinode {} -o yaml", node.name),
            )),
            ..Cause::default()
        }],
        Detail::ResourceNotAllocatable { resource } => of_node(
            format!(
                "the kubelet reports no {resource} to allocate: its device plugin has not registered it"
            ),
            "read the log of the device plugin's pod on the node",
        ),
        Detail::BelowMinimum { count, .. } => {
            let (has_told, say) = match count.of {
                Counted::Resource(_) => (
                    "the kubelet reports",
                    "read the log of the device plugin's pod on the node",
                ),
                Counted::Devices(_) => (
                    "the driver has published",
                    "read the log of the DRA driver's pod on the node",
                ),
            };
            of_node(format!("{has_told} {} {}", count.number, count.of), say)
        }
        Detail::MinimumUnknown { label, .. } => of_node(
            format!("whatever sets label {label} has not set it to a number"),
            "look for the pod that should set the label",
        ),
        Detail::HeartbeatMissed { .. } | Detail::WrittenBeforeReboot => vec![Cause {
            since: finding.transition(),
            ..Cause::of_node(
                node,
                "its reporter on this node is silent".into(),
                "look for the reporter's pod on the node",
            )
        }],
        Detail::Reported { .. } => vec![Cause {
            since: finding.transition(),
            ..Cause::of_node(
                node,
                "its reporter on this node reports so".into(),
                "read the log of the reporter's pod on the node",
            )
        }],
        _ => Vec::new(),
    }
}

fn unreported(finding: &Finding<'_>, node: &Node) -> Cause {
    let kind = &finding.requirement.kind;
    if finding.requirement.source == Source::Nobody {
        let message = format!("nothing makes a condition {kind}");
        let say = "check the spelling of the condition's type in the rule";
        return Cause::of_node(node, message, say);
    }
    let message = format!("nothing on this node has ever reported {kind}");
    Cause::of_node(node, message, "look for the pod that should report it")
}

impl Cause {
    fn new(kind: &str, key: &ObjectKey) -> Self {
        Self {
            object: format!("{kind}/{}", key.name),
            namespace: key.namespace.to_string(),
            ..Self::default()
        }
    }

    /// A cause for which to look among the node's pods.
    fn of_node(node: &Node, message: String, say: &str) -> Self {
        let name = &node.name;
        let pods = format!("kubectl get pods -A --field-selector spec.nodeName={name}");
        Self {
            object: format!("node/{name}"),
            message,
            next: Some(NextStep::new(say, pods)),
            ..Self::default()
        }
    }
}

/// A `DaemonSet` without a pod on the node.
fn no_pod(key: &ObjectKey, node: &Node, snapshot: &Snapshot) -> Cause {
    let ObjectKey { namespace, name } = key;
    // A pod that is being deleted still shows the reason.
    let mut pods = snapshot.unready.values();
    let of_it = pods.find(|UnreadyPod { pod, .. }| {
        node_of(pod) == &*node.name
            && pod.metadata.namespace.as_deref() == Some(namespace)
            && owner(pod).is_some_and(|it| it.kind == "DaemonSet" && it.name == **name)
    });
    Cause {
        message: "it is meant for this node and has no pod there".into(),
        causes: of_it.map(of_unready).into_iter().collect(),
        next: Some(NextStep::new(
            "see why the DaemonSet has no pod on the node",
            format!("kubectl -n {namespace} describe daemonset {name}"),
        )),
        ..Cause::new("daemonset", key)
    }
}

/// A pod that is not Ready, below its `DaemonSet`.
fn of_pod(key: &ObjectKey, snapshot: &Snapshot) -> Cause {
    let Some(unready) = snapshot.unready.get(key) else {
        return Cause {
            message: "it is not Ready".into(),
            next: Some(describe(key)),
            ..Cause::new("pod", key)
        };
    };
    let pod = of_unready(unready);
    match owner(&unready.pod) {
        Some(it) => {
            let owner = ObjectKey::new(key.namespace.clone(), it.name.as_str());
            Cause {
                message: "its pod on this node is not Ready".into(),
                causes: vec![pod],
                ..Cause::new(&it.kind.to_lowercase(), &owner)
            }
        }
        None => pod,
    }
}

fn describe(key: &ObjectKey) -> NextStep {
    NextStep::new(
        "see the pod's events",
        format!("kubectl -n {} describe pod {}", key.namespace, key.name),
    )
}

pub(super) fn of_unready(UnreadyPod { pod, events }: &UnreadyPod) -> Cause {
    let key = ObjectKey::of(&pod.metadata);
    let ObjectKey { namespace, name } = &key;
    let mut cause = Cause {
        since: unready_since(pod),
        next: Some(describe(&key)),
        ..Cause::new("pod", &key)
    };
    if let Some(since) = &pod.metadata.deletion_timestamp {
        cause.message = "it is being deleted".into();
        cause.since = Some(since.0);
        return cause;
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    if let Some(status) = pod.status.as_ref().filter(|it| it.reason.is_some()) {
        let (reason, message) = (text(&status.reason), text(&status.message));
        cause.message = format!("the kubelet does not run it: {reason}: {message}");
        return cause;
    }
    if let Some(it) = condition(pod, "PodScheduled").filter(|it| it.status != "True") {
        let (reason, message) = (text(&it.reason), text(&it.message));
        cause.message = format!("it is not bound to a node: {reason}: {message}");
        return cause;
    }
    let Some(container) = culprit(pod) else {
        cause.message = format!("it is {} but not Ready", phase(pod));
        return cause;
    };
    cause.message = container.why();
    let logs = format!("kubectl -n {namespace} logs {name} -c {}", container.name);
    match container.waits_for() {
        Some("ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull") => {
            cause.next = Some(NextStep {
                say: "check the image's name, and that the node can pull it".into(),
                ..describe(&key)
            });
        }
        Some("CrashLoopBackOff") if container.has_log() => {
            cause.next = Some(NextStep::new(
                "read the log from before it ended",
                format!("{logs} --previous"),
            ));
        }
        None if container.has_log() => {
            cause.next = Some(NextStep::new("read the container's log", logs));
        }
        _ => {}
    }
    // Only events have the answer of a failed probe.
    let mut probes = events.iter();
    if let Some(event) = probes.find(|it| it.reason.as_deref() == Some("Unhealthy")) {
        cause.causes.push(Cause {
            object: format!("event/{}", text(&event.reason)),
            namespace: namespace.to_string(),
            message: text(&event.message).trim().to_owned(),
            since: last_seen(event),
            ..Cause::default()
        });
    }
    cause
}

#[cfg(test)]
mod tests {
    use crate::cli::explain::{explain_node, explain_rule};
    use crate::cli::testing::Scene;
    use crate::testing::{Builder, GATE, at, node, rule};

    #[test]
    fn a_count_and_a_reason_are_explained_with_what_the_rule_asks_for() {
        let reported = serde_json::json!({ "type": "A", "status": "True", "reason": "Starting" });
        let node = node("n").allocatable("nvidia.com/gpu", "7");
        let node = node.label("gpu.count", "8").condition_with(reported);
        let conditions = "conditions: [\
            {type: resource.nodegate.dev/nvidia.com/gpu, requiredStatus: 'True', nodegate: {minimumFromLabel: gpu.count}}, \
            {type: A, requiredStatus: 'True', nodegate: {reasons: [Done, Skipped]}}, \
            {type: csidriver.nodegate.dev/csi, requiredStatus: 'True', nodegate: {reasons: [Done]}}]";
        let scene = Scene::default()
            .node(node.taint(GATE, "NoSchedule"))
            .rule(&rule("r").spec(conditions));
        let snapshot = scene.read(at(100));
        let rules = explain_node(&snapshot, "n").unwrap().rules;
        let said: Vec<_> = rules[0]
            .conditions
            .iter()
            .map(|it| {
                (
                    it.reason.as_str(),
                    it.message.as_str(),
                    it.causes[0].message.as_str(),
                )
            })
            .collect();
        assert_eq!(
            said,
            [
                (
                    "BelowMinimum",
                    "this node has 7 of 8 nvidia.com/gpu to allocate",
                    "the kubelet reports 7 nvidia.com/gpu to allocate",
                ),
                (
                    "ReasonNotAccepted",
                    "A is Unknown, must be True: ReasonNotAccepted: it is True for reason 'Starting', and counts only \
                     with Done, Skipped",
                    "its reporter on this node reports so",
                ),
                (
                    "ReasonNotAccepted",
                    "csidriver.nodegate.dev/csi is Unknown, must be True: ReasonNotAccepted: it is False for reason \
                     'CSIDriverNotRegistered', and counts only with Done",
                    "the kubelet has not registered it on this node",
                ),
            ]
        );
        let rule = explain_rule(&snapshot, "r").unwrap();
        let required: Vec<_> = rule.conditions.iter().map(|it| &*it.requirement).collect();
        assert_eq!(
            required,
            [
                "must be True (minimum from label gpu.count)",
                "must be True for reason Done or Skipped",
                "must be True for reason Done",
            ]
        );
    }
}
