//! The stored object that results from a create, an update or a binding.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::answer::Refusal;
use crate::kind::{Key, Kind};
use crate::normal::normalize;
use crate::request::Part;

/// The taint that admission (`TaintNodesByCondition`) gives every new node.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The annotation that counts the versions of a `DaemonSet`'s template, from one.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The metadata that only the server sets.
const SYSTEM: [&str; 5] = [
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// A timestamp as objects carry it, in whole seconds.
pub(crate) fn wire(time: Timestamp) -> Value {
    json!(time.strftime("%FT%TZ").to_string())
}

/// Increments the generation, if the object counts one.
pub(crate) fn bump_generation(object: &mut Value) {
    if let Some(generation) = object.pointer_mut("/metadata/generation")
        && let Some(number) = generation.as_i64()
    {
        *generation = json!(number + 1);
    }
}

/// The stored object after a create.
pub(crate) fn created(
    key: &Key,
    mut object: Value,
    uid: &str,
    now: Timestamp,
) -> Result<Value, Refusal> {
    let kind = key.kind;
    name(key, &mut object);
    let metadata = metadata(&mut object);
    for field in SYSTEM {
        metadata.remove(field);
    }
    metadata.insert("uid".to_owned(), json!(uid));
    metadata.insert("creationTimestamp".to_owned(), wire(now));
    if kind.has_generation() {
        metadata.insert("generation".to_owned(), json!(1));
    }
    if kind.has_status() && !kind.is_created_with_status() {
        set(&mut object, "status", None);
    }
    match kind {
        Kind::Node => taint_new_node(&mut object),
        Kind::Pod => object["status"] = json!({"phase": "Pending"}),
        Kind::DaemonSet => set_template_generation(&mut object, 1),
        Kind::NodeReadinessRule => set_managed_fields(&Value::Null, &mut object),
        _ => {}
    }
    normalize(kind, &mut object);
    validate(key, &object)?;
    Ok(object)
}

/// The stored object after an update of this part.
pub(crate) fn updated(
    key: &Key,
    part: Part,
    old: &Value,
    mut new: Value,
) -> Result<Value, Refusal> {
    let kind = key.kind;
    check_version(key, old, &new)?;
    if part == Part::Status {
        new = with_status_of(kind, old, new);
    } else if kind.has_status() {
        set(&mut new, "status", old.get("status").cloned());
    }
    name(key, &mut new);
    keep_system_fields(old, metadata(&mut new));
    if kind == Kind::DaemonSet {
        let is_changed = old["spec"]["template"] != new["spec"]["template"];
        let before = template_generation(old);
        set_template_generation(&mut new, before + i64::from(is_changed));
    }
    if kind == Kind::NodeReadinessRule {
        set_managed_fields(old, &mut new);
    }
    normalize(kind, &mut new);
    validate_update(key, old, &new)?;
    validate(key, &new)?;
    if kind.has_generation() && asks_for_something_else(kind, old, &new) {
        bump_generation(&mut new);
    }
    Ok(new)
}

/// A pod after its binding to this node.
pub(crate) fn bound(key: &Key, pod: &Value, node: &str, now: Timestamp) -> Result<Value, Refusal> {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Err(Refusal::conflict(key, "it is being deleted"));
    }
    if !pod["spec"]["nodeName"].is_null() {
        return Err(Refusal::conflict(key, "it is bound"));
    }
    let mut bound = pod.clone();
    bound["spec"]["nodeName"] = json!(node);
    let scheduled = json!({
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": wire(now),
    });
    match bound["status"]["conditions"].as_array_mut() {
        Some(conditions) => {
            conditions.retain(|condition| condition["type"] != scheduled["type"]);
            conditions.push(scheduled);
        }
        None => bound["status"]["conditions"] = json!([scheduled]),
    }
    Ok(bound)
}

/// Refuses another revision than the stored one.
fn check_version(key: &Key, old: &Value, new: &Value) -> Result<(), Refusal> {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let wanted = version(new);
    let is_unsaid = wanted.as_str().is_none_or(str::is_empty);
    if is_unsaid || wanted == version(old) {
        Ok(())
    } else {
        Err(Refusal::conflict(key, "it has been modified"))
    }
}

/// The old object with the new one's status. How a status update treats the metadata differs by kind.
fn with_status_of(kind: Kind, old: &Value, mut new: Value) -> Value {
    let mut object = old.clone();
    set(&mut object, "status", new.get("status").cloned());
    if !kind.is_custom() {
        object["metadata"] = new["metadata"].take();
    }
    if kind == Kind::Pod {
        let owners = old["metadata"].get("ownerReferences").cloned();
        set(&mut object["metadata"], "ownerReferences", owners);
    }
    object
}

