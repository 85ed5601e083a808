//! The `CustomResourceDefinition`s, generated from the types.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::Value;

use super::names::{MANAGED_BY, MANAGED_BY_TOOLS, MANAGED_BY_US};
use super::rule::NodeReadinessRule;

/// The definition of rules to install. Unlike in `CustomResourceExt::crd`, nothing is defaulted on admission, so a rule reads as
/// its author wrote it, and nothing is nullable: the API server drops an explicit `null`, as for the Go types.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = NodeReadinessRule::crd();
    let labels = crd.metadata.labels.get_or_insert_default();
    labels.insert(MANAGED_BY.into(), MANAGED_BY_US.into());
    let versions = crd.spec.versions.iter_mut();
    let schemas = versions.filter_map(|it| it.schema.as_mut()?.open_api_v3_schema.as_mut());
    schemas.for_each(tidy);
    crd
}

/// The project that manages the definition in a cluster, by its label; `None` for Nodegate, an install tool or no label.
pub fn other_owner(labels: &BTreeMap<String, String>) -> Option<&str> {
    let owner = labels.get(MANAGED_BY)?.as_str();
    let is_ours = owner == MANAGED_BY_US || MANAGED_BY_TOOLS.contains(&owner);
    (!is_ours).then_some(owner)
}

/// Removes `nullable` and `default` from all of a schema, and line breaks from descriptions: `kubectl explain` wraps them itself.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.default = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| value.0 != Value::Null);
    }
    if let Some(description) = &mut schema.description {
        let paragraphs = description.split("\n\n").map(|it| it.replace('\n', " "));
        *description = paragraphs.collect::<Vec<_>>().join("\n\n");
    }
    let properties = schema.properties.iter_mut();
    properties.flat_map(|it| it.values_mut()).for_each(tidy);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use kube::Resource;

    use super::*;
    use crate::api::{TaintPolicy, names};

    const MANIFEST: &str =
        "charts/nodegate/files/crd/readiness.node.x-k8s.io_nodereadinessrules.yaml";
    const UPSTREAMS: &str = "e2e/tests/fixtures/upstream-crd.yaml";
    const SAMPLES: &str = "config/samples";

    fn read(path: impl AsRef<Path>) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn the_committed_manifest_is_the_one_generated() {
        assert!(
            read(MANIFEST) == serde_saphyr::to_string(&crd()).unwrap(),
            "{MANIFEST} does not fit the types any more: run `make generate` and commit what it changes"
        );
    }

    #[test]
    fn the_manifest_reads_back_as_the_definition() {
        let crd = crd();
        let read: CustomResourceDefinition =
            serde_saphyr::from_str(&serde_saphyr::to_string(&crd).unwrap()).unwrap();
        assert_eq!(
            serde_json::to_value(read).unwrap(),
            serde_json::to_value(crd).unwrap()
        );
    }

    #[test]
    fn the_names_are_those_of_the_contract() {
        assert_eq!(NodeReadinessRule::group(&()), names::GROUP);
        assert_eq!(NodeReadinessRule::version(&()), names::VERSION);
        assert_eq!(NodeReadinessRule::kind(&()), "NodeReadinessRule");
        assert_eq!(NodeReadinessRule::plural(&()), "nodereadinessrules");
    }

    #[test]
    fn absent_fields_stay_absent() {
        let manifest = serde_saphyr::to_string(&crd()).unwrap();
        for word in ["nullable:", "default:", "null"] {
            let found = manifest.split_whitespace().find(|&found| found == word);
            assert_eq!(found, None);
        }
    }

    #[test]
    fn the_status_has_every_bound_of_upstreams_and_its_sets_and_maps_but_for_one() {
        let at = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
        let upstreams: Value = serde_saphyr::from_str(&read(UPSTREAMS)).unwrap();
        let ours = serde_json::to_value(crd()).unwrap();
        let (upstreams, ours) = (upstreams.pointer(at).unwrap(), ours.pointer(at).unwrap());
        let mut differences = Vec::new();
        compare(upstreams, ours, "status", &mut differences);
        // `NodeReadinessRuleStatus` says why.
        let atomic = [
            r#"status/properties/nodeEvaluations/x-kubernetes-list-map-keys is null, not ["nodeName"]"#,
            r#"status/properties/nodeEvaluations/x-kubernetes-list-type is "atomic", not "map""#,
        ];
        assert_eq!(differences, atomic);
    }

    /// A value as text, 0 and 0.0 alike.
    fn text(value: &Value) -> String {
        let number = value.as_f64().map(|number| number.to_string());
        number.unwrap_or_else(|| value.to_string())
    }

    /// Lists each keyword of a schema that another schema lacks or has otherwise.
    fn compare(expected: &Value, actual: &Value, path: &str, differences: &mut Vec<String>) {
        match expected {
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    let path = format!("{path}/{keyword}");
                    compare(value, &actual[keyword], &path, differences);
                }
            }
            Value::Array(items) if actual.is_array() => {
                let missing = items
                    .iter()
                    .filter(|it| !actual.as_array().unwrap().contains(it));
                differences.extend(missing.map(|it| format!("{path} lacks {it}")));
            }
            _ if text(expected) == text(actual) => {}
            _ => differences.push(format!("{path} is {actual}, not {expected}")),
        }
    }

    #[test]
    fn every_sample_is_listed_and_is_a_rule() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(SAMPLES);
        let files: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "kustomization.yaml")
            .collect();
        let kustomization: Value =
            serde_saphyr::from_str(&read(Path::new(SAMPLES).join("kustomization.yaml"))).unwrap();
        let listed: BTreeSet<String> =
            serde_json::from_value(kustomization["resources"].clone()).unwrap();
        assert_eq!(listed, files);
        for file in files {
            let sample: NodeReadinessRule =
                serde_saphyr::from_str(&read(Path::new(SAMPLES).join(&file)))
                    .unwrap_or_else(|error| panic!("{file}: {error}"));
            let ours = sample.spec.nodegate.unwrap_or_default();
            assert!(
                sample.spec.taint.key.starts_with(names::TAINT_PREFIX)
                    || ours.taint_policy == TaintPolicy::RemoveOnly,
                "{file}"
            );
        }
    }
}
