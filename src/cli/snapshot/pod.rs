//! Pods as people see them: which container is unready and why, which nodes match, which are the controller's. No decision uses it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Event, Pod, PodCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde_json::json;

use nodegate_core::condition::{Watch, selects, tolerates};
use nodegate_core::object::{DaemonSet, Node, ObjectKey, Taint, Watched};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnreadyPod {
    pub pod: Pod,
    /// Warning events, latest first.
    pub events: Vec<Event>,
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|it| it.status == "True")
}

/// Since when it is not Ready: since the condition changed, or since it was created.
pub(crate) fn unready_since(pod: &Pod) -> Option<Timestamp> {
    let changed = condition(pod, "Ready").and_then(|it| it.last_transition_time.as_ref());
    let since = changed.or(pod.metadata.creation_timestamp.as_ref());
    since.filter(|_| !is_ready(pod)).map(|time| time.0)
}

/// The node it is bound to; empty if unbound.
pub(crate) fn node_of(pod: &Pod) -> &str {
    let node = pod.spec.as_ref().and_then(|it| it.node_name.as_deref());
    node.unwrap_or_default()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    phase.unwrap_or_default()
}

pub(crate) fn owner(pod: &Pod) -> Option<&OwnerReference> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

pub(crate) fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let series = series.and_then(|it| it.last_observed_time.as_ref());
    let at = series.or(event.event_time.as_ref()).map(|time| time.0);
    event.last_timestamp.as_ref().map(|time| time.0).or(at)
}

/// When a critical pod did what, by its own status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodTimes {
    pub shown_by: Watch,
    pub daemon_set: Option<ObjectKey>,
    /// When it was created, it was bound, its last container was last started, and it turned Ready.
    pub steps: [Option<Timestamp>; 4],
    /// When its init containers had ended, if it has any.
    pub initialized: Option<Timestamp>,
    pub restarts: i32,
    /// The longest period of its readiness probes, in seconds.
    pub probed_every: Option<i32>,
    /// The paths of its node that it mounts.
    pub paths: Vec<String>,
}

impl PodTimes {
    pub(crate) fn of(pod: &Pod, shown_by: Watch) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let time = |time: &Option<Time>| time.as_ref().map(|time| time.0);
        let turned = |kind| condition(pod, kind).filter(|it| it.status == "True");
        let turned = |kind| time(&turned(kind)?.last_transition_time);
        let statuses = pod.status.iter();
        let statuses = statuses.flat_map(|it| it.container_statuses.iter().flatten());
        let states = statuses.clone().filter_map(|it| it.state.as_ref());
        let started = states.filter_map(|it| time(&it.running.as_ref()?.started_at));
        let created = time(&pod.metadata.creation_timestamp);
        let of = owner(pod).filter(|it| it.kind == "DaemonSet");
        let namespace = ObjectKey::of(&pod.metadata).namespace;
        let probes = spec.containers.iter();
        let probes = probes.filter_map(|it| it.readiness_probe.as_ref()?.period_seconds);
        let volumes = spec.volumes.into_iter().flatten();
        Self {
            shown_by,
            daemon_set: of.map(|it| ObjectKey::new(namespace, &*it.name)),
            steps: [
                created,
                turned("PodScheduled"),
                started.max(),
                turned("Ready"),
            ],
            initialized: turned("Initialized").filter(|_| spec.init_containers.is_some()),
            restarts: statuses.map(|it| it.restart_count).sum(),
            probed_every: probes.max(),
            paths: volumes.filter_map(|it| Some(it.host_path?.path)).collect(),
        }
    }
}

/// A container that keeps its pod from being Ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Culprit<'a> {
    pub name: &'a str,
    is_init: bool,
    status: Option<&'a ContainerStatus>,
}

