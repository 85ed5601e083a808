//! Everything that is written to nodes, rules and `NodeClaim`s, each write with a deadline and none replayed by the client.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use json_patch::Patch as JsonPatch;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, Request};
use kube::{Api, Client, Resource};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::limiter::Limiter;
use super::metrics::Metrics;
use crate::causes::with_causes;
use crate::client;
use crate::engine::RequestError;
use crate::engine::patch;
use crate::object::{
    MetadataObject, NodeClaim, NodeClaimObject, NodeMetadata, NodeObject, RuleObject, Unreadable,
    Version,
};

/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The name under which the API server records our writes.
const FIELD_MANAGER: &str = "nodegate";

/// The manifests that allow what the controller does to nodes and rules...
pub const RBAC: &str = "config/rbac";
/// ...and to Karpenter's objects.
pub const KARPENTER_RBAC: &str = "config/karpenter";

/// What is written, as metrics call it: a node's taints and annotations...
const NODE: &str = "node";
/// ...and its conditions; a rule's finalizers...
const CONDITIONS: &str = "conditions";
const FINALIZERS: &str = "finalizers";
/// ...and its status; and a `NodeClaim`.
const STATUS: &str = "status";
const NODE_CLAIM: &str = "nodeclaim";
/// Why writes fail, as metrics call it.
const UNREACHABLE: &str = "unreachable";
const THROTTLED: &str = "throttled";
const BROKEN: &str = "broken";
const TIMED_OUT: &str = "timed_out";
const REFUSED: &str = "refused";

/// What metrics call it; `None` for what is in the nature of concurrent writes.
fn reason(error: &RequestError) -> Option<&'static str> {
    match error {
        RequestError::Conflict | RequestError::Gone => None,
        RequestError::Unreachable(_) => Some(UNREACHABLE),
        RequestError::Throttled { .. } => Some(THROTTLED),
        RequestError::Broken { .. } => Some(BROKEN),
        RequestError::TimedOut(_) => Some(TIMED_OUT),
        RequestError::Failed(_) => Some(REFUSED),
    }
}

/// What the API server says where it forbids a write, and what to do about it; an admission policy has said so itself.
fn with_remedy(message: String) -> String {
    if message.contains("ValidatingAdmissionPolicy") {
        return message;
    }
    let rbac = if message.contains("karpenter.sh") {
        KARPENTER_RBAC
    } else {
        RBAC
    };
    format!("{message} (grant it with `kubectl apply -k {rbac}`)")
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        let status = match error {
            kube::Error::Api(status) => status,
            error @ (kube::Error::HyperError(_) | kube::Error::Service(_)) => {
                return Self::Unreachable(with_causes(&error));
            }
            error => return Self::Failed(with_causes(&error)),
        };
        let seconds = status
            .details
            .as_ref()
            .map_or(0, |it| it.retry_after_seconds);
        let come_again = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        // A failed `test` of a JSON patch is a 422 that names neither an object nor a field; another UID than a merge patch
        // names is one that names just that.
        let is_another = status.details.as_ref().is_none_or(|details| {
            let mut fields = details.causes.iter().map(|cause| cause.field.as_str());
            match details.causes.as_slice() {
                [] => details.name.is_empty(),
                _ => fields.all(|field| field == "metadata.uid"),
            }
        });
        match status.code {
            404 => Self::Gone,
            409 => Self::Conflict,
            422 if is_another => Self::Conflict,
            403 => Self::Failed(with_remedy(status.message)),
            429 => Self::Throttled {
                message: status.message,
                come_again,
            },
            500.. => Self::Broken {
                message: status.message,
                come_again,
            },
            _ => Self::Failed(status.message),
        }
    }
}

/// Writes to nodes, rules and `NodeClaim`s.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    nodes: Api<NodeObject>,
    /// The limit that those who have something written keep to.
    pub limiter: Limiter,
    metrics: Metrics,
}

impl Writer {
    /// A writer that uses this client, whose own retries must be off.
    pub fn new(client: &Client, limiter: Limiter, metrics: Metrics) -> Self {
        for object in [NODE, CONDITIONS, FINALIZERS, STATUS, NODE_CLAIM] {
            metrics.write_conflicts.with_label_values(&[object]);
            for reason in [UNREACHABLE, THROTTLED, BROKEN, TIMED_OUT, REFUSED] {
                metrics.write_failures.with_label_values(&[object, reason]);
            }
        }
        Self {
            client: client.clone(),
            nodes: Api::all(client.clone()),
            limiter,
            metrics,
        }
    }

    /// Makes a request, and counts how long it takes and whether it comes too late.
    async fn counted<T>(
        &self,
        object: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let started = Instant::now();
        let result = within_deadline(request).await;
        let duration = self.metrics.write_duration.with_label_values(&[object]);
        duration.observe(started.elapsed().as_secs_f64());
        match &result {
            Err(RequestError::Conflict) => {
                let conflicts = self.metrics.write_conflicts.with_label_values(&[object]);
                conflicts.inc();
            }
            Err(error) => {
                if let Some(reason) = reason(error) {
                    let labels = [object, reason];
                    self.metrics.write_failures.with_label_values(&labels).inc();
                }
            }
            Ok(_) => {}
        }
        result
    }

