//! Records of node starts, which the engine writes and never reads.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::core::{DynamicObject, PartialObjectMeta};
use serde::Deserialize;

use crate::api::names::STARTUP_PREFIX;
use crate::rule::StartupRecord;

/// The record of a node's start under the rule with this UID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub rule_uid: String,
    pub record: StartupRecord,
}

/// The times at which Karpenter requested and launched a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOrigin {
    pub node: String,
    pub asked: Timestamp,
    pub launched: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
struct ClaimObject {
    metadata: ObjectMeta,
    #[serde(default)]
    status: ClaimStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimStatus {
    node_name: String,
    conditions: Vec<Condition>,
}

impl Recorded {
    /// The name and the records of a node in JSON. Unreadable records are skipped.
    pub fn of_node(json: &str) -> Option<(String, Vec<Self>)> {
        if !json.contains(STARTUP_PREFIX) {
            return None;
        }
        let PartialObjectMeta::<DynamicObject> { metadata, .. } =
            serde_json::from_str(json).ok()?;
        let annotations = metadata.annotations.into_iter().flatten();
        let records = annotations.filter_map(|(key, value)| {
            Some(Self {
                rule_uid: key.strip_prefix(STARTUP_PREFIX)?.into(),
                record: serde_json::from_str(&value).ok()?,
            })
        });
        Some((metadata.name?, records.collect()))
    }
}

impl NodeOrigin {
    /// The origin in a `NodeClaim` in JSON; `None` before it has a node.
    pub fn of_claim(json: &str) -> Option<Self> {
        let ClaimObject { metadata, status } = serde_json::from_str(json).ok()?;
        let mut conditions = status.conditions.iter();
        let launched = conditions.find(|it| it.type_ == "Launched" && it.status == "True");
        Some(Self {
            asked: metadata.creation_timestamp?.0,
            launched: launched.map(|it| it.last_transition_time.0),
            node: Some(status.node_name).filter(|node| !node.is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;
    use serde_json::json;

    #[test]
    fn unreadable_records_are_skipped() {
        let record = StartupRecord {
            rule_name: "network".into(),
            created: at(0),
            tainted: at(1),
            conditions: [("a".to_owned(), at(5))].into(),
            left_out: 0,
            opened: at(6),
        };
        let node = json!({"metadata": {"name": "n", "annotations": {
            StartupRecord::key("uid-1"): record.clone().value(),
            StartupRecord::key("uid-2"): "nonsense",
            "example.com/other": "x",
        }}});
        let (name, records) = Recorded::of_node(&node.to_string()).unwrap();
        let rule_uid = "uid-1".into();
        assert_eq!(
            (name.as_str(), records),
            ("n", vec![Recorded { rule_uid, record }])
        );
        assert_eq!(Recorded::of_node(r#"{"metadata":{"name":"n"}}"#), None);
    }

    #[test]
    fn a_claim_tells_when_its_node_was_asked_for() {
        let claim = |status: serde_json::Value| {
            let claim = json!({
                "metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "status": status,
            });
            NodeOrigin::of_claim(&claim.to_string())
        };
        let launched = json!({"type": "Launched", "status": "True", "reason": "", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:04Z"});
        let origin = claim(json!({"nodeName": "n", "conditions": [launched]})).unwrap();
        let took = |at: Timestamp| at.duration_since(origin.asked).as_secs();
        assert_eq!(origin.launched.map(took), Some(4));
        assert_eq!(claim(json!({})), None);
    }
}
