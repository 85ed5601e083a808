//! Details of pods for people: which container is not ready and why, which nodes match an unbound pod, and which pods are the
//! controller's. No decision uses them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use serde::Serialize;
use serde_json::json;

use crate::condition::{is_meant_for, tolerates};
use crate::object::{DaemonSet, Node, ObjectKey, Taint, Toleration, Watched};

/// Why a pod is not Ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDiagnosis {
    pub key: ObjectKey,
    /// The node it is bound to; empty if unbound.
    pub node: String,
    pub owner: Option<(String, String)>,
    pub created: Option<Timestamp>,
    pub deleted: Option<Timestamp>,
    pub phase: String,
    /// Whether it is Ready, and since when.
    pub ready: (bool, Option<Timestamp>),
    /// Reason and message of why it is not scheduled, if it is not.
    pub unscheduled: Option<(String, String)>,
    /// Reason and message of why the kubelet rejects it, if it does.
    pub refused: Option<(String, String)>,
    /// Init containers first, in their order.
    pub containers: Vec<Container>,
    /// Warning events, latest first.
    pub events: Vec<PodEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub name: String,
    pub image: String,
    pub is_init: bool,
    /// Whether it is ready, or is an init container that has succeeded.
    pub is_ready: bool,
    pub restarts: i32,
    /// Reason and exit code of its last end, if it was restarted.
    pub last_end: Option<(String, i32)>,
    pub state: ContainerState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerState {
    Unknown,
    Waiting { reason: String, message: String },
    Running,
    Ended { reason: String, code: i32 },
}

/// A warning event about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEvent {
    pub reason: String,
    pub message: String,
    pub at: Option<Timestamp>,
}

impl PodDiagnosis {
    /// Parses a pod in JSON.
    pub fn read(json: &str) -> Option<Self> {
        Some(Self::of(serde_json::from_str(json).ok()?))
    }

    pub fn of(pod: Pod) -> Self {
        let (metadata, spec) = (pod.metadata, pod.spec.unwrap_or_default());
        let status = pod.status.unwrap_or_default();
        let condition = |kind: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.find(|condition| condition.type_ == kind)
        };
        let ready = condition("Ready");
        let scheduled = condition("PodScheduled").filter(|it| it.status != "True");
        let owner = metadata.owner_references.iter().flatten();
        let mut owner = owner.filter(|owner| owner.controller == Some(true));
        let inits = spec.init_containers.into_iter().flatten();
        let mut inits_statuses = status.init_container_statuses.unwrap_or_default();
        let mut statuses = status.container_statuses.unwrap_or_default();
        let inits = inits.map(|it| Container::of(it, true, &mut inits_statuses));
        let others = spec.containers.into_iter();
        let others = others.map(|it| Container::of(it, false, &mut statuses));
        Self {
            key: ObjectKey::of(&metadata),
            node: spec.node_name.unwrap_or_default(),
            owner: owner
                .next()
                .map(|owner| (owner.kind.clone(), owner.name.clone())),
            created: metadata.creation_timestamp.map(|time| time.0),
            deleted: metadata.deletion_timestamp.map(|time| time.0),
            phase: status.phase.unwrap_or_default(),
            ready: (
                ready.is_some_and(|it| it.status == "True"),
                ready.and_then(|it| Some(it.last_transition_time.as_ref()?.0)),
            ),
            unscheduled: scheduled.map(|it| {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                (text(&it.reason), text(&it.message))
            }),
            refused: status
                .reason
                .map(|reason| (reason, status.message.unwrap_or_default())),
            containers: inits.chain(others).collect(),
            events: Vec::new(),
        }
    }

    /// The first container that is not ready or done; it keeps the pod from being Ready.
    pub fn culprit(&self) -> Option<&Container> {
        let mut containers = self.containers.iter();
        containers.find(|container| !container.is_ready)
    }

    /// Since when it is not Ready: since the condition changed, or since it was created.
    pub fn unready_since(&self) -> Option<Timestamp> {
        let (is_ready, since) = self.ready;
        if is_ready {
            None
        } else {
            since.or(self.created)
        }
    }

    /// The answer of a failed probe.
    pub fn probe(&self) -> Option<&PodEvent> {
        let mut events = self.events.iter();
        events.find(|event| event.reason == "Unhealthy")
    }
}

