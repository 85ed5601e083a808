//! The reported Node: reads its condition at startup, re-reads it now and then, and writes it by a patch that needs no read. If
//! roles grant only `update` on `nodes/status`, as the Node Readiness Controller's do, it replaces the status that it has read.

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{GetParams, Patch, PatchParams, PostParams, Request};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tracing::{info, warn};

use super::settings::ReporterSettings;
use super::state::ReportedCondition;
use super::{AGENT, ReporterArgs};
use nodegate_cluster::{client, with_causes};
use nodegate_core::object::{Node, Watched, whole_second};
use nodegate_core::text::documentation;

const NODES: &str = "/api/v1/nodes";
const WRITE: &str = "write the status of";
const DEADLINE: Duration = Duration::from_secs(10);
const FIELD_MANAGER: &str = "nodegate-reporter";
/// How often an update is retried on conflicts.
const UPDATES: usize = 5;
/// What the message of a refusal by an admission policy names.
const POLICY: &str = "ValidatingAdmissionPolicy";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(super) struct RequestFailure {
    words: String,
    /// The status code of the API server's refusal; 0 for any other failure.
    code: u16,
}

pub(super) struct ReportedNode {
    client: Client,
    name: String,
    condition_type: String,
    /// Whether the status may be updated, and not patched.
    updates: bool,
}

impl ReportedNode {
    pub(super) async fn new(
        args: &ReporterArgs,
        settings: &ReporterSettings,
    ) -> Result<Self, client::Error> {
        let kubeconfig = args.kubeconfig.as_deref();
        let mut config = client::config(kubeconfig, None, AGENT).await?;
        if settings.impersonate {
            // Only the user: constrained impersonation adds the nodes' group itself, and rejects any requested group.
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
            updates: false,
        })
    }

    /// Reads the Node: consistently, or at version 0 from the API server's cache, which may be slightly stale and spares etcd.
    pub(super) async fn read(&self, version: &GetParams) -> Result<Node, RequestFailure> {
        let node: Watched<Node> = self.get(version).await?;
        node.read().map_err(|why| RequestFailure {
            words: format!("Node {} cannot be parsed: {why}", self.name),
            code: 0,
        })
    }

    /// Writes the condition, last confirmed at `heartbeat`. Other conditions are unchanged.
    pub(super) async fn write(
        &mut self,
        condition: &ReportedCondition,
        heartbeat: Timestamp,
    ) -> Result<(), RequestFailure> {
        let condition = wire(&self.condition_type, condition, heartbeat);
        if self.updates {
            let updated = self.update(&condition).await;
            // While it may be updated: permissions change.
            self.updates = !updated.as_ref().is_err_and(RequestFailure::is_not_granted);
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
                self.updates = true;
                Ok(())
            }
            Err(error) if error.is_not_granted() => Err(not_granted),
            Err(error) => Err(error),
        }
    }

    async fn patch(&self, condition: &Value) -> Result<(), RequestFailure> {
        let patch = Patch::Strategic(patch(condition));
        let params = PatchParams::apply(FIELD_MANAGER);
        let request = Request::new(NODES).patch_subresource("status", &self.name, &params, &patch);
        let patched = client::write::<IgnoredAny>(&self.client, request);
        self.request(WRITE, patched).await.map(|_| ())
    }

    /// Reads the Node and replaces its status with the condition changed. If anything changed in between, the API server refuses.
    async fn update(&self, condition: &Value) -> Result<(), RequestFailure> {
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let mut tries = 1;
        loop {
            let mut node: Value = self.get(&GetParams::default()).await?;
            put(&mut node, condition);
            let body = node.to_string().into_bytes();
            let request = Request::new(NODES);
            let request = request.replace_subresource("status", &self.name, &params, body);
            let updated = client::write::<IgnoredAny>(&self.client, request);
            match self.request(WRITE, updated).await {
                Err(error) if error.code == 409 && tries < UPDATES => tries += 1,
                updated => return updated.map(|_| ()),
            }
        }
    }

    async fn get<T: DeserializeOwned>(&self, version: &GetParams) -> Result<T, RequestFailure> {
        let request = Request::new(NODES).get(&self.name, version);
        let answer = client::send(&self.client, request);
        self.request("read", answer).await
    }

    async fn request<T>(
        &self,
        verb: &str,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestFailure> {
        client::in_time(DEADLINE, answer).await.map_err(|error| {
            let (problem, code) = explain(error);
            let words = format!("cannot {verb} Node {}: {problem}", self.name);
            RequestFailure { words, code }
        })
    }
}

