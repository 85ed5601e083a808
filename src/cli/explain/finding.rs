//! Explains a rule's condition on a node, down to the container that keeps it unmet.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::page::{Branch, Line, NextStep, Page};
use crate::rows::{evidence, gap};
use crate::snapshot::{
    Snapshot, UnreadyPod, condition, culprit, last_seen, node_of, owner, phase, unready_since,
};
use nodegate_core::api::ConditionStatus;
use nodegate_core::condition::{Detail, Hint, Source, is_under_our_domain};
use nodegate_core::object::{Node, ObjectKey};
use nodegate_core::plan::ConditionOutcome;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConditionOnNode {
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// The status that counts for the rule.
    pub status: ConditionStatus,
    pub(crate) required: ConditionStatus,
    /// Whether `status` is `required`.
    pub met: bool,
    /// The controller's reason, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The controller's message, as in its events and statuses.
    pub message: String,
    /// When the condition last changed, according to the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// The kind of source that the condition comes from.
    pub source: &'static str,
    /// Evidence that could not be read: `status` is then the one that the controller published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<String>,
    /// Whether it is as it is because nothing that it could wait for is meant for the node.
    #[serde(skip)]
    pub(crate) is_vacuous: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
}

/// Something that keeps a condition from being met, or pods off a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// The finding, with its causes if it is to be `whole`; if evidence is missing, the condition that the controller published.
    pub(crate) fn of(
        finding: &ConditionOutcome<'_>,
        node: &Node,
        snapshot: &Snapshot,
        whole: bool,
    ) -> Self {
        let requirement = finding.requirement;
        let (detail, met) = (finding.detail(), finding.is_met());
        let mut it = Self {
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
            source: evidence(&requirement.source).0,
            unknown: None,
            is_vacuous: detail.is_some_and(|it| matches!(it.hint(), Hint::Vacuous)),
            causes: Vec::new(),
        };
        if let Some(gap) = gap(&requirement.source, snapshot) {
            let published = node.condition(&requirement.kind);
            let status = published.map(|it| requirement.status_of(it));
            it.status = status.unwrap_or(requirement.status_if_missing());
            it.met = it.status == it.required;
            let absent = || "the controller has not published it".to_owned();
            it.message = published.map_or_else(absent, |it| it.message.clone());
            it.reason = published.map_or_else(String::new, |it| it.reason.clone());
            it.since = published.and_then(|it| it.transition);
            it.unknown = Some(gap.to_string());
        } else if whole && !met {
            it.causes = causes(finding, node, snapshot);
        }
        it
    }

    pub(super) fn branch(&self, page: &Page) -> Branch {
        let Self { kind, message, .. } = self;
        let line = Line::mark(self.met);
        let line = if message.starts_with(&**kind) {
            line.plain(message)
        } else {
            let separator = if message.is_empty() { "" } else { ": " };
            let status = self.status.as_str();
            line.plain(format!("{kind} is {status}{separator}{message}"))
        };
        Branch::from(dated(line, self.since, page))
            .over(self.unknown.iter().map(|gap| Line::new().poor(gap)))
            .over(self.causes.iter().map(|it| it.branch(page)))
    }
}

fn dated(line: Line, since: Option<Timestamp>, page: &Page) -> Line {
    match since {
        Some(since) => line.faint(format!(" ({})", page.age(since))),
        None => line,
    }
}