impl PodEvent {
    pub fn of(event: Event) -> Self {
        let series = event.series.and_then(|it| it.last_observed_time);
        let at = series.or(event.event_time).map(|time| time.0);
        Self {
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            at: event.last_timestamp.map(|time| time.0).or(at),
        }
    }
}

impl Container {
    fn of(
        container: k8s_openapi::api::core::v1::Container,
        is_init: bool,
        statuses: &mut Vec<ContainerStatus>,
    ) -> Self {
        let name = container.name;
        let position = statuses.iter().position(|status| status.name == name);
        let status = position.map(|position| statuses.swap_remove(position));
        let restarts = status.as_ref().map_or(0, |status| status.restart_count);
        let is_ready = status.as_ref().is_some_and(|status| status.ready);
        let last_end = status
            .as_ref()
            .and_then(|status| status.last_state.as_ref()?.terminated.clone())
            .map(|ended| (ended.reason.unwrap_or_default(), ended.exit_code));
        let state = status.and_then(|status| status.state).unwrap_or_default();
        let state = if let Some(waiting) = state.waiting {
            ContainerState::Waiting {
                reason: waiting.reason.unwrap_or_default(),
                message: waiting.message.unwrap_or_default(),
            }
        } else if let Some(ended) = state.terminated {
            ContainerState::Ended {
                reason: ended.reason.unwrap_or_default(),
                code: ended.exit_code,
            }
        } else if state.running.is_some() {
            ContainerState::Running
        } else {
            ContainerState::Unknown
        };
        let has_done = is_init && matches!(state, ContainerState::Ended { code: 0, .. });
        Self {
            name,
            image: container.image.unwrap_or_default(),
            is_init,
            is_ready: is_ready || has_done,
            restarts,
            last_end,
            state,
        }
    }

    /// Why the container is not ready, in one line.
    pub fn why(&self) -> String {
        let what = if self.is_init {
            "init container"
        } else {
            "container"
        };
        let name = &self.name;
        let restarts = match self.restarts {
            0 => String::new(),
            1 => ", restarted once".into(),
            times => format!(", restarted {times} times"),
        };
        let restarts = match &self.last_end {
            Some((reason, code)) => {
                format!("{restarts}, last ended: {reason} (exit code {code})")
            }
            None => restarts,
        };
        match &self.state {
            ContainerState::Unknown => format!("{what} {name} has not been started yet"),
            ContainerState::Waiting { reason, message } if message.is_empty() => {
                format!("{what} {name}: {reason}{restarts}")
            }
            ContainerState::Waiting { reason, message } => {
                format!("{what} {name}: {reason}: {message}{restarts}")
            }
            ContainerState::Running if self.is_init => {
                format!("{what} {name} is still running{restarts}")
            }
            ContainerState::Running => {
                format!("{what} {name} runs but is not ready{restarts}")
            }
            ContainerState::Ended { reason, code, .. } => {
                format!("{what} {name} has ended: {reason} (exit code {code}){restarts}")
            }
        }
    }

    /// The reason of a waiting container.
    pub fn waits_for(&self) -> Option<&str> {
        match &self.state {
            ContainerState::Waiting { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Whether it has a log, because it runs or has run. What could not be started counts as ended, too.
    pub fn has_log(&self) -> bool {
        let has_run = |reason: &str| !["StartError", "ContainerCannotRun"].contains(&reason);
        match (&self.state, &self.last_end) {
            (ContainerState::Unknown, _) => false,
            (ContainerState::Running, _) => true,
            (ContainerState::Ended { reason, .. }, _) | (_, Some((reason, _))) => has_run(reason),
            (ContainerState::Waiting { .. }, None) => self.restarts > 0,
        }
    }
}

/// A pod to explain.
#[derive(Debug, Clone)]
pub(crate) struct Specimen {
    pub diagnosis: PodDiagnosis,
    /// Its requirements on nodes, as a `DaemonSet`, so that the engine's matching applies.
    asks: DaemonSet,
}

impl Specimen {
    /// Parses a pod in JSON.
    pub(crate) fn read(json: &str) -> Option<Self> {
        let pod: Pod = serde_json::from_str(json).ok()?;
        let mut spec = pod.spec.clone().unwrap_or_default();
        spec.node_name = None;
        // A pod has only its own tolerations, not those that are added to a `DaemonSet`'s pods.
        let tolerations = serde_json::to_value(&spec.tolerations).ok()?;
        let tolerations: Option<Vec<Toleration>> = serde_json::from_value(tolerations).ok()?;
        let object: Watched<DaemonSet> = serde_json::from_value(json!({
            "metadata": {"namespace": pod.metadata.namespace, "name": pod.metadata.name},
            "spec": {"template": {"spec": spec}},
        }))
        .ok()?;
        Some(Self {
            asks: DaemonSet {
                tolerations: tolerations.unwrap_or_default(),
                ..object.read().ok()?
            },
            diagnosis: PodDiagnosis::of(pod),
        })
    }

    /// Whether its node selector and required node affinity match this node; taints are ignored.
    pub(crate) fn asks_for(&self, node: &Node) -> bool {
        is_meant_for(&self.asks, node, &[])
    }

    /// The node's taints that it does not tolerate.
    pub(crate) fn repelled_by<'a>(&self, node: &'a Node) -> impl Iterator<Item = &'a Taint> {
        let taints = node.taints.iter();
        taints.filter(|taint| !tolerates(&self.asks, taint))
    }
}

/// An instance of the controller, read from its pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    pub pod: String,
    pub image: String,
    pub ready: bool,
}