/// The first container that is neither ready nor an init container that has succeeded.
pub(crate) fn culprit(pod: &Pod) -> Option<Culprit<'_>> {
    let spec = pod.spec.as_ref()?;
    let inits = spec.init_containers.iter().flatten().map(|it| (it, true));
    let containers = inits.chain(spec.containers.iter().map(|it| (it, false)));
    let status = pod.status.as_ref();
    let of_inits = status.and_then(|it| it.init_container_statuses.as_ref());
    let of_others = status.and_then(|it| it.container_statuses.as_ref());
    // No two containers of a pod have the same name.
    let statuses = of_inits.into_iter().chain(of_others).flatten();
    let mut culprits = containers.map(|(container, is_init)| Culprit {
        name: &container.name,
        is_init,
        status: statuses.clone().find(|it| it.name == container.name),
    });
    culprits.find(|it| {
        let is_ready = it.status.is_some_and(|status| status.ready);
        let ended = it.state().and_then(|state| state.terminated.as_ref());
        !(is_ready || it.is_init && ended.is_some_and(|ended| ended.exit_code == 0))
    })
}

impl Culprit<'_> {
    fn state(&self) -> Option<&ContainerState> {
        self.status?.state.as_ref()
    }

    /// How it last ended, if it was restarted.
    fn last_end(&self) -> Option<&ContainerStateTerminated> {
        self.status?.last_state.as_ref()?.terminated.as_ref()
    }

    pub(crate) fn why(&self) -> String {
        let init = if self.is_init { "init " } else { "" };
        let what = format!("{init}container {}", self.name);
        let mut restarts = match self.status.map_or(0, |status| status.restart_count) {
            0 => String::new(),
            1 => ", restarted once".into(),
            times => format!(", restarted {times} times"),
        };
        let end = |end: &ContainerStateTerminated| {
            let reason = end.reason.as_deref().unwrap_or_default();
            format!("{reason} (exit code {})", end.exit_code)
        };
        if let Some(last) = self.last_end() {
            restarts = format!("{restarts}, last ended: {}", end(last));
        }
        let state = self.state();
        if let Some(waiting) = state.and_then(|it| it.waiting.as_ref()) {
            let reason = waiting.reason.as_deref().unwrap_or_default();
            return match waiting.message.as_deref() {
                None | Some("") => format!("{what}: {reason}{restarts}"),
                Some(message) => format!("{what}: {reason}: {message}{restarts}"),
            };
        }
        if let Some(ended) = state.and_then(|it| it.terminated.as_ref()) {
            return format!("{what} has ended: {}{restarts}", end(ended));
        }
        match state.and_then(|it| it.running.as_ref()) {
            None => format!("{what} has not been started yet"),
            Some(_) if self.is_init => format!("{what} is still running{restarts}"),
            Some(_) => format!("{what} runs but is not ready{restarts}"),
        }
    }

    pub(crate) fn waits_for(&self) -> Option<&str> {
        let waiting = self.state()?.waiting.as_ref()?;
        Some(waiting.reason.as_deref().unwrap_or_default())
    }

    /// Whether it has a log, because it runs or has run. What could not be started counts as ended, too.
    pub(crate) fn has_log(&self) -> bool {
        let Some(state) = self.state() else {
            return false;
        };
        let end = state.terminated.as_ref().or(self.last_end());
        match end.map(|end| end.reason.as_deref()) {
            _ if state.running.is_some() => true,
            Some(reason) => !matches!(reason, Some("StartError" | "ContainerCannotRun")),
            None => state.waiting.is_some() && self.status.is_some_and(|it| it.restart_count > 0),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PendingPod {
    pub unready: UnreadyPod,
    /// Its requirements on nodes, as a `DaemonSet`, so that the engine's matching applies.
    placement: DaemonSet,
}

impl PendingPod {
    pub(crate) fn read(json: &str) -> Option<Self> {
        let pod: Pod = serde_json::from_str(json).ok()?;
        let mut spec = pod.spec.clone().unwrap_or_default();
        spec.node_name = None;
        let object: Watched<DaemonSet> = serde_json::from_value(json!({
            "metadata": {"namespace": pod.metadata.namespace, "name": pod.metadata.name},
            "spec": {"template": {"spec": spec}},
        }))
        .ok()?;
        Some(Self {
            placement: DaemonSet {
                // A pod has only its own tolerations, not those that are added to a `DaemonSet`'s pods.
                tolerations: spec.tolerations.unwrap_or_default(),
                ..object.read().ok()?
            },
            unready: UnreadyPod {
                pod,
                events: Vec::new(),
            },
        })
    }

    /// Whether its node selector and required node affinity match this node; taints are ignored.
    pub(crate) fn asks_for(&self, node: &Node) -> bool {
        selects(&self.placement, node)
    }

    /// Whether it is a `DaemonSet`'s pod for this node.
    pub(crate) fn is_for(&self, node: &str) -> bool {
        let terms = self.placement.node_affinity.iter().flatten();
        let mut names = terms.flat_map(|term| &term.names);
        names.any(|(name, is_it)| *is_it && name == node)
    }

    pub(crate) fn repelled_by<'a>(&self, node: &'a Node) -> impl Iterator<Item = &'a Taint> {
        let taints = node.taints.iter();
        taints.filter(|taint| !tolerates(&self.placement, taint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn culprit(status: &serde_json::Value) -> String {
        let pod = json!({
            "metadata": {"namespace": "ns", "name": "p"},
            "spec": {"initContainers": [{"name": "setup"}], "containers": [{"name": "agent"}]},
            "status": status,
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        super::culprit(&pod).map_or_else(String::new, |it| it.why())
    }

    #[test]
    fn the_container_is_named_that_does_not_do_its_part() {
        let done = json!([{"name": "setup", "ready": false, "restartCount": 0, "image": "", "imageID": "",
            "state": {"terminated": {"exitCode": 0}}}]);
        let agent = |ready: bool, restarts: i32, state: serde_json::Value| {
            json!({"initContainerStatuses": done, "containerStatuses": [{"name": "agent", "ready": ready,
                "restartCount": restarts, "image": "", "imageID": "", "state": state}]})
        };
        let mut killed = agent(false, 3, json!({"waiting": {"reason": "CrashLoopBackOff"}}));
        killed["containerStatuses"][0]["lastState"] =
            json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        #[rustfmt::skip]
        let cases = [
            (killed, "container agent: CrashLoopBackOff, restarted 3 times, last ended: OOMKilled (exit code 137)"),
            (json!({}), "init container setup has not been started yet"),
            (
                agent(
                    false,
                    0,
                    json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}),
                ),
                "container agent: ImagePullBackOff: Back-off pulling",
            ),
            (agent(false, 3, json!({"waiting": {"reason": "CrashLoopBackOff"}})), "container agent: CrashLoopBackOff, restarted 3 times"),
            (agent(false, 1, json!({"running": {}})), "container agent runs but is not ready, restarted once"),
            (agent(false, 0, json!({"terminated": {"exitCode": 2, "reason": "Error"}})), "container agent has ended: Error (exit code 2)"),
            (agent(true, 0, json!({"running": {}})), ""),
        ];
        for (status, expected) in cases {
            assert_eq!(culprit(&status), expected);
        }
    }

    #[test]
    fn a_container_that_never_ran_has_no_log() {
        let with = |status: &serde_json::Value| {
            let pod = json!({"spec": {"containers": [{"name": "agent"}]}, "status": {"containerStatuses": [status]}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            super::culprit(&pod).unwrap().has_log()
        };
        #[rustfmt::skip]
        let cases = [
            (json!({}), json!({}), false),
            (json!({"waiting": {"reason": "CreateContainerConfigError"}}), json!({}), false),
            (json!({"waiting": {"reason": "ContainerCreating"}}), json!({}), false),
            (json!({"waiting": {"reason": "CrashLoopBackOff"}}), json!({"exitCode": 1, "reason": "Error"}), true),
            (json!({"waiting": {"reason": "CrashLoopBackOff"}}), json!({"exitCode": 128, "reason": "StartError"}), false),
            (json!({"terminated": {"exitCode": 128, "reason": "StartError"}}), json!({}), false),
            (json!({"terminated": {"exitCode": 2, "reason": "Error"}}), json!({}), true),
            (json!({"running": {}}), json!({}), true),
        ];
        for (state, last, expected) in cases {
            let last = if last == json!({}) {
                last
            } else {
                json!({"terminated": last})
            };
            let status = json!({"name": "agent", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "state": state, "lastState": last});
            assert_eq!(with(&status), expected, "{status}");
        }
        let unreported = json!({"spec": {"containers": [{"name": "agent"}]}, "status": {}});
        let unreported: Pod = serde_json::from_value(unreported).unwrap();
        assert!(!super::culprit(&unreported).unwrap().has_log());
    }
}