fn keep_system_fields(old: &Value, metadata: &mut Map<String, Value>) {
    let sent = metadata.remove("uid").filter(|uid| !uid.is_null());
    for field in SYSTEM.into_iter().chain(["uid", "creationTimestamp"]) {
        match old["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    if let Some(uid) = sent {
        metadata.insert("uid".to_owned(), uid);
    }
}

/// Whether the generation must grow: for a custom resource, with any change outside metadata and status.
fn asks_for_something_else(kind: Kind, old: &Value, new: &Value) -> bool {
    if !kind.is_custom() {
        return old["spec"] != new["spec"];
    }
    let rest = |object: &Value| {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.remove("metadata");
        fields.remove("status");
        fields
    };
    rest(old) != rest(new)
}

fn validate_update(key: &Key, old: &Value, new: &Value) -> Result<(), Refusal> {
    let mut fields = Vec::new();
    let (before, after) = (&old["metadata"], &new["metadata"]);
    if before["uid"] != after["uid"] {
        fields.push("metadata.uid".to_owned());
    }
    let finalizers = |metadata: &Value| metadata["finalizers"].as_array().cloned();
    let known = finalizers(before).unwrap_or_default();
    let is_new = |finalizer: &Value| !known.contains(finalizer);
    if !before["deletionTimestamp"].is_null()
        && finalizers(after).is_some_and(|list| list.iter().any(is_new))
    {
        fields.push("metadata.finalizers".to_owned());
    }
    if key.kind == Kind::Pod && old["spec"]["nodeName"] != new["spec"]["nodeName"] {
        fields.push("spec".to_owned());
    }
    refuse(key, fields)
}

fn validate(key: &Key, object: &Value) -> Result<(), Refusal> {
    let mut fields = Vec::new();
    if key.kind == Kind::Node {
        let taints = object["spec"]["taints"].as_array();
        let taints = taints.map_or(&[][..], Vec::as_slice);
        let id = |taint: &Value| (taint["key"].clone(), taint["effect"].clone());
        for (index, taint) in taints.iter().enumerate() {
            if taints[..index].iter().any(|other| id(other) == id(taint)) {
                fields.push(format!("metadata.taints[{index}]"));
            }
        }
    }
    refuse(key, fields)
}

fn refuse(key: &Key, fields: Vec<String>) -> Result<(), Refusal> {
    if fields.is_empty() {
        Ok(())
    } else {
        Err(Refusal::invalid(key, fields))
    }
}

fn taint_new_node(node: &mut Value) {
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    let taints = &mut node["spec"]["taints"];
    match taints.as_array_mut() {
        Some(taints) => {
            let is_there = taints
                .iter()
                .any(|it| it["key"] == taint["key"] && it["effect"] == taint["effect"]);
            if !is_there {
                taints.push(taint);
            }
        }
        None => *taints = json!([taint]),
    }
}

/// Of the managed fields of a rule there is only whether somebody has set `spec.nodegate`. Whoever removes the field takes it from
/// them, too.
fn set_managed_fields(old: &Value, rule: &mut Value) {
    let has_it = |rule: &Value| rule["spec"].get("nodegate").is_some();
    let fields = match (has_it(old), has_it(rule)) {
        (_, true) => Some(json!([{"fieldsV1": {"f:spec": {"f:nodegate": {}}}}])),
        (true, false) => None,
        (false, false) => return,
    };
    set(&mut rule["metadata"], "managedFields", fields);
}

/// Removes what only our definition knows from a rule's spec.
pub(crate) fn drop_nodegate(rule: &mut Value) {
    let spec = &mut rule["spec"];
    let conditions = spec["conditions"].as_array_mut();
    for condition in conditions.into_iter().flatten() {
        set(condition, "nodegate", None);
    }
    set(spec, "nodegate", None);
}

fn template_generation(daemon_set: &Value) -> i64 {
    let generation = daemon_set["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    generation
        .and_then(|generation| generation.parse().ok())
        .unwrap_or(1)
}

fn set_template_generation(daemon_set: &mut Value, generation: i64) {
    let annotations = &mut daemon_set["metadata"]["annotations"];
    annotations[TEMPLATE_GENERATION] = json!(generation.to_string());
}

/// Sets the object's kind, API version, name and namespace.
fn name(key: &Key, object: &mut Value) {
    set(object, "apiVersion", Some(json!(key.kind.api_version())));
    set(object, "kind", Some(json!(key.kind.name())));
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(key.name);
    if key.kind.is_namespaced() {
        metadata["namespace"] = json!(key.namespace);
    }
}

fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata
        .as_object_mut()
        .expect("the metadata has just been made an object")
}

fn set(object: &mut Value, field: &str, value: Option<Value>) {
    match (object.as_object_mut(), value) {
        (Some(fields), Some(value)) => {
            fields.insert(field.to_owned(), value);
        }
        (Some(fields), None) => {
            fields.remove(field);
        }
        (None, value) => *object = json!({ field: value }),
    }
}