    /// Patches a node's taints and annotations; answers the node's metadata as they are then, and nothing else of it.
    pub async fn patch_node(
        &self,
        name: &str,
        patch: JsonPatch,
    ) -> Result<NodeMetadata, RequestError> {
        let request = Request::new(NodeObject::url_path(&(), None));
        let patch = Patch::Json::<()>(patch);
        let request = request.patch(name, &params(), &patch);
        self.counted(NODE, client::write::<MetadataObject>(&self.client, request))
            .await
            .and_then(|object| NodeMetadata::try_from(object).map_err(RequestError::from))
    }

    /// Patches a node's conditions; answers the node as it is then.
    pub async fn patch_node_conditions(
        &self,
        name: &str,
        patch: Value,
    ) -> Result<NodeObject, RequestError> {
        let request = Request::new(NodeObject::url_path(&(), None));
        let patch = Patch::Strategic(patch);
        let request = request.patch_subresource("status", name, &params(), &patch);
        self.counted(CONDITIONS, client::send(&self.client, request))
            .await
    }

    /// Reads a node.
    pub async fn read_node(&self, name: &str) -> Result<NodeObject, RequestError> {
        within_deadline(self.nodes.get(name)).await
    }

    /// Patches a rule's metadata; answers the rule as it is then.
    pub async fn patch_rule(
        &self,
        name: &str,
        patch: JsonPatch,
    ) -> Result<RuleObject, RequestError> {
        let request = Request::new(RuleObject::url_path(&(), None));
        let patch = Patch::Json::<()>(patch);
        let request = request.patch(name, &params(), &patch);
        self.counted(FINALIZERS, client::send(&self.client, request))
            .await
    }

    /// Patches a rule's status; answers the version that the rule has then.
    pub async fn patch_rule_status(
        &self,
        name: &str,
        patch: JsonPatch,
    ) -> Result<Version, RequestError> {
        let request = Request::new(RuleObject::url_path(&(), None));
        let patch = Patch::Json::<()>(patch);
        let request = request.patch_subresource("status", name, &params(), &patch);
        self.counted(
            STATUS,
            client::write::<MetadataObject>(&self.client, request),
        )
        .await
        .map(|object| object.version())
    }

    /// Deletes a claim, after it has been told not to wait for the node's pods beyond `now`. Neither happens unless the
    /// claim is exactly what was looked at: another one of its name, or one that has changed, is left alone.
    pub async fn delete_claim(
        &self,
        claim: &NodeClaim,
        now: Timestamp,
    ) -> Result<(), RequestError> {
        let claims = || Request::new(NodeClaimObject::url_path(&(), None));
        let mut version = claim.version;
        if let Some(patch) = patch::claim_termination(claim, now) {
            let patch = Patch::Merge(patch);
            let request = claims().patch(&claim.name, &params(), &patch);
            let request = client::send::<NodeClaimObject>(&self.client, request);
            let annotated = self.counted(NODE_CLAIM, request).await?.read()?;
            version = annotated.version;
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(claim.uid.to_string()),
                resource_version: Some(version.to_string()),
            }),
            ..DeleteParams::default()
        };
        let request = claims().delete(&claim.name, &params);
        let request = client::send::<IgnoredAny>(&self.client, request);
        self.counted(NODE_CLAIM, request).await.map(|_| ())
    }
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    }
}

async fn within_deadline<T>(
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(DEADLINE, request).await {
        Ok(result) => result.map_err(RequestError::from),
        Err(_) => Err(RequestError::TimedOut(DEADLINE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use kube::core::response::{StatusCause, StatusDetails};

    #[test]
    fn a_failed_test_is_told_from_an_invalid_object() {
        let status = |code, details| {
            kube::Error::Api(
                Status {
                    details,
                    ..Status::failure("message", "Reason").with_code(code)
                }
                .boxed(),
            )
        };
        let invalid = |field: &str| {
            Some(StatusDetails {
                name: "n".into(),
                group: String::new(),
                kind: "Node".into(),
                uid: String::new(),
                causes: vec![StatusCause {
                    reason: "FieldValueInvalid".into(),
                    message: "bad".into(),
                    field: field.into(),
                }],
                retry_after_seconds: 0,
            })
        };
        for (error, expected) in [
            (status(422, None), RequestError::Conflict),
            (
                status(422, invalid("spec.taints")),
                RequestError::Failed("message".into()),
            ),
            (status(422, invalid("metadata.uid")), RequestError::Conflict),
            (status(409, None), RequestError::Conflict),
            (status(404, None), RequestError::Gone),
        ] {
            assert_eq!(RequestError::from(error), expected);
        }
    }
}
