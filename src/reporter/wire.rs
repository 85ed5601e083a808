//! The condition as it is sent to the API server. Pure.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde_json::{Value, json};

use super::state::ReportedCondition;

/// The condition, as last confirmed at `heartbeat`.
pub fn condition(
    condition_type: &str,
    condition: &ReportedCondition,
    heartbeat: Timestamp,
) -> Value {
    json!({
        "type": condition_type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": whole_seconds(heartbeat),
        "lastTransitionTime": whole_seconds(condition.transition),
    })
}

/// A strategic merge patch: conditions are a map by type there, so this touches no other one and needs no read.
pub fn patch(condition: &Value) -> Value {
    json!({"status": {"conditions": [condition]}})
}

/// Puts the condition into a Node as it was read, in the place of the one of its type. All else stays as it is.
pub fn put(node: &mut Value, condition: &Value) {
    let conditions = &mut node["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let known = conditions
        .iter_mut()
        .find(|known| known["type"] == condition["type"]);
    match known {
        Some(known) => *known = condition.clone(),
        None => conditions.push(condition.clone()),
    }
}

/// A time as the API keeps it.
fn whole_seconds(time: Timestamp) -> Timestamp {
    let round = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Trunc);
    time.round(round).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ConditionStatus;

    fn ready() -> Value {
        let ready = ReportedCondition {
            status: ConditionStatus::True,
            reason: "EndpointOK".to_owned(),
            message: "fine".to_owned(),
            transition: "2026-01-02T03:04:05.6Z".parse().unwrap(),
        };
        let heartbeat = "2026-01-02T03:09:05.999Z".parse().unwrap();
        condition("example.com/Ready", &ready, heartbeat)
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
