//! The `NodeReadinessRule` on the wire, decoded so that one broken rule does not hide the others.

use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};

use super::meta;
use crate::api::{NodeReadinessRuleSpec, NodeReadinessRuleStatus};

/// A `NodeReadinessRule` on the wire.
///
/// An older CRD, or the upstream project's, may let specs through that these types do not know. Such a spec is
/// kept as the decoder's complaint.
#[derive(Debug, Clone, Deserialize, kube::Resource)]
#[resource(inherit = "crate::api::NodeReadinessRule")]
pub struct RuleObject {
    /// Metadata, without what is never read.
    #[serde(deserialize_with = "meta::pruned")]
    pub metadata: ObjectMeta,
    /// The spec, or why it cannot be read.
    #[serde(default = "missing_spec", deserialize_with = "lenient_spec")]
    pub spec: Result<NodeReadinessRuleSpec, String>,
    /// The status; empty where there is none that can be read.
    #[serde(default, deserialize_with = "lenient_status")]
    pub status: NodeReadinessRuleStatus,
}

fn missing_spec() -> Result<NodeReadinessRuleSpec, String> {
    Err("missing field `spec`".into())
}

fn lenient_spec<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Result<NodeReadinessRuleSpec, String>, D::Error> {
    let spec = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_path_to_error::deserialize(spec).map_err(|error| error.to_string()))
}

fn lenient_status<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<NodeReadinessRuleStatus, D::Error> {
    let status = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(status).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_spec_that_cannot_be_read_is_kept_as_a_complaint() {
        for (object, complaint) in [
            (json!({"metadata": {"name": "a"}}), "missing field `spec`"),
            (
                json!({"metadata": {"name": "a"}, "spec": {"conditions": 1}, "status": []}),
                "conditions: invalid type",
            ),
        ] {
            let rule: RuleObject = serde_json::from_value(object).unwrap();
            let said = rule.spec.unwrap_err();
            assert!(said.contains(complaint), "{said}");
            assert_eq!(rule.status, NodeReadinessRuleStatus::default());
        }
    }
}