impl Controller {
    pub fn of(pod: PodDiagnosis) -> Option<Self> {
        let mut containers = pod.containers.into_iter();
        Some(Self {
            pod: pod.key.name.to_string(),
            image: containers.find(|it| !it.is_init)?.image,
            ready: pod.ready.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn culprit(status: &serde_json::Value) -> String {
        let pod = json!({
            "metadata": {"namespace": "ns", "name": "p"},
            "spec": {"initContainers": [{"name": "setup"}], "containers": [{"name": "agent"}]},
            "status": status,
        });
        let pod = PodDiagnosis::read(&pod.to_string()).unwrap();
        pod.culprit().map(Container::why).unwrap_or_default()
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
        for (status, expected) in [
            (
                killed,
                "container agent: CrashLoopBackOff, restarted 3 times, last ended: OOMKilled (exit code 137)",
            ),
            (json!({}), "init container setup has not been started yet"),
            (
                agent(
                    false,
                    0,
                    json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}),
                ),
                "container agent: ImagePullBackOff: Back-off pulling",
            ),
            (
                agent(false, 3, json!({"waiting": {"reason": "CrashLoopBackOff"}})),
                "container agent: CrashLoopBackOff, restarted 3 times",
            ),
            (
                agent(false, 1, json!({"running": {}})),
                "container agent runs but is not ready, restarted once",
            ),
            (
                agent(
                    false,
                    0,
                    json!({"terminated": {"exitCode": 2, "reason": "Error"}}),
                ),
                "container agent has ended: Error (exit code 2)",
            ),
            (agent(true, 0, json!({"running": {}})), ""),
        ] {
            assert_eq!(culprit(&status), expected);
        }
    }

    #[test]
    fn what_has_never_run_has_no_log() {
        let with = |status: &serde_json::Value| {
            let pod = json!({"spec": {"containers": [{"name": "agent"}]}, "status": {"containerStatuses": [status]}});
            PodDiagnosis::read(&pod.to_string()).unwrap().containers[0].has_log()
        };
        for (state, last, expected) in [
            (json!({}), json!({}), false),
            (
                json!({"waiting": {"reason": "CreateContainerConfigError"}}),
                json!({}),
                false,
            ),
            (
                json!({"waiting": {"reason": "ContainerCreating"}}),
                json!({}),
                false,
            ),
            (
                json!({"waiting": {"reason": "CrashLoopBackOff"}}),
                json!({"exitCode": 1, "reason": "Error"}),
                true,
            ),
            (
                json!({"waiting": {"reason": "CrashLoopBackOff"}}),
                json!({"exitCode": 128, "reason": "StartError"}),
                false,
            ),
            (
                json!({"terminated": {"exitCode": 128, "reason": "StartError"}}),
                json!({}),
                false,
            ),
            (
                json!({"terminated": {"exitCode": 2, "reason": "Error"}}),
                json!({}),
                true,
            ),
            (json!({"running": {}}), json!({}), true),
        ] {
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
        assert!(
            !PodDiagnosis::read(&unreported.to_string())
                .unwrap()
                .containers[0]
                .has_log()
        );
    }
}