fn causes(outcome: &ConditionOutcome<'_>, node: &Node, snapshot: &Snapshot) -> Vec<Cause> {
    let (kind, name) = (&outcome.requirement.kind, &node.name);
    // A reason that the rule does not accept has the causes of the condition itself.
    let detail = match outcome.detail() {
        Some(Detail::ReasonNotAccepted { .. }) => outcome.condition.as_ref().map(|it| &it.detail),
        detail => detail,
    };
    let hint = match detail {
        Some(detail) => detail.hint(),
        None if outcome.requirement.source == Source::Nobody || is_under_our_domain(kind) => {
            Hint::Node(
                format!("nothing makes a condition {kind}").into(),
                "check the spelling of the condition's type in the rule",
            )
        }
        None => Hint::Node(
            format!("nothing on this node has ever reported {kind}").into(),
            "look for the pod that should report it",
        ),
    };
    match hint {
        Hint::Nothing | Hint::Vacuous => Vec::new(),
        Hint::Node(finding, advice) => {
            let pods = format!("kubectl get pods -A --field-selector spec.nodeName={name}");
            vec![Cause::new(format!("node/{name}"), finding).then(advice, pods)]
        }
        Hint::Unscheduled(keys) => keys.iter().map(|key| no_pod(key, node, snapshot)).collect(),
        Hint::NoDaemonSet(key) => {
            let say = "create the DaemonSet, or name another one in a new rule";
            let others = format!("kubectl -n {} get daemonsets", key.namespace);
            let standing = snapshot.standing.get(key);
            let standing = standing.map_or_else(String::new, |it| format!("; {it}"));
            let why = format!("there is no DaemonSet of this name{standing}");
            vec![Cause::of("daemonset", key, why).then(say, others)]
        }
        Hint::Unready(keys) => keys.iter().map(|key| of_pod(key, snapshot)).collect(),
        Hint::TooNew(pods) => {
            let pods = pods.iter();
            let of = pods.map(|it| Cause::of("pod", it.pod, it.progress(snapshot.at)));
            of.collect()
        }
        Hint::Unconfirmed(keys) => {
            let since =
                "its readiness has not been confirmed since then; that takes at most a minute";
            let pods = keys.iter();
            pods.map(|key| Cause::of("pod", key, since)).collect()
        }
        Hint::Unregistered(drivers) => {
            let message = "the kubelet has not registered it on this node";
            let say = "see which drivers are registered, and read the log of the driver's pod on the node";
            let command = format!("kubectl describe csinode {name}");
            let of =
                |driver| Cause::new(format!("csidriver/{driver}"), message).then(say, &*command);
            drivers.iter().map(of).collect()
        }
        Hint::Unhealthy(driver) => {
            let message =
                "the driver's pod on this node reports this of its storage to the kubelet";
            let say = "see all that it reports, and look at the storage";
            let command = format!("kubectl get csinode {name} -o yaml");
            vec![Cause::new(format!("csidriver/{driver}"), message).then(say, command)]
        }
    }
}

impl Cause {
    pub(super) fn new(object: String, message: impl Into<String>) -> Self {
        Self {
            object,
            message: message.into(),
            ..Self::default()
        }
    }

    fn of(kind: &str, key: &ObjectKey, message: impl Into<String>) -> Self {
        Self {
            namespace: key.namespace.to_string(),
            ..Self::new(format!("{kind}/{}", key.name), message)
        }
    }

    pub(super) fn then(self, say: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            next: Some(NextStep::new(say, command)),
            ..self
        }
    }

    pub(super) fn deepest_step(&self) -> Option<NextStep> {
        let below = self.causes.iter().find_map(Self::deepest_step);
        below.or_else(|| self.next.clone())
    }

    pub(super) fn branch(&self, page: &Page) -> Branch {
        let mut line = Line::new().strong(&self.object);
        if !self.namespace.is_empty() && !self.object.starts_with("event/") {
            line = line.faint(format!(" -n {}", self.namespace));
        }
        let line = line.plain(format!("  {}", self.message));
        let causes = self.causes.iter().map(|it| it.branch(page));
        Branch::from(dated(line, self.since, page)).over(causes)
    }
}

fn no_pod(key: &ObjectKey, node: &Node, snapshot: &Snapshot) -> Cause {
    let ObjectKey { namespace, name } = key;
    // A pod that is being deleted still shows the reason. Pods that are not bound are those for this node.
    let of_it = snapshot.unready.values().find(|UnreadyPod { pod, .. }| {
        [&*node.name, ""].contains(&node_of(pod))
            && pod.metadata.namespace.as_deref() == Some(namespace)
            && owner(pod).is_some_and(|it| it.kind == "DaemonSet" && it.name == **name)
    });
    let others = snapshot.no_pod.get(key).into_iter().flatten();
    let others = others.map(|(object, message, since)| Cause {
        since: *since,
        ..Cause::new(object.clone(), message.trim())
    });
    let why = "it is meant for this node and has no pod there";
    let cause = Cause::of("daemonset", key, why);
    Cause {
        causes: of_it.map(of_unready).into_iter().chain(others).collect(),
        ..cause.then(
            "see why the DaemonSet has no pod on the node",
            format!("kubectl -n {namespace} describe daemonset {name}"),
        )
    }
}

