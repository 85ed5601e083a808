//! What a pod has to say for itself: which of its containers does not do its part, and why. No decision goes by it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::object::ObjectKey;

/// What a pod has to say for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// The pod.
    pub key: ObjectKey,
    /// The node that it is bound to; empty before it is.
    pub node: String,
    /// Kind and name of what controls it.
    pub owner: Option<(String, String)>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When it began to be deleted.
    pub deleted: Option<Timestamp>,
    /// Its phase.
    pub phase: String,
    /// Whether it is Ready, and since when.
    pub ready: (bool, Option<Timestamp>),
    /// Why it is not bound to a node, if it is not: reason and message.
    pub unscheduled: Option<(String, String)>,
    /// Why the kubelet does not run it at all, if it does not: reason and message.
    pub refused: Option<(String, String)>,
    /// Its containers, those that run first at the beginning.
    pub containers: Vec<Container>,
    /// What has been warned of about it, latest first.
    pub events: Vec<PodEvent>,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Whether it runs before the others.
    pub is_init: bool,
    /// Whether it is ready, or has done its part.
    pub is_ready: bool,
    /// How often it was started anew.
    pub restarts: i32,
    /// What it does.
    pub state: ContainerState,
}

/// What a container does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerState {
    /// Nothing is known of it yet.
    Unknown,
    /// It waits, for this reason.
    Waiting {
        /// One word.
        reason: String,
        /// More of them.
        message: String,
    },
    /// It runs.
    Running {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// It has ended.
    Ended {
        /// One word.
        reason: String,
        /// The exit code.
        code: i32,
        /// When.
        at: Option<Timestamp>,
    },
}

/// A warning about a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PodEvent {
    /// One word.
    pub reason: String,
    /// The message.
    pub message: String,
    /// When it was told last.
    pub at: Option<Timestamp>,
}

impl Story {
    /// The container that keeps the pod from being Ready, if one does: the first that has not done its part.
    #[must_use]
    pub fn culprit(&self) -> Option<&Container> {
        let mut containers = self.containers.iter();
        containers.find(|container| !container.is_ready)
    }

    /// Since when it is not Ready: since the condition turned, or since it was created.
    #[must_use]
    pub fn unready_since(&self) -> Option<Timestamp> {
        let (is_ready, since) = self.ready;
        if is_ready {
            None
        } else {
            since.or(self.created)
        }
    }

    /// What the probe of a container answered that runs and is not ready.
    #[must_use]
    pub fn probe(&self) -> Option<&PodEvent> {
        let mut events = self.events.iter();
        events.find(|event| event.reason == "Unhealthy")
    }
}

impl Container {
    /// Why it does not do its part, in one line.
    #[must_use]
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
        match &self.state {
            ContainerState::Unknown => format!("{what} {name} has not been started yet"),
            ContainerState::Waiting { reason, message } if message.is_empty() => {
                format!("{what} {name}: {reason}{restarts}")
            }
            ContainerState::Waiting { reason, message } => {
                format!("{what} {name}: {reason}: {message}{restarts}")
            }
            ContainerState::Running { .. } if self.is_init => {
                format!("{what} {name} is still at work{restarts}")
            }
            ContainerState::Running { .. } => {
                format!("{what} {name} runs and is not ready{restarts}")
            }
            ContainerState::Ended { reason, code, .. } => {
                format!("{what} {name} has ended: {reason} (exit code {code}){restarts}")
            }
        }
    }

    /// The reason of a container that waits, in one word.
    #[must_use]
    pub fn waits_for(&self) -> Option<&str> {
        match &self.state {
            ContainerState::Waiting { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// A pod on the wire, as far as it says why it is not Ready. What is not as the API has it is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    init_containers: Option<Vec<Named>>,
    containers: Option<Vec<Named>>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    conditions: Option<Vec<k8s_openapi::api::core::v1::PodCondition>>,
    init_container_statuses: Option<Vec<k8s_openapi::api::core::v1::ContainerStatus>>,
    container_statuses: Option<Vec<k8s_openapi::api::core::v1::ContainerStatus>>,
}

impl Story {
    /// What the pod in this JSON has to say, if it can be understood.
    #[must_use]
    pub fn read(json: &str) -> Option<Self> {
        let Object {
            metadata,
            spec,
            status,
        } = serde_json::from_str(json).ok()?;
        let condition = |kind: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.find(|condition| condition.type_ == kind)
        };
        let ready = condition("Ready");
        let scheduled = condition("PodScheduled").filter(|it| it.status != "True");
        let owner = metadata.owner_references.iter().flatten();
        let mut owner = owner.filter(|owner| owner.controller == Some(true));
        let containers = containers(true, spec.init_containers, status.init_container_statuses)
            .chain(containers(
                false,
                spec.containers,
                status.container_statuses,
            ))
            .collect();
        Some(Self {
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
            containers,
            events: Vec::new(),
        })
    }
}

fn containers(
    is_init: bool,
    named: Option<Vec<Named>>,
    statuses: Option<Vec<k8s_openapi::api::core::v1::ContainerStatus>>,
) -> impl Iterator<Item = Container> {
    let mut statuses = statuses.unwrap_or_default();
    let named = named.unwrap_or_default().into_iter();
    named.map(move |Named { name }| {
        let position = statuses.iter().position(|status| status.name == name);
        let status = position.map(|position| statuses.swap_remove(position));
        let restarts = status.as_ref().map_or(0, |status| status.restart_count);
        let is_ready = status.as_ref().is_some_and(|status| status.ready);
        let state = status.and_then(|status| status.state);
        let state = state.map_or(ContainerState::Unknown, |state| {
            if let Some(waiting) = state.waiting {
                ContainerState::Waiting {
                    reason: waiting.reason.unwrap_or_default(),
                    message: waiting.message.unwrap_or_default(),
                }
            } else if let Some(ended) = state.terminated {
                ContainerState::Ended {
                    reason: ended.reason.unwrap_or_default(),
                    code: ended.exit_code,
                    at: ended.finished_at.map(|time| time.0),
                }
            } else if let Some(running) = state.running {
                ContainerState::Running {
                    since: running.started_at.map(|time| time.0),
                }
            } else {
                ContainerState::Unknown
            }
        });
        let has_done = is_init && matches!(state, ContainerState::Ended { code: 0, .. });
        Container {
            name,
            is_init,
            is_ready: is_ready || has_done,
            restarts,
            state,
        }
    })
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
        let story = Story::read(&pod.to_string()).unwrap();
        story.culprit().map(Container::why).unwrap_or_default()
    }

    #[test]
    fn the_container_is_named_that_does_not_do_its_part() {
        let done = json!([{"name": "setup", "ready": false, "restartCount": 0, "image": "", "imageID": "",
            "state": {"terminated": {"exitCode": 0}}}]);
        let agent = |ready: bool, restarts: i32, state: serde_json::Value| {
            json!({"initContainerStatuses": done, "containerStatuses": [{"name": "agent", "ready": ready,
                "restartCount": restarts, "image": "", "imageID": "", "state": state}]})
        };
        for (status, expected) in [
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
                "container agent runs and is not ready, restarted once",
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
}
