//! `NodeReadinessEvaluation`s, which only this controller writes.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::field::{Unreadable, items};
use super::meta::Metadata;
use super::node::Node;
use super::whole::whole;
use crate::api::NodeReadinessEvaluationStatus;

/// A `NodeReadinessEvaluation`.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Its UID.
    pub uid: Arc<str>,
    /// The UID of the Node that owns it; `None` if no Node does.
    pub owner: Option<Arc<str>>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The status; `None` if it is absent, or none that this version writes.
    pub status: Option<NodeReadinessEvaluationStatus>,
}

impl Evaluation {
    /// Whether this node owns it: not an earlier node of the same name.
    #[must_use]
    pub fn is_of(&self, node: &Node) -> bool {
        self.owner.as_ref() == Some(&node.uid)
    }
}

/// A `NodeReadinessEvaluation` on the wire.
#[derive(Debug, Clone, Default, Deserialize, kube::Resource)]
#[resource(inherit = "crate::api::NodeReadinessEvaluation")]
#[serde(remote = "Self", default)]
pub struct EvaluationObject {
    metadata: Metadata,
    #[serde(deserialize_with = "if_whole")]
    status: Option<NodeReadinessEvaluationStatus>,
}

items!(EvaluationObject);

impl EvaluationObject {
    /// The evaluation.
    ///
    /// # Errors
    /// Its metadata is unreadable. An unreadable status is no error: it is written anew.
    pub fn read(self) -> Result<Evaluation, Unreadable> {
        let meta = self.metadata.read_with_uid()?;
        let mut owners = meta.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.kind == "Node");
        Ok(Evaluation {
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            owner: owner.map(|owner| owner.uid.as_str().into()),
            deleting: meta.deletion_timestamp.is_some(),
            status: self.status,
        })
    }
}

fn if_whole<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NodeReadinessEvaluationStatus>, D::Error> {
    Ok(whole(deserializer)?.ok())
}
