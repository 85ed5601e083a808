//! Translates the engine's requests for the model's API server, and its answers back.

use nodegate::engine::RequestError;
use nodegate::engine::io::{Answer, Request};
use nodegate::object::{RuleObject, Watched};
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
    let mut patch = |kind, name: &str, part, patch| {
        let request = request::Request::Patch {
            key: Key::cluster(kind, name),
            part,
            patch,
        };
        object(cluster.request(who, &request))
    };
    match request {
        Request::PatchNode(name, it) => {
            let node = patch(Kind::Node, name, Part::Main, Patch::Json(it.clone()))?;
            Ok(Answer::Node(Box::new(decoded(&node)?)))
        }
        Request::PatchNodeStatus(name, it) => {
            let node = patch(Kind::Node, name, Part::Status, Patch::Strategic(it.clone()))?;
            Ok(Answer::Node(Box::new(decoded(&node)?)))
        }
        Request::PatchRule(name, it) => {
            let part = Patch::Json(it.clone());
            let rule = patch(Kind::NodeReadinessRule, name, Part::Main, part)?;
            Ok(Answer::Rule(Box::new(decoded(&rule)?)))
        }
        Request::PatchRuleStatus(name, it) => {
            let part = Patch::Json(it.clone());
            let rule = patch(Kind::NodeReadinessRule, name, Part::Status, part)?;
            let rule: Watched<RuleObject> = decoded(&rule)?;
            Ok(Answer::Version(rule.version()))
        }
        Request::PatchNodeClaim(name, it) => {
            let claim = patch(Kind::NodeClaim, name, Part::Main, Patch::Merge(it.clone()))?;
            Ok(Answer::NodeClaim(Box::new(decoded(&claim)?)))
        }
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
            answer.map(|_| Answer::Done).map_err(|it| refused(&it))
        }
        Request::ReadNode(name) => {
            let node = read(cluster, &Key::cluster(Kind::Node, name))?;
            Ok(Answer::Node(Box::new(node)))
        }
        Request::ReadVersion(..) => Ok(Answer::Version(cluster.revision())),
        Request::PostEvent { notice, .. } => {
            cluster.tell((**notice).clone());
            Ok(Answer::Done)
        }
    }
}

fn read<K: DeserializeOwned>(cluster: &Cluster, key: &Key) -> Result<K, RequestError> {
    decoded(cluster.get(key).ok_or(RequestError::Gone)?)
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
