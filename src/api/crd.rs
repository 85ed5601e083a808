//! The manifest of the `CustomResourceDefinition`, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::Value;

use super::NodeReadinessRule;

/// The definition to install in a cluster.
///
/// It differs from `NodeReadinessRule::crd` in what an absent field means to the API server: it stays absent. Nothing is
/// defaulted on admission, so that a rule reads as its author wrote it, and nothing is nullable, so that an explicit
/// `null` is dropped as it is for the Go types.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    let mut crd = NodeReadinessRule::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            leave_absent(schema);
        }
    }
    crd
}

/// The definition as a YAML document for kubectl.
///
/// # Errors
///
/// When it cannot be written as YAML.
pub fn crd_yaml() -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(&crd())
}

/// Takes `nullable` and `default` out of a schema and all below it.
fn leave_absent(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.default = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| value.0 != Value::Null);
    }
    schema
        .properties
        .iter_mut()
        .flatten()
        .for_each(|(_, property)| leave_absent(property));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        leave_absent(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        leave_absent(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMITTED: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/config/crd/bases/readiness.node.x-k8s.io_nodereadinessrules.yaml"
    );

    #[test]
    fn the_committed_manifest_is_the_one_generated() {
        let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
        assert!(
            committed == crd_yaml().unwrap(),
            "config/crd is out of date: run `make crd`"
        );
    }
}
