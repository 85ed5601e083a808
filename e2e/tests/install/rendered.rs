//! Without a cluster: kustomize and Helm render the same.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::{Value, json};
use testkit::nodegate::helm::helm;
use testkit::nodegate::install::{chart, config, kustomize, write_kustomization};

use crate::folder;

/// Rendered objects by kind, namespace and name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// The objects without what Helm's and kustomize's are meant to differ in: labels, and what keeps the CRD.
fn alike(mut objects: Objects) -> Objects {
    for object in objects.values_mut() {
        #[rustfmt::skip]
        let meant = [
            ("/spec/template/metadata/labels", &HELMS_LABELS[..]),
            ("/metadata/labels", &HELMS_LABELS),
            ("/metadata/labels", &["app.kubernetes.io/name", "control-plane"]),
            ("/metadata/annotations", &["helm.sh/resource-policy"]),
        ];
        for (pointer, known) in meant {
            let fields = object.pointer_mut(pointer).and_then(Value::as_object_mut);
            if let Some(fields) = fields {
                fields.retain(|key, _| !known.contains(&key.as_str()));
            }
        }
        // Each finds its Service by its own labels.
        if object["kind"] == "ServiceMonitor" {
            object["spec"]["selector"].take();
        }
        let metadata = object["metadata"].as_object_mut();
        if let Some(metadata) = metadata {
            metadata.retain(|_, value| *value != json!({}));
        }
    }
    objects
}

/// Parses rendered manifests.
fn objects(manifests: &str) -> Result<Objects> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(manifests)?;
    let mut objects = Objects::new();
    for object in documents.into_iter().filter(|object| !object.is_null()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        let key = format!("{} {namespace}/{name}", text(&object["kind"]));
        let twice = objects.insert(key.clone(), object);
        assert!(twice.is_none(), "{key} is rendered twice");
    }
    Ok(objects)
}

/// The labels by Helm's conventions, but for the name.
const HELMS_LABELS: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// Each value of an object with its path, to show single differences.
fn flat(object: &Value) -> BTreeSet<String> {
    fn walk(path: &str, value: &Value, lines: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, value) in fields {
                    walk(&format!("{path}/{name}"), value, lines);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, value) in items.iter().enumerate() {
                    walk(&format!("{path}/{index}"), value, lines);
                }
            }
            value => {
                // Kustomize writes 0.0 as 0.
                let number = value.as_f64().map(|number| number.to_string());
                let text = number.unwrap_or_else(|| value.to_string());
                lines.insert(format!("{path} = {text}"));
            }
        }
    }
    let mut lines = BTreeSet::new();
    walk("", object, &mut lines);
    lines
}

/// Renders the chart with these values, for an API server with every optional kind.
pub(crate) async fn template(values: &[&str]) -> Result<Objects> {
    let kind = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
    template_for(&["--api-versions", kind], values).await
}

/// Renders the chart with these values, for the API server that the arguments describe.
async fn template_for(server: &[&str], values: &[&str]) -> Result<Objects> {
    let mut arguments = server.to_vec();
    for value in values {
        arguments.extend(["--set", value]);
    }
    template_of(&arguments).await
}

/// Renders the chart with values from these arguments.
pub(crate) async fn template_of(more: &[&str]) -> Result<Objects> {
    let chart = chart();
    let chart = chart.to_string_lossy();
    let mut arguments = vec!["template", "nodegate", &chart, "--namespace=nrr-system"];
    arguments.extend(more);
    objects(&helm(&arguments).await?)
}

