//! The Node that is reported on: its condition is read at the start, looked for now and then, and written.
//!
//! It is written by a patch of this one condition, which needs no read. Where only `update` is granted on `nodes/status`,
//! as the Node Readiness Controller's roles do, the status is read and put back with this one condition changed.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{GetParams, Patch, PatchParams, PostParams, Request};
use kube::core::request;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tracing::{info, warn};

use super::Args;
use super::settings::Settings;
use super::state::ReportedCondition;
use super::wire;
use crate::api::{ConditionStatus, time_if_readable};
use crate::causes::with_causes;
use crate::client;

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The name under which the API server records the writes.
const FIELD_MANAGER: &str = "nodegate-reporter";

/// How often a status is put back that somebody else has changed since it was read.
const UPDATES: usize = 5;

/// Why a request failed, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct RequestFailure {
    words: String,
    kind: Kind,
}

/// What can be done about a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// There is no permission for it.
    NotGranted,
    /// The object has changed since it was read.
    Conflict,
    /// Another one.
    Other,
}

/// The Node that is reported on.
pub struct ReportedNode {
    client: Client,
    name: String,
    condition_type: String,
    means: Means,
}

/// By which request the condition is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Patch,
    Update,
}

/// A condition as it stands on the Node.
#[derive(Debug)]
pub struct Found {
    /// The condition.
    pub condition: ReportedCondition,
    /// When it was last written.
    pub written: Option<Timestamp>,
    /// The boot that the node is in, as its kubelet says; empty where it does not.
    pub node_boot_id: String,
}

impl ReportedNode {
    /// The Node of these settings, in the cluster of these arguments.
    ///
    /// # Errors
    /// When nothing says which cluster that is.
    pub async fn new(args: &Args, settings: &Settings) -> Result<Self, client::Error> {
        let kubeconfig = args.kubeconfig.as_deref();
        let mut config = client::config(kubeconfig, None, super::check::USER_AGENT).await?;
        if settings.impersonate {
            // The user alone: constrained impersonation adds the group of nodes itself, and refuses any that is asked for.
            config.auth_info.impersonate = Some(format!("system:node:{}", settings.node));
        } else if let Some(word) = &args.impersonate_node
            && !["", "false"].contains(&word.as_str())
        {
            warn!(
                "IMPERSONATE_NODE is {word:?}, and only \"true\" turns it on: not acting as the node"
            );
        }
        Ok(Self {
            client: client::connect(config)?,
            name: settings.node.clone(),
            condition_type: settings.condition_type.clone(),
            means: Means::Patch,
        })
    }

    /// Reads the condition as it stands on the Node.
    ///
    /// # Errors
    /// When it cannot be read; the message says what to do.
    pub async fn read(&self) -> Result<Option<Found>, RequestFailure> {
        self.find(&GetParams::default()).await
    }

    /// As [`Self::read`], from what the API server has in its cache: a request that never reaches the store. It may be
    /// some moments behind.
    ///
    /// # Errors
    /// As there.
    pub async fn look(&self) -> Result<Option<Found>, RequestFailure> {
        self.find(&GetParams::at("0")).await
    }

    async fn find(&self, version: &GetParams) -> Result<Option<Found>, RequestFailure> {
        let node: Node = self.get(version).await?;
        let NodeStatus {
            conditions,
            node_info: NodeInfo { boot_id },
        } = node.status;
        let found = conditions
            .into_iter()
            .find(|condition| condition.kind == self.condition_type);
        Ok(found.map(|condition| condition.found_in(boot_id)))
    }

    /// Writes the condition, as last confirmed at `heartbeat`. Other conditions stay as they are.
    ///
    /// # Errors
    /// When it cannot be written; the message says what to do.
    pub async fn write(
        &mut self,
        condition: &ReportedCondition,
        heartbeat: Timestamp,
    ) -> Result<(), RequestFailure> {
        let condition = wire::condition(&self.condition_type, condition, heartbeat);
        if self.means == Means::Update {
            let updated = self.update(&condition).await;
            // The permissions are others by now.
            if updated.as_ref().is_err_and(RequestFailure::is_not_granted) {
                self.means = Means::Patch;
            }
            return updated;
        }
        let not_granted = match self.patch(&condition).await {
            Err(error) if error.is_not_granted() => error,
            patched => return patched,
        };
        match self.update(&condition).await {
            Ok(()) => {
                info!(
                    node = self.name,
                    "nodes/status may not be patched, but updated: from now on each write reads the Node before"
                );
                self.means = Means::Update;
                Ok(())
            }
            Err(error) if error.is_not_granted() => Err(not_granted),
            Err(error) => Err(error),
        }
    }

