//! Shorthands for actors' requests, and for reading objects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::sim::cluster::{Cluster, Who};
use crate::{Answer, Key, Kind, Part, Patch, Preconditions, Request};

pub fn node_key(name: &str) -> Key {
    Key::cluster(Kind::Node, name)
}

pub fn create(cluster: &mut Cluster, who: &'static str, key: Key, object: Value) -> Answer {
    cluster.request(Who::Actor(who), &Request::Create { key, object })
}

/// Applies a merge patch to a part of an object.
pub fn merge(
    cluster: &mut Cluster,
    who: &'static str,
    key: &Key,
    part: Part,
    patch: Value,
) -> Answer {
    let request = Request::Patch {
        key: key.clone(),
        part,
        patch: Patch::Merge(patch),
    };
    cluster.request(Who::Actor(who), &request)
}

/// Merges conditions into the status of a node or a pod.
pub fn write_status(cluster: &mut Cluster, who: &'static str, key: &Key, status: &Value) -> Answer {
    let request = Request::Patch {
        key: key.clone(),
        part: Part::Status,
        patch: Patch::Strategic(json!({ "status": status })),
    };
    cluster.request(Who::Actor(who), &request)
}

/// Deletes an object. `grace` is a pod's grace period in seconds.
pub fn delete(cluster: &mut Cluster, who: &'static str, key: &Key, grace: Option<i64>) -> Answer {
    let request = Request::Delete {
        key: key.clone(),
        preconditions: Preconditions::default(),
        grace,
    };
    cluster.request(Who::Actor(who), &request)
}

/// The pods that are bound to a node.
pub fn pods_on(cluster: &Cluster, node: &str) -> Vec<(Key, Arc<Value>)> {
    let pods = cluster.objects(Kind::Pod);
    pods.filter(|(_, pod)| pod["spec"]["nodeName"] == node)
        .map(|(key, pod)| (key.clone(), pod.clone()))
        .collect()
}

/// Replaces a node's taints, if the node is unchanged since it was read.
pub fn set_taints(
    cluster: &mut Cluster,
    who: &'static str,
    read: &Value,
    taints: &[Value],
) -> Answer {
    let patch = json!({
        "metadata": {"resourceVersion": read["metadata"]["resourceVersion"]},
        "spec": {"taints": taints},
    });
    merge(cluster, who, &node_key(name(read)), Part::Main, patch)
}

pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

pub fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

/// What tells the boots of all nodes apart.
pub fn boot(node: &Value) -> String {
    let boot = text(&node["status"]["nodeInfo"]["bootID"]);
    format!("{} {boot}", uid(node))
}

/// Whether an object is being deleted.
pub fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The text; empty for any other value.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The annotations with this prefix: what follows it in each key, and the value.
pub fn annotations<'a>(
    object: &'a Value,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all = object["metadata"]["annotations"].as_object();
    let all = all.into_iter().flatten();
    all.filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str()?)))
}

/// The items of a list; none for any other value.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A taint of this key that keeps pods away.
pub fn taint(key: &str) -> Value {
    json!({"key": key, "effect": "NoSchedule"})
}

pub fn taints(node: &Value) -> &[Value] {
    items(&node["spec"]["taints"])
}

/// Whether a node has a taint of this key.
pub fn has_taint(node: &Value, key: &str) -> bool {
    taints(node).iter().any(|taint| taint["key"] == key)
}

/// The status of a node's or a pod's condition; empty if it has none.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = items(&object["status"]["conditions"]);
    let found = conditions.iter().find(|it| it["type"] == kind);
    found.map_or("", |condition| text(&condition["status"]))
}

/// Reports a condition of a node or a pod as of now, with these fields of its status. The object may be gone.
pub fn report(
    cluster: &mut Cluster,
    who: &'static str,
    key: &Key,
    (kind, is): (&str, &str),
    mut status: Value,
) {
    let Some(object) = cluster.get(key).cloned() else {
        return;
    };
    status["conditions"] = json!([condition_now(cluster, &object, kind, is)]);
    let _ = write_status(cluster, who, key, &status);
}

/// A condition as of now. It keeps the transition time if the status is unchanged.
pub fn condition_now(cluster: &Cluster, object: &Value, kind: &str, status: &str) -> Value {
    let now = json!(cluster.wall().strftime("%FT%TZ").to_string());
    let conditions = items(&object["status"]["conditions"]);
    let old = conditions.iter().find(|it| it["type"] == kind);
    let since = old
        .filter(|old| old["status"] == status)
        .map_or(&now, |old| &old["lastTransitionTime"]);
    json!({
        "type": kind,
        "status": status,
        "reason": if status == "True" { "Is" } else { "IsNot" },
        "lastHeartbeatTime": now,
        "lastTransitionTime": since,
    })
}
