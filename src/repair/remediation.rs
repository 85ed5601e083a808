//! Remediation by somebody else's controller, as it is on record on a node: asked for once for each deadline, whichever process
//! leads, and withdrawn when the node opens or the rule goes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::RemediationTemplate;
use crate::api::names::REMEDIATION_PREFIX;
use crate::object::Node;

/// What is on record on a node about its remediation under a rule. Its kubelet may forge it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RemediationRecord {
    /// The node's readiness deadline for which it is asked, as recorded.
    pub deadline: String,
    /// The object to make; `None` where the node's Machine is annotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<RemediationObject>,
    /// Whether it has been asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

/// An object by which a controller remediates a node. It has the node's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RemediationObject {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
}

/// A step of a remediation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediationStep {
    /// The rule.
    pub rule_uid: Arc<str>,
    /// The record from which it follows.
    pub record: RemediationRecord,
    /// Whether the remediation is asked for or withdrawn.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// The object is made, or the Machine annotated.
    Ask,
    /// The object is deleted.
    Withdraw,
}

impl RemediationRecord {
    /// Key of the annotation with the record under the rule with this UID.
    pub fn key(rule_uid: &str) -> String {
        format!("{REMEDIATION_PREFIX}{rule_uid}")
    }

    /// The record under the rule with this UID. An unreadable one counts as none.
    pub fn recorded(node: &Node, rule_uid: &str) -> Option<Self> {
        let value = node.annotation_about(REMEDIATION_PREFIX, rule_uid)?;
        serde_json::from_str(value).ok()
    }

    /// UIDs of the rules under which the node has a record.
    pub fn rules(node: &Node) -> impl Iterator<Item = &str> {
        node.annotations_about(REMEDIATION_PREFIX)
            .map(|(uid, _)| uid)
    }

    /// The annotation's value.
    pub fn value(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it is the record of the same remediation, asked for or not.
    pub fn is_of(&self, other: &Self) -> bool {
        (&self.deadline, &self.object) == (&other.deadline, &other.object)
    }
}

impl RemediationObject {
    /// The object that is made from a template: of kind `X` for an `XTemplate`.
    pub fn of(template: &RemediationTemplate) -> Self {
        let kind = template.kind.strip_suffix("Template");
        Self {
            api_version: template.api_version.clone(),
            kind: kind.unwrap_or(&template.kind).to_owned(),
            namespace: template.namespace.clone(),
        }
    }

    /// The object for a node of this name, for messages.
    pub fn of_node(&self, node: &str) -> String {
        format!("{self}/{node}")
    }
}

impl fmt::Display for RemediationObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, node};

    #[test]
    fn what_is_written_is_read_again() {
        let object = RemediationObject {
            api_version: "example.com/v1".into(),
            kind: "Reboot".into(),
            namespace: "fencing".into(),
        };
        for (object, done) in [(None, false), (None, true), (Some(object), true)] {
            let record = RemediationRecord {
                deadline: "2026-01-01T00:15:00Z".into(),
                object,
                done,
            };
            let node = node("n").annotation(&RemediationRecord::key("r"), &record.value());
            let node = node.build();
            assert_eq!(RemediationRecord::recorded(&node, "r"), Some(record));
            assert_eq!(RemediationRecord::recorded(&node, "s"), None);
            assert_eq!(RemediationRecord::rules(&node).collect::<Vec<_>>(), ["r"]);
        }
        let odd = node("n")
            .annotation(&RemediationRecord::key("r"), "5")
            .build();
        assert_eq!(RemediationRecord::recorded(&odd, "r"), None);
    }
}
