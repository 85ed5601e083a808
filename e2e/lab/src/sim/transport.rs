//! Translates the engine's requests for the model's API server, and its answers back.

use nodegate::condition::{ComponentGroup, CriticalComponentClass};
use nodegate::engine::RequestError;
use nodegate::engine::freshness::evidence::{ClusterEvidence, List, NodeEvidence, Unread};
use nodegate::engine::io::{Answer, Request};
use nodegate::engine::kind::{Scope, Watch};
use nodegate::object::{RuleObject, Watched};
use nodegate::plan::StaleKinds;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cluster::{Cluster, Who};
use crate::{Key, Kind, Part, Patch, Preconditions, Refusal, Selector, Success, request};

/// Whether the request would change a rule, node or claim.
pub(super) fn is_write(request: &Request) -> bool {
    !matches!(
        request,
        Request::ReadNode { .. }
            | Request::ReadNodeLive { .. }
            | Request::ReadClusterLive { .. }
            | Request::PostEvent { .. }
    )
}

/// The object that the request writes.
pub(super) fn target(request: &Request) -> Option<Key> {
    let (kind, name) = match request {
        Request::PatchNode { name, .. } | Request::PatchNodeStatus { name, .. } => {
            (Kind::Node, name)
        }
        Request::PatchRule { name, .. } | Request::PatchRuleStatus { name, .. } => {
            (Kind::NodeReadinessRule, name)
        }
        Request::PatchNodeClaim { name, .. } | Request::DeleteNodeClaim { name, .. } => {
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
        Request::PatchNodeStatus { .. } | Request::PatchRuleStatus { .. }
    )
}

pub(super) fn carry(
    cluster: &mut Cluster,
    who: Who,
    classes: &[CriticalComponentClass],
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
        Request::PatchNode { name, patch: it } => {
            let node = patch(Kind::Node, name, Part::Main, Patch::Json(it.clone()))?;
            Ok(Answer::Node(Box::new(decoded(&node)?)))
        }
        Request::PatchNodeStatus { name, patch: it } => {
            let node = patch(Kind::Node, name, Part::Status, Patch::Strategic(it.clone()))?;
            Ok(Answer::Node(Box::new(decoded(&node)?)))
        }
        Request::PatchRule { name, patch: it } => {
            let part = Patch::Json(it.clone());
            let rule = patch(Kind::NodeReadinessRule, name, Part::Main, part)?;
            Ok(Answer::Rule(Box::new(decoded(&rule)?)))
        }
        Request::PatchRuleStatus { name, patch: it } => {
            let part = Patch::Json(it.clone());
            let rule = patch(Kind::NodeReadinessRule, name, Part::Status, part)?;
            let rule: Watched<RuleObject> = decoded(&rule)?;
            Ok(Answer::Version(rule.version()))
        }
        Request::PatchNodeClaim { name, patch: it } => {
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
        Request::ReadNode { name } => {
            let node = read(cluster, &Key::cluster(Kind::Node, name))?;
            Ok(Answer::Node(Box::new(node)))
        }
        Request::ReadNodeLive {
            name,
            kinds,
            components,
        } => {
            let evidence = read_node_live(cluster, classes, name, kinds, components)?;
            Ok(Answer::NodeEvidence(Box::new(evidence)))
        }
        Request::ReadClusterLive { daemon_sets } => {
            let of_classes = classes.iter().enumerate().map(|(index, class)| {
                let group = ComponentGroup::Class(index);
                (group, class.scope(Watch::DaemonSets(group)))
            });
            let daemon_sets = of_classes.chain(daemon_sets.iter().cloned());
            let daemon_sets = daemon_sets.map(|(group, scope)| {
                let fields = scope.fields(Watch::DaemonSets(group));
                let list = list(cluster, Kind::DaemonSet, &scope, fields)?;
                Ok::<_, RequestError>((group, list))
            });
            Ok(Answer::ClusterEvidence(ClusterEvidence {
                rules: list(cluster, Kind::NodeReadinessRule, &Scope::default(), None)?,
                daemon_sets: daemon_sets.collect::<Result<_, _>>()?,
                unread: Unread::default(),
            }))
        }
        Request::PostEvent { notice, .. } => {
            cluster.tell((**notice).clone());
            Ok(Answer::Done)
        }
    }
}

fn read_node_live(
    cluster: &Cluster,
    classes: &[CriticalComponentClass],
    name: &str,
    kinds: &StaleKinds,
    components: &[(Watch, Scope)],
) -> Result<NodeEvidence, RequestError> {
    let mut evidence = NodeEvidence::default();
    if kinds.nodes {
        evidence.node = Some(read(cluster, &Key::cluster(Kind::Node, name))?);
    }
    if kinds.csi_nodes {
        let this = Some(format!("metadata.name={name}"));
        evidence.csi_node = Some(list(cluster, Kind::CsiNode, &Scope::default(), this)?);
    }
    let of_classes = classes.iter().enumerate().map(|(index, class)| {
        let watch = Watch::Pods(ComponentGroup::Class(index));
        (watch, class.scope(watch))
    });
    let of_classes =
        of_classes.filter(|(watch, _)| watch.group().is_some_and(|group| kinds.has_group(group)));
    for (watch, scope) in of_classes.chain(components.iter().cloned()) {
        let on_node = Some(scope.fields_on(name));
        match watch {
            Watch::Pods(group) => {
                let pods = list(cluster, Kind::Pod, &scope, on_node)?;
                evidence.pods.push((group, pods));
            }
            Watch::ResourceSlices(group) => {
                let slices = list(cluster, Kind::ResourceSlice, &scope, on_node)?;
                evidence.slices.push((group, slices));
            }
            _ => {}
        }
    }
    Ok(evidence)
}

fn read<K: DeserializeOwned>(cluster: &Cluster, key: &Key) -> Result<K, RequestError> {
    decoded(cluster.get(key).ok_or(RequestError::Gone)?)
}

fn list<K: DeserializeOwned>(
    cluster: &Cluster,
    kind: Kind,
    scope: &Scope,
    fields: Option<String>,
) -> Result<List<K>, RequestError> {
    let namespace = scope.namespace.as_deref();
    let selector = Selector::default().labels(&scope.labels().unwrap_or_default());
    let selector = selector.and_then(|it| it.fields(&fields.unwrap_or_default()));
    let selector = selector.map_err(|error| RequestError::Failed(error.to_string()))?;
    let items = cluster
        .objects(kind)
        .filter(|(key, _)| namespace.is_none_or(|it| it == key.namespace))
        .filter(|(key, object)| selector.matches(key, object))
        .map(|(_, object)| decoded(object));
    Ok(List {
        items: items.collect::<Result<_, _>>()?,
        version: cluster.revision(),
    })
}

/// An object as the product decodes it.
pub(super) fn decoded<K: DeserializeOwned>(object: &Value) -> Result<K, RequestError> {
    K::deserialize(object).map_err(|error| RequestError::Failed(error.to_string()))
}

fn object(answer: crate::Answer) -> Result<std::sync::Arc<Value>, RequestError> {
    match answer {
        Ok(Success::Created(object) | Success::Object(object)) => Ok(object),
        Ok(Success::List(_) | Success::Deleted | Success::Bound) => Err(RequestError::Gone),
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