/// A pod that is not Ready, below its `DaemonSet`.
fn of_pod(key: &ObjectKey, snapshot: &Snapshot) -> Cause {
    let Some(unready) = snapshot.unready.get(key) else {
        return described(key, "it is not Ready".into());
    };
    let pod = of_unready(unready);
    let Some(it) = owner(&unready.pod) else {
        return pod;
    };
    let owner = ObjectKey::new(key.namespace.clone(), it.name.as_str());
    let why = "its pod on this node is not Ready";
    Cause {
        causes: vec![pod],
        ..Cause::of(&it.kind.to_lowercase(), &owner, why)
    }
}

fn described(key: &ObjectKey, message: String) -> Cause {
    let command = format!("kubectl -n {} describe pod {}", key.namespace, key.name);
    Cause::of("pod", key, message).then("see the pod's events", command)
}

pub(super) fn of_unready(UnreadyPod { pod, events }: &UnreadyPod) -> Cause {
    let key = ObjectKey::of(&pod.metadata);
    let because = |message: String| Cause {
        since: unready_since(pod),
        ..described(&key, message)
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    if let Some(since) = &pod.metadata.deletion_timestamp {
        return Cause {
            since: Some(since.0),
            ..because("it is being deleted".into())
        };
    }
    if let Some(status) = pod.status.as_ref().filter(|it| it.reason.is_some()) {
        let (reason, message) = (text(&status.reason), text(&status.message));
        return because(format!("the kubelet does not run it: {reason}: {message}"));
    }
    if let Some(it) = condition(pod, "PodScheduled").filter(|it| it.status != "True") {
        let (reason, message) = (text(&it.reason), text(&it.message));
        return because(format!("it is not bound to a node: {reason}: {message}"));
    }
    let Some(container) = culprit(pod) else {
        return because(format!("it is {} but not Ready", phase(pod)));
    };
    let mut cause = because(container.why());
    let ObjectKey { namespace, name } = &key;
    let logs = format!("kubectl -n {namespace} logs {name} -c {}", container.name);
    match container.waits_for() {
        Some("ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull") => {
            let say = "check the image's name, and that the node can pull it";
            cause.next = cause.next.map(|next| NextStep::new(say, next.command));
        }
        Some("CrashLoopBackOff") if container.has_log() => {
            let say = "read the log from before it ended";
            cause = cause.then(say, format!("{logs} --previous"));
        }
        None if container.has_log() => cause = cause.then("read the container's log", logs),
        _ => {}
    }
    // Only events have the answer of a failed probe.
    let mut probes = events.iter();
    if let Some(event) = probes.find(|it| it.reason.as_deref() == Some("Unhealthy")) {
        let (object, message) = ("event/Unhealthy".into(), text(&event.message));
        cause.causes.push(Cause {
            namespace: namespace.to_string(),
            since: last_seen(event),
            ..Cause::new(object, message.trim())
        });
    }
    cause
}

#[cfg(test)]
mod tests {
    use crate::explain::{explain_node, explain_rule};
    use crate::testing::Scene;
    use crate::testing::{Builder, GATE, at, node, rule};

    #[test]
    fn a_type_with_a_misspelt_prefix_of_ours_is_not_said_to_have_a_reporter() {
        for (kind, expected) in [
            (
                "csidrivers.nodegate.dev/ebs.csi.aws.com",
                "check the spelling",
            ),
            ("example.com/Net", "look for the pod"),
        ] {
            let tainted = node("n").dated_taint(GATE, "NoSchedule");
            let scene = Scene::default().rule(&rule("r").waits_for(kind));
            let read = scene.node(tainted).read(at(60));
            let next = explain_node(&read, "n").unwrap().next.unwrap();
            assert!(next.say.contains(expected), "{kind}: {}", next.say);
        }
    }

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
        let conditions = rules[0].conditions.iter();
        let causes: Vec<_> = conditions.map(|it| &*it.causes[0].message).collect();
        assert_eq!(
            causes,
            [
                "the kubelet reports 7 nvidia.com/gpu to allocate",
                "its reporter on this node reports so",
                "the kubelet has not registered it on this node",
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
