//! The `NodeReadinessRule` on the wire. One malformed rule does not hide the others.

use kube::core::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::kind::ResourceKind;
use super::watched::{Kind, Lean, Unreadable};
use crate::api::{NodeReadinessRuleSpec, NodeReadinessRuleStatus};

/// A `NodeReadinessRule` on the wire. Other CRDs may accept specs that these types cannot represent: kept as the decoder's error.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Lean<Self>")]
pub struct RuleObject {
    pub metadata: ObjectMeta,
    pub spec: Result<NodeReadinessRuleSpec, String>,
    /// The status; empty if it is absent or unreadable.
    pub status: NodeReadinessRuleStatus,
}

impl RuleObject {
    pub fn new(metadata: ObjectMeta, spec: Option<Value>, status: Option<Value>) -> Self {
        let missing = || "missing field `spec`".to_owned();
        let spec = spec.filter(|spec| !spec.is_null()).map(without_nulls);
        let status = status.map(without_nulls);
        let status = status.and_then(|status| serde_json::from_value(status).ok());
        let decoded = |spec| serde_path_to_error::deserialize(spec).map_err(|it| it.to_string());
        Self {
            metadata,
            spec: spec.ok_or_else(missing).and_then(decoded),
            status: status.unwrap_or_default(),
        }
    }
}

impl From<Lean<Self>> for RuleObject {
    fn from(object: Lean<Self>) -> Self {
        Self::new(object.metadata, object.spec, object.status)
    }
}

/// Like the API, treats `null` as absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, field)| !field.is_null());
            let fields = fields.map(|(name, field)| (name, without_nulls(field)));
            fields.collect()
        }
        Value::Array(elements) => elements.into_iter().map(without_nulls).collect(),
        value => value,
    }
}

/// An unreadable spec is no error here.
impl Kind for RuleObject {
    const RESOURCE: ResourceKind = ResourceKind::Rules;
    const BUDGET: usize = 16 << 20;
    type Spec = Value;
    type Status = Value;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        object.uid()?;
        let (spec, status) = (object.spec.take(), object.status.take());
        Ok(Self::new(object.metadata.clone(), spec, status))
    }
}
