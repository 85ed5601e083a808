//! The `NodeReadinessRule` on the wire. One malformed rule does not hide the others.

use serde::{Deserialize, Deserializer};

use super::field::{Unreadable, items};
use super::meta::Metadata;
use super::whole::whole;
use crate::api::{NodeReadinessRuleSpec, NodeReadinessRuleStatus};

/// A `NodeReadinessRule` on the wire.
///
/// An older CRD, or the upstream project's, may accept specs that these types cannot represent. Such a spec is kept as the
/// decoder's error.
#[derive(Debug, Clone, Deserialize, kube::Resource)]
#[resource(inherit = "crate::api::NodeReadinessRule")]
#[serde(remote = "Self", default)]
pub struct RuleObject {
    /// Metadata, without unused fields.
    pub metadata: Metadata,
    /// The spec, or why it is unreadable.
    #[serde(deserialize_with = "whole")]
    pub spec: Result<NodeReadinessRuleSpec, String>,
    /// The status; empty if it is absent or unreadable.
    #[serde(deserialize_with = "whole_or_empty")]
    pub status: NodeReadinessRuleStatus,
}

items!(RuleObject);

impl Default for RuleObject {
    fn default() -> Self {
        Self {
            metadata: Metadata::default(),
            spec: Err("missing field `spec`".into()),
            status: NodeReadinessRuleStatus::default(),
        }
    }
}

impl RuleObject {
    /// The rule.
    ///
    /// # Errors
    /// Its metadata is unreadable. An unreadable spec is no error here.
    pub fn read(mut self) -> Result<Self, Unreadable> {
        let metadata = std::mem::take(&mut self.metadata);
        *self.metadata = metadata.read_with_uid()?;
        Ok(self)
    }
}

fn whole_or_empty<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<NodeReadinessRuleStatus, D::Error> {
    Ok(whole(deserializer)?.unwrap_or_default())
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
