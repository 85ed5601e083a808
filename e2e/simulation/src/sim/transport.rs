//! Translates the engine's requests for the model's API server, and its answers back.

use nodegate_core::object::{RuleObject, Watched};
use nodegate_engine::RequestError;
use nodegate_engine::io::{Answer, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cluster::{Cluster, Who};
use crate::{Key, Kind, Part, Patch, Preconditions, Refusal, Success, request};

/// Whether the request would change a rule, node or claim.
pub(super) fn is_write(request: &Request) -> bool {
    !matches!(
        request,
        Request::ReadNode(..) | Request::ReadVersion(..) | Request::PostEvent { .. }
    )
}

/// The object that the request writes.
pub(super) fn target(request: &Request) -> Option<Key> {
    let (kind, name) = match request {
        Request::PatchNode(name, _) | Request::PatchNodeStatus(name, _) => (Kind::Node, name),
        Request::PatchRule(name, _) | Request::PatchRuleStatus(name, _) => {
            (Kind::NodeReadinessRule, name)
        }
        Request::PatchNodeClaim(name, _) | Request::DeleteNodeClaim { name, .. } => {
            (Kind::NodeClaim, name)
        }
        _ => return None,
    };
    Some(Key::cluster(kind, name))
}

/// Whether a request writes a status, which has a request of its own.
pub(super) fn is_of_status(request: &Request) -> bool {
    matches!(
        request,
        Request::PatchNodeStatus(..) | Request::PatchRuleStatus(..)
    )
}

pub(super) fn carry(
    cluster: &mut Cluster,
    who: Who,
    request: &Request,
) -> Result<Answer, RequestError> {
    let patch = match request {
        Request::PatchNode(_, it) | Request::PatchRule(_, it) | Request::PatchRuleStatus(_, it) => {
            Patch::Json(it.clone())
        }
        Request::PatchNodeStatus(_, it) => Patch::Strategic(it.clone()),
        Request::PatchNodeClaim(_, it) => Patch::Merge(it.clone()),
        Request::DeleteNodeClaim { name, uid, version } => {
            let delete = request::Request::Delete {
                key: Key::cluster(Kind::NodeClaim, name),
                preconditions: Preconditions {
                    uid: Some(uid.to_string()),
                    resource_version: Some(version.to_string()),
                },
                grace: None,
            };
            let answer = cluster.request(who, &delete);
            return answer.map(|_| Answer::Done).map_err(|it| refused(&it));
        }
        Request::ReadNode(name) => {
            let node = cluster.get(&Key::cluster(Kind::Node, name));
            let node = decoded(node.ok_or(RequestError::Gone)?)?;
            return Ok(Answer::Node(Box::new(node)));
        }
        Request::ReadVersion(..) => return Ok(Answer::Version(cluster.revision())),
        Request::PostEvent { notice, .. } => {
            cluster.tell((**notice).clone());
            return Ok(Answer::Done);
        }
    };
    let key = target(request).ok_or(RequestError::Gone)?;
    let (kind, is_of_status) = (key.kind, is_of_status(request));
    let part = if is_of_status {
        Part::Status
    } else {
        Part::Main
    };
    let patch = request::Request::Patch { key, part, patch };
    let object = object(cluster.request(who, &patch))?;
    Ok(match kind {
        Kind::Node => Answer::Node(Box::new(decoded(&object)?)),
        Kind::NodeClaim => Answer::NodeClaim(Box::new(decoded(&object)?)),
        _ if is_of_status => {
            let rule: Watched<RuleObject> = decoded(&object)?;
            Answer::Version(rule.version())
        }
        _ => Answer::Rule(Box::new(decoded(&object)?)),
    })
}

/// An object as the product decodes it.
pub(super) fn decoded<K: DeserializeOwned>(object: &Value) -> Result<K, RequestError> {
    K::deserialize(object).map_err(|error| RequestError::Failed(error.to_string()))
}

fn object(answer: crate::Answer) -> Result<std::sync::Arc<Value>, RequestError> {
    match answer {
        Ok(Success::Created(object) | Success::Object(object)) => Ok(object),
        Ok(Success::Deleted | Success::Bound) => Err(RequestError::Gone),
        Err(refusal) => Err(refused(&refusal)),
    }
}

/// Translates a refusal for the engine, as the product's writer does.
fn refused(refusal: &Refusal) -> RequestError {
    // A failed JSON patch test names no field; a merge patch with another UID names just that field.
    let is_another = refusal.fields.iter().all(|field| field == "metadata.uid");
    match refusal.code {
        404 => RequestError::Gone,
        409 => RequestError::Conflict,
        422 if is_another => RequestError::Conflict,
        _ => RequestError::Failed(refusal.message.clone()),
    }
}