#[tokio::test]
async fn chart_and_kustomize_make_the_same_objects() -> Result<()> {
    const NONE: &[&str] = &[];
    #[rustfmt::skip]
    let cases = [
        ("plain", NONE, NONE),
        ("reporter", &[], &["reporter.enabled=true"]),
        ("webhook", &["components/webhook"], &["webhook.enabled=true"]),
        ("cert-manager", &["components/webhook", "components/cert-manager"], &["webhook.enabled=true", "webhook.certificate=cert-manager"]),
        ("karpenter", &["components/karpenter"], &["karpenter.enabled=true"]),
        ("karpenter-nodes", &["components/karpenter-nodes"], &["offKarpenterNodes=false"]),
        ("host-network", &["components/host-network"], &["hostNetwork=true"]),
        ("policies", &["policy"], &["policies.enabled=true"]),
        ("birth", &["birth"], &[]),
        ("tolerations", &["tolerations"], &["injectTolerations.enabled=true"]),
        ("flowcontrol", &["flowcontrol"], &["flowControl.enabled=true"]),
        ("prometheus", &["components/prometheus"],
            &["metrics.serviceMonitor.enabled=true", "metrics.prometheusRule.enabled=true", "metrics.dashboard.enabled=true"]),
    ];
    for (name, components, values) in cases {
        let folder = folder(name)?;
        // The reporter has its own kustomization.
        let mut resources = vec!["crd", "default"];
        resources.extend((name == "reporter").then_some("reporter"));
        write_kustomization(&folder, &resources, components)?;
        let mut by_kustomize = alike(objects(&kustomize(&folder).await?)?);
        // Helm does not render its namespace.
        by_kustomize.remove("Namespace /nrr-system");
        // For features of some API servers, kustomize has a component, and the chart detects support.
        let mut values = values.to_vec();
        if name != "birth" {
            values.push("birth.enabled=false");
        }
        let by_helm = alike(template(&values).await?);
        let keys = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&by_helm), keys(&by_kustomize), "{name}");
        for (key, object) in &by_kustomize {
            let (chart, own) = (flat(&by_helm[key]), flat(object));
            let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
                a.difference(b).cloned().collect()
            };
            let (more, less) = (only(&chart, &own), only(&own, &chart));
            assert!(
                more.is_empty() && less.is_empty(),
                "{name}: {key}: only Helm has {more:#?}, only kustomize has {less:#?}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_api_server_that_does_not_know_mutating_policies_gets_none() -> Result<()> {
    let objects = template_for(&["--kube-version=1.35"], &[]).await?;
    assert!(objects.keys().all(|key| !key.starts_with("Mutating")));
    assert!(objects.contains_key("Deployment nrr-system/nrr-controller-manager"));
    Ok(())
}

#[tokio::test]
async fn the_policy_knows_the_taints_and_conditions_that_the_chart_is_told() -> Result<()> {
    let values = [
        "policies.enabled=true",
        "policies.removedTaints={node.cilium.io/agent-not-ready,ebs.csi.aws.com/agent-not-ready}",
        "policies.conditionPrefixes=null",
    ];
    let objects = template(&values).await?;
    let policy = &objects["ValidatingAdmissionPolicy /nrr-controller-policy"];
    let expression = |name: &str| {
        let variables = policy["spec"]["variables"].as_array();
        let mut variables = variables.into_iter().flatten();
        let variable = variables.find(|variable| variable["name"] == name);
        variable.map(|variable| variable["expression"].clone())
    };
    let removed = "['node.cilium.io/agent-not-ready', 'ebs.csi.aws.com/agent-not-ready']";
    assert_eq!(expression("removedTaints"), Some(json!(removed)));
    assert_eq!(expression("conditionPrefixes"), Some(json!("[]")));

    // No quote can escape the string in the expression.
    let injected = "policies.removedTaints={a'] + ['b}";
    assert!(
        template(&["policies.enabled=true", injected])
            .await
            .is_err()
    );
    Ok(())
}

#[tokio::test]
async fn another_namespace_is_everywhere() -> Result<()> {
    let chart = chart();
    let all = "webhook.enabled=true,karpenter.enabled=true,policies.enabled=true,flowControl.enabled=true,config.passingTaints={a/b}";
    let rendered = helm(&[
        "template",
        "nodegate",
        &chart.to_string_lossy(),
        "--namespace=gates",
        "--set",
        all,
    ])
    .await?;
    assert!(!rendered.contains("nrr-system"), "{rendered}");
    assert!(rendered.contains("namespace: gates"));
    Ok(())
}

#[tokio::test]
async fn one_version_is_in_all_of_it() -> Result<()> {
    // hack/versions has the chart's.
    let version = env!("CARGO_PKG_VERSION");
    let objects = objects(&kustomize(&config("default")).await?)?;
    let deployment = &objects["Deployment nrr-system/nrr-controller-manager"];
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, format!("nodegate:{version}"));
    Ok(())
}

#[test]
fn the_rule_for_gardener_is_the_sample() -> Result<()> {
    let read = |path: &str| std::fs::read_to_string(config(path));
    assert_eq!(
        read("components/gardener/rule.yaml")?,
        read("samples/gardener-critical-components.yaml")?
    );
    Ok(())
}