    /// Patches the condition.
    async fn patch(&self, condition: &Value) -> Result<(), RequestFailure> {
        let patch = Patch::Strategic(wire::patch(condition));
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let request = Request::new(NODES).patch_subresource("status", &self.name, &params, &patch);
        self.write_status(request).await
    }

    /// Reads the Node and puts its status back with the condition. Whatever changes in between makes the API server
    /// refuse it, so that nobody's change is lost.
    async fn update(&self, condition: &Value) -> Result<(), RequestFailure> {
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let mut tries = 1;
        loop {
            let mut node: Value = self.get(&GetParams::default()).await?;
            wire::put(&mut node, condition);
            let body = node.to_string().into_bytes();
            let request =
                Request::new(NODES).replace_subresource("status", &self.name, &params, body);
            match self.write_status(request).await {
                Err(error) if error.kind == Kind::Conflict && tries < UPDATES => tries += 1,
                updated => return updated,
            }
        }
    }

    async fn get<T: for<'de> Deserialize<'de>>(
        &self,
        version: &GetParams,
    ) -> Result<T, RequestFailure> {
        let request = Request::new(NODES).get(&self.name, version);
        self.request("read", request).await
    }

    async fn write_status(
        &self,
        request: Result<axum::http::Request<Vec<u8>>, request::Error>,
    ) -> Result<(), RequestFailure> {
        let request = request.map(|mut request| {
            client::answer_with_metadata(&mut request);
            request
        });
        let written = self.request::<IgnoredAny>("write the status of", request);
        written.await.map(|_| ())
    }

    async fn request<T: for<'de> Deserialize<'de>>(
        &self,
        verb: &str,
        request: Result<axum::http::Request<Vec<u8>>, request::Error>,
    ) -> Result<T, RequestFailure> {
        let answer = async {
            self.client
                .request(request.map_err(kube::Error::BuildRequest)?)
                .await
        };
        let (problem, kind) = match tokio::time::timeout(DEADLINE, answer).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => explain(error),
            Err(_) => {
                let problem = format!("the API server did not answer within {DEADLINE:?}");
                (problem, Kind::Other)
            }
        };
        let name = &self.name;
        let words = format!("cannot {verb} Node {name}: {problem}");
        Err(RequestFailure { words, kind })
    }
}

impl RequestFailure {
    fn is_not_granted(&self) -> bool {
        self.kind == Kind::NotGranted
    }
}

const NODES: &str = "/api/v1/nodes";

/// What went wrong with a request, and what to do about it.
fn explain(error: kube::Error) -> (String, Kind) {
    let status = match error {
        kube::Error::Api(status) => status,
        error => return (with_causes(&error), Kind::Other),
    };
    let is_policy = status.message.contains("ValidatingAdmissionPolicy");
    let (kind, remedy) = match status.code {
        404 => (
            Kind::Other,
            "is NODE_NAME right? Take it from the downward API: spec.nodeName",
        ),
        403 if !is_policy => (
            Kind::NotGranted,
            "grant it with `kubectl apply -k config/reporter`, see docs/reporter.md",
        ),
        401 => (
            Kind::Other,
            "the API server does not accept these credentials",
        ),
        409 => return (status.message, Kind::Conflict),
        _ => return (status.message, Kind::Other),
    };
    (format!("{} ({remedy})", status.message), kind)
}

/// A Node, as far as it is read.
#[derive(Debug, Deserialize)]
struct Node {
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeStatus {
    #[serde(default)]
    conditions: Vec<NodeCondition>,
    #[serde(default)]
    node_info: NodeInfo,
}

#[derive(Debug, Default, Deserialize)]
struct NodeInfo {
    #[serde(default, rename = "bootID")]
    boot_id: String,
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
    // Those of others must not keep this one's condition from being read.
    #[serde(default, deserialize_with = "time_if_readable")]
    last_heartbeat_time: Option<Time>,
    #[serde(default, deserialize_with = "time_if_readable")]
    last_transition_time: Option<Time>,
}

impl NodeCondition {
    fn found_in(self, node_boot_id: String) -> Found {
        Found {
            condition: ReportedCondition {
                status: self.status.parse().unwrap_or(ConditionStatus::Unknown),
                reason: self.reason,
                message: self.message,
                transition: self
                    .last_transition_time
                    .map_or_else(Timestamp::now, |time| time.0),
            },
            written: self.last_heartbeat_time.map(|time| time.0),
            node_boot_id,
        }
    }
}
