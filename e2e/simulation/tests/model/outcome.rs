//! Answers and objects in the form that is compared.

use nodegate_simulation::{Answer, Kind, Success};
use serde_json::{Value, json};

/// One server's answer.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub code: u16,
    /// The machine-readable reason of a refusal.
    pub reason: String,
    /// The message of a refusal.
    pub message: String,
    /// Whether the refusal names invalid fields.
    pub names_fields: bool,
    pub object: Option<Value>,
}

impl Outcome {
    pub(crate) fn of_model(answer: Answer) -> Self {
        let mut outcome = Self {
            code: answer
                .as_ref()
                .map_or_else(|refusal| refusal.code, Success::code),
            reason: String::new(),
            message: String::new(),
            names_fields: false,
            object: None,
        };
        match answer {
            Ok(Success::Created(object) | Success::Object(object)) => {
                outcome.object = Some((*object).clone());
            }
            Ok(Success::Deleted | Success::Bound) => {}
            Err(refusal) => {
                refusal.reason.clone_into(&mut outcome.reason);
                outcome.names_fields = !refusal.fields.is_empty();
                outcome.message = refusal.message;
            }
        }
        outcome
    }

    pub(crate) fn of_real(code: u16, body: Value) -> Self {
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        let is_status = body["kind"] == "Status" && body["apiVersion"] == "v1";
        Self {
            code,
            reason: if code < 300 {
                String::new()
            } else {
                text(&body["reason"])
            },
            message: text(&body["message"]),
            names_fields: body["details"]["causes"].is_array(),
            object: (!is_status).then_some(body),
        }
    }
}

/// What the real API server adds and Nodegate never reads, as JSON pointers.
fn defaults(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Node => &["/status/daemonEndpoints", "/status/nodeInfo"],
        Kind::Pod => &[
            "/spec/containers",
            "/spec/dnsPolicy",
            "/spec/enableServiceLinks",
            "/spec/preemptionPolicy",
            "/spec/priority",
            "/spec/restartPolicy",
            "/spec/schedulerName",
            "/spec/securityContext",
            "/spec/terminationGracePeriodSeconds",
            "/spec/tolerations",
            "/status/qosClass",
        ],
        Kind::DaemonSet => &[
            "/spec/revisionHistoryLimit",
            "/spec/template",
            "/spec/updateStrategy",
            "/status/currentNumberScheduled",
            "/status/desiredNumberScheduled",
            "/status/numberMisscheduled",
            "/status/numberReady",
        ],
        Kind::NodeClaim => &["/spec/expireAfter"],
        Kind::NodePool => &["/spec/disruption", "/spec/template", "/status/nodes"],
        _ => &[],
    }
}

/// Removes from an object what differs between two servers, and empty values. Timestamps of the server are only compared for
/// their presence.
pub(crate) fn comparable(kind: Kind, object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["apiVersion", "kind"] {
        object.as_object_mut().map(|fields| fields.remove(field));
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "uid", "resourceVersion"] {
            metadata.remove(field);
        }
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(time) = metadata.get_mut(field).filter(|time| !time.is_null()) {
                *time = json!("set");
            }
        }
    }
    let conditions = object.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if condition["type"] == "PodScheduled" {
            condition["lastTransitionTime"] = json!("set");
        }
    }
    for pointer in defaults(kind) {
        let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
        parent.map(|fields| fields.remove(field));
    }
    prune(&mut object);
    object
}

/// Removes empty values, except those of labels.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            fields.retain(|_, value| !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
