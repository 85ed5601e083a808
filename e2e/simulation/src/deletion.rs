//! What deleting an object does: remove it, mark it, or nothing.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::write::{bump_generation, wire};

/// The grace period of a pod that sets none, in seconds.
const POD_GRACE: i64 = 30;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Course {
    /// The object is removed.
    Remove,
    /// The object gets a deletion timestamp and is then removed.
    MarkAndRemove(Value),
    /// The object gets a deletion timestamp and stays for its finalizers or its grace period.
    Mark(Value),
    /// None: the object is already being deleted.
    UnderWay,
}

/// The effect of deleting this object. `grace` is the request's grace period in seconds, if it names one.
pub(crate) fn course(kind: Kind, object: &Value, grace: Option<i64>, now: Timestamp) -> Course {
    let has_finalizers = has_finalizers(object);
    let metadata = &object["metadata"];
    let mark = |grace: i64, begun: Timestamp| {
        let mut marked = object.clone();
        if metadata["deletionTimestamp"].is_null() {
            bump_generation(&mut marked);
        }
        let end = begun + SignedDuration::from_secs(grace);
        marked["metadata"]["deletionTimestamp"] = wire(end);
        marked["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        marked
    };
    let running: Option<Timestamp> = metadata["deletionTimestamp"]
        .as_str()
        .and_then(|end| end.parse().ok());
    match running {
        Some(end) => {
            let left = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
            match grace {
                // A grace period can only get shorter.
                Some(grace) if kind == Kind::Pod && grace < left => {
                    let begun = end - SignedDuration::from_secs(left);
                    after_mark(mark(grace, begun), grace, has_finalizers)
                }
                _ => Course::UnderWay,
            }
        }
        None if kind == Kind::Pod => {
            let grace = pod_grace(object, grace);
            after_mark(mark(grace, now), grace, has_finalizers)
        }
        None if has_finalizers => Course::Mark(mark(0, now)),
        None => Course::Remove,
    }
}

/// Whether this update removes the last finalizer of an object that is being deleted.
pub(crate) fn is_complete(old: &Value, new: &Value) -> bool {
    let metadata = &old["metadata"];
    let has_time_left = metadata["deletionGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|grace| grace > 0);
    !metadata["deletionTimestamp"].is_null() && !has_time_left && !has_finalizers(new)
}

fn after_mark(marked: Value, grace: i64, has_finalizers: bool) -> Course {
    if grace > 0 || has_finalizers {
        Course::Mark(marked)
    } else {
        Course::MarkAndRemove(marked)
    }
}

/// Pods that have not started or have ended get no grace period.
fn pod_grace(pod: &Value, grace: Option<i64>) -> i64 {
    let is_bound = !pod["spec"]["nodeName"].is_null();
    let phase = pod["status"]["phase"].as_str();
    if !is_bound || matches!(phase, Some("Succeeded" | "Failed")) {
        return 0;
    }
    let own = || pod["spec"]["terminationGracePeriodSeconds"].as_i64();
    grace.or_else(own).unwrap_or(POD_GRACE)
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| !finalizers.is_empty())
}