impl RequestFailure {
    /// Whether roles grant too little. An admission policy refuses with the same code.
    pub(super) fn is_not_granted(&self) -> bool {
        self.code == 403 && !self.words.contains(POLICY)
    }
}

/// The cause of a failed request with its remedy, and the code of a refusal.
fn explain(error: kube::Error) -> (String, u16) {
    let status = match error {
        kube::Error::Api(status) => status,
        error => return (with_causes(&error), 0),
    };
    let page = documentation::page("reporter.md");
    let grant = format!("grant it with `kubectl apply -k config/reporter`, see {page}");
    let remedy = match status.code {
        401 => "the API server does not accept these credentials",
        403 if !status.message.contains(POLICY) => &*grant,
        404 => "is NODE_NAME right? Take it from the downward API: spec.nodeName",
        code => return (status.message, code),
    };
    (format!("{} ({remedy})", status.message), status.code)
}

/// The condition as sent, last confirmed at `heartbeat`.
fn wire(condition_type: &str, condition: &ReportedCondition, heartbeat: Timestamp) -> Value {
    json!({
        "type": condition_type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": whole_second(heartbeat),
        "lastTransitionTime": whole_second(condition.transition),
    })
}

/// A strategic merge patch: it treats conditions as a map by type, so it touches no other one and needs no read.
fn patch(condition: &Value) -> Value {
    json!({"status": {"conditions": [condition]}})
}

/// Replaces the condition of the same type in a Node, or adds it. Everything else is unchanged.
fn put(node: &mut Value, condition: &Value) {
    let mut conditions = match node["status"]["conditions"].take() {
        Value::Array(conditions) => conditions,
        _ => Vec::new(),
    };
    let mut known = conditions.iter_mut();
    match known.find(|known| known["type"] == condition["type"]) {
        Some(known) => *known = condition.clone(),
        None => conditions.push(condition.clone()),
    }
    node["status"]["conditions"] = conditions.into();
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodegate_core::api::ConditionStatus;

    fn ready() -> Value {
        let ready = ReportedCondition {
            status: ConditionStatus::True,
            reason: "EndpointOK".to_owned(),
            message: "fine".to_owned(),
            transition: "2026-01-02T03:04:05.6Z".parse().unwrap(),
        };
        let heartbeat = "2026-01-02T03:09:05.999Z".parse().unwrap();
        wire("example.com/Ready", &ready, heartbeat)
    }

    #[test]
    fn the_patch_is_about_one_condition_and_nothing_else() {
        let expected = json!({"status": {"conditions": [{
            "type": "example.com/Ready",
            "status": "True",
            "reason": "EndpointOK",
            "message": "fine",
            "lastHeartbeatTime": "2026-01-02T03:09:05Z",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }]}});
        assert_eq!(patch(&ready()), expected);
    }

    #[test]
    fn an_update_changes_one_condition_of_the_node_and_nothing_else() {
        let node = |conditions: Value| {
            json!({
                "metadata": {"name": "worker-1", "resourceVersion": "7", "unknown": 1.5},
                "spec": {"podCIDR": "10.0.0.0/24"},
                "status": {"conditions": conditions, "images": [{"sizeBytes": 9_007_199_254_740_993_i64}]},
            })
        };
        let other = json!({"type": "Ready", "status": "True", "later": {"a": []}});
        let stale = json!({"type": "example.com/Ready", "status": "False", "reason": "old"});
        for (before, after) in [
            (json!([]), json!([ready()])),
            (Value::Null, json!([ready()])),
            (json!([other]), json!([other, ready()])),
            (json!([stale, other]), json!([ready(), other])),
        ] {
            let mut found = node(before);
            put(&mut found, &ready());
            assert_eq!(found, node(after));
        }
        let mut empty = json!({});
        put(&mut empty, &ready());
        assert_eq!(empty, patch(&ready()));
    }
}
