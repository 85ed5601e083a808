//! The Node that is reported on: its condition is read once, and from then on only written.

use std::time::Duration;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use kube::Client;
use kube::api::{Patch, PatchParams, Request};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::Args;
use super::settings::Settings;
use super::state::Condition;
use crate::api::ConditionStatus;
use crate::causes::with_causes;
use crate::client;

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The name under which the API server records the writes.
const FIELD_MANAGER: &str = "nodegate-reporter";

/// Why a request failed, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RequestError(String);

/// The Node that is reported on.
pub struct ReportedNode {
    client: Client,
    name: String,
    condition_type: String,
}

/// A condition as it stands on the Node.
#[derive(Debug)]
pub struct Found {
    /// The condition.
    pub condition: Condition,
    /// When it was last written.
    pub heartbeat: Option<Timestamp>,
}

impl ReportedNode {
    /// The Node of these settings, in the cluster of these arguments.
    ///
    /// # Errors
    /// When nothing says which cluster that is.
    pub async fn new(args: &Args, settings: &Settings) -> Result<Self, client::Error> {
        let kubeconfig = args.kubeconfig.as_deref();
        let mut config = client::config(kubeconfig, super::check::USER_AGENT).await?;
        if settings.impersonate {
            // The user alone: constrained impersonation adds the group of nodes itself, and refuses any that is asked for.
            config.auth_info.impersonate = Some(format!("system:node:{}", settings.node));
        }
        Ok(Self {
            client: client::connect(config)?,
            name: settings.node.clone(),
            condition_type: settings.condition_type.clone(),
        })
    }

    /// Reads the condition as it stands on the Node.
    ///
    /// # Errors
    /// When it cannot be read; the message says what to do.
    pub async fn read(&self) -> Result<Option<Found>, RequestError> {
        let request = Request::new(NODES).get(&self.name, &kube::api::GetParams::default());
        let request = request.map_err(|error| RequestError(with_causes(&error)))?;
        let node: Node = self.request("read", request).await?;
        let mut conditions = node.status.conditions.into_iter();
        Ok(conditions
            .find(|condition| condition.kind == self.condition_type)
            .map(NodeCondition::found))
    }

    /// Writes the condition, as last confirmed at `heartbeat`. Other conditions stay as they are.
    ///
    /// # Errors
    /// When it cannot be written; the message says what to do.
    pub async fn write(
        &self,
        condition: &Condition,
        heartbeat: Timestamp,
    ) -> Result<(), RequestError> {
        let patch = Patch::Strategic(patch(&self.condition_type, condition, heartbeat));
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let request = Request::new(NODES).patch_subresource("status", &self.name, &params, &patch);
        let mut request = request.map_err(|error| RequestError(with_causes(&error)))?;
        client::answer_with_metadata(&mut request);
        self.request::<IgnoredAny>("write the status of", request)
            .await
            .map(|_| ())
    }

    async fn request<T: for<'de> Deserialize<'de>>(
        &self,
        verb: &str,
        request: axum::http::Request<Vec<u8>>,
    ) -> Result<T, RequestError> {
        let problem = match tokio::time::timeout(DEADLINE, self.client.request(request)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => explain(error),
            Err(_) => format!("the API server did not answer within {DEADLINE:?}"),
        };
        let name = &self.name;
        Err(RequestError(format!(
            "cannot {verb} Node {name}: {problem}"
        )))
    }
}

const NODES: &str = "/api/v1/nodes";

/// What went wrong with a request, and what to do about it.
fn explain(error: kube::Error) -> String {
    let status = match error {
        kube::Error::Api(status) => status,
        error => return with_causes(&error),
    };
    let remedy = match status.code {
        404 => "is NODE_NAME right? Take it from the downward API: spec.nodeName",
        403 if status.message.contains("ValidatingAdmissionPolicy") => return status.message,
        403 => "grant it with `kubectl apply -k config/reporter`, see docs/reporter.md",
        401 => "the API server does not accept these credentials",
        _ => return status.message,
    };
    format!("{} ({remedy})", status.message)
}

/// A strategic merge patch: conditions are a map by type there, so this touches no other one and needs no read.
fn patch(condition_type: &str, condition: &Condition, heartbeat: Timestamp) -> Value {
    json!({"status": {"conditions": [{
        "type": condition_type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": whole_seconds(heartbeat),
        "lastTransitionTime": whole_seconds(condition.transition),
    }]}})
}

/// A time as the API keeps it.
fn whole_seconds(time: Timestamp) -> Timestamp {
    let round = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Trunc);
    time.round(round).unwrap_or(time)
}

/// A Node, as far as it is read.
#[derive(Debug, Deserialize)]
struct Node {
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    conditions: Vec<NodeCondition>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    last_heartbeat_time: Option<Timestamp>,
    #[serde(default)]
    last_transition_time: Option<Timestamp>,
}

impl NodeCondition {
    fn found(self) -> Found {
        Found {
            condition: Condition {
                status: self.status.parse().unwrap_or(ConditionStatus::Unknown),
                reason: self.reason,
                message: self.message,
                transition: self.last_transition_time.unwrap_or_else(Timestamp::now),
            },
            heartbeat: self.last_heartbeat_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_is_about_one_condition_and_nothing_else() {
        let condition = Condition {
            status: ConditionStatus::True,
            reason: "EndpointOK".to_owned(),
            message: "fine".to_owned(),
            transition: "2026-01-02T03:04:05.6Z".parse().unwrap(),
        };
        let heartbeat = "2026-01-02T03:09:05.999Z".parse().unwrap();
        let expected = json!({"status": {"conditions": [{
            "type": "example.com/Ready",
            "status": "True",
            "reason": "EndpointOK",
            "message": "fine",
            "lastHeartbeatTime": "2026-01-02T03:09:05Z",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }]}});
        assert_eq!(patch("example.com/Ready", &condition, heartbeat), expected);
    }
}
