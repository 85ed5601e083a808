//! The chart's values: the effect of each, and invalid ones.

use std::process::Command;

use anyhow::{Context, Result, bail};
use nodegate_suite::versions::is_since;
use nodegate_testbed::helm::helm;
use nodegate_testbed::install::{NAMESPACE, chart, repository};
use nodegate_testbed::{Cluster, Options};
use serde_json::{Value, json};

use crate::rendered::{Objects, template, template_of};

const DEPLOYMENT: &str = "Deployment nrr-system/nrr-controller-manager";

fn container(objects: &Objects) -> &Value {
    &objects[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]
}

/// Values that make each object that the chart has.
const EVERYTHING: &str = "webhook.enabled=true,webhook.certificate=cert-manager,karpenter.enabled=true,policies.enabled=true,\
    flowControl.enabled=true,reporter.accounts[0].namespace=a,reporter.accounts[0].name=b,\
    reporter.accounts[0].conditionTypes={c.example.com/D},config.passingTaints={a/b},\
    metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true";

#[tokio::test]
async fn values_end_up_where_they_belong() -> Result<()> {
    const TERMS: &str =
        "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let digest = "sha256:".to_owned() + &"a".repeat(64);
    let by_digest =
        format!("image.tag=1.2.3,image.digest={digest},replicas=3,replicaCount=4,affinity=null");
    let off_karpenter = json!({"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"});
    let third = format!("{TERMS}/0/matchExpressions/2");
    let several = "image.repository=registry.example.com/nodegate,image.tag=1.2.3,replicas=3,extraEnv[0].name=A,extraEnv[0].value=b,\
        priorityClassName=mine,imagePullSecrets[0].name=registry,podLabels.team=nodes,hostNetwork=true,webhook.enabled=true,\
        webhook.clientCAConfigMap=callers,tolerations[0].key=mine,tolerations[0].operator=Exists";
    let on_karpenter = "offKarpenterNodes=false,affinity=null,gatingTaints={readiness.k8s.io/a}";
    #[rustfmt::skip]
    let cases = [
        (several, vec![
            ("containers/0/image", json!("registry.example.com/nodegate:1.2.3")),
            ("/spec/replicas", json!(3)),
            ("containers/0/env/2", json!({"name": "A", "value": "b"})),
            ("priorityClassName", json!("mine")),
            ("imagePullSecrets", json!([{"name": "registry"}])),
            ("/spec/template/metadata/labels/team", json!("nodes")),
            ("hostNetwork", json!(true)),
            ("/spec/strategy/rollingUpdate", json!({"maxSurge": 0, "maxUnavailable": 1})),
            ("volumes/0/configMap/name", json!("callers")),
            ("tolerations", json!([{"key": "mine", "operator": "Exists"}])),
        ]),
        (&by_digest, vec![
            ("containers/0/image", json!(format!("nodegate@{digest}"))),
            ("/spec/replicas", json!(4)),
            (TERMS, json!([{"matchExpressions": [off_karpenter]}])),
        ]),
        (on_karpenter, vec![
            ("affinity", Value::Null),
            ("tolerations/10", json!({"key": "readiness.k8s.io/a", "operator": "Exists"})),
        ]),
        ("hostNetwork=false", vec![("/spec/strategy", Value::Null), (&third, off_karpenter)]),
    ];
    for (values, places) in cases {
        let objects = template(&[values]).await?;
        for (place, expected) in places {
            let pointer = match place.strip_prefix('/') {
                Some(_) => place.to_owned(),
                None => format!("/spec/template/spec/{place}"),
            };
            let seen = objects[DEPLOYMENT].pointer(&pointer);
            assert_eq!(*seen.unwrap_or(&Value::Null), expected, "{pointer}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn on_karpenters_nodes_it_tolerates_what_is_named_and_its_own_rules_but_no_drain()
-> Result<()> {
    let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    let rule = |key: &str| {
        json!({
            "enforcementMode": "continuous",
            "conditions": [{"type": "example.com/A", "requiredStatus": "True"}],
            "taint": taint(key),
            "nodeSelector": {"matchLabels": {"a": "b"}},
        })
    };
    let rules = json!({"a": rule("readiness.k8s.io/a"), "b": rule("readiness.k8s.io/b")});
    let rules = format!("rules={rules}");
    let placed = "offKarpenterNodes=false,gatingTaints={readiness.k8s.io/a,example.com/starting}";
    let objects = template_of(&["--set-json", &rules, "--set", placed]).await?;
    let tolerations = &objects[DEPLOYMENT]["spec"]["template"]["spec"]["tolerations"];
    let keys = tolerations.as_array().into_iter().flatten();
    let keys: Vec<&Value> = keys.map(|toleration| &toleration["key"]).collect();
    for key in [
        "readiness.k8s.io/a",
        "readiness.k8s.io/b",
        "example.com/starting",
    ] {
        let count = keys.iter().filter(|known| ***known == key).count();
        assert_eq!(count, 1, "{key} in {keys:?}");
    }
    for key in [
        json!("karpenter.sh/disrupted"),
        json!("node.kubernetes.io/unschedulable"),
        Value::Null,
    ] {
        assert!(!keys.contains(&&key), "{key} in {keys:?}");
    }
    Ok(())
}

#[tokio::test]
async fn values_become_flags_of_the_controller() -> Result<()> {
    #[rustfmt::skip]
    let cases = [
        ("logLevel=debug,logFormat=json,extraArgs={--node-concurrent-reconciles=8},config.passingTaints={example.com/starting}", &[
            "--zap-log-level=debug", "--log-format=json", "--node-concurrent-reconciles=8", "--config=/etc/nodegate/config/config.yaml",
        ][..]),
        ("webhook.enabled=true", &["--enable-webhook"]),
        ("webhook.enabled=true,webhook.certificate=secret,webhook.secretName=mine,webhook.caBundle=Y2E=",
            &["--enable-webhook", "--webhook-cert-dir=/etc/nodegate/webhook"]),
    ];
    for (values, expected) in cases {
        let objects = template(&[values]).await?;
        let arguments = container(&objects)["args"].as_array().cloned();
        let arguments = arguments.unwrap_or_default();
        for flag in expected {
            assert!(arguments.contains(&json!(flag)), "{values}: {arguments:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_is_off_is_not_rendered() -> Result<()> {
    let all = template(&[]).await?;
    let off = "metrics.enabled=false,podDisruptionBudget.enabled=false,networkPolicy.enabled=false,birth.enabled=false,\
        resourceQuota.enabled=false";
    let none = template(&[off]).await?;
    for gone in [
        "Service nrr-system/nrr-controller-manager-metrics-service",
        "PodDisruptionBudget nrr-system/nrr-controller-manager",
        "NetworkPolicy nrr-system/nrr-controller-manager",
        "MutatingAdmissionPolicy /nrr-gate-at-birth",
        "ResourceQuota nrr-system/nrr-critical-pods",
    ] {
        assert!(all.contains_key(gone) && !none.contains_key(gone), "{gone}");
    }
    let objects = template(&["metrics.enabled=false"]).await?;
    let arguments = container(&objects)["args"].to_string();
    assert!(!arguments.contains("metrics"), "{arguments}");
    let policy = &objects["NetworkPolicy nrr-system/nrr-controller-manager"];
    assert_eq!(policy["spec"]["ingress"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn values_that_cannot_be_used_are_refused_by_name() -> Result<()> {
    #[rustfmt::skip]
    let cases = [
        ("replica=3", "there is no value replica: did you mean replicas?"),
        ("webhook.enable=true", "there is no value webhook.enable: did you mean webhook.enabled?"),
        ("image.tags=x", "did you mean image.tag?"),
        ("serviceMonitor.enabled=true", "did you mean metrics.serviceMonitor?"),
        ("crds.upgrade=true", "there is no value crds.upgrade: there are install, keep"),
        ("docsURL=pages", "at '/docsURL'"),
        ("fullnameOverride=a-name-of-twenty-nine-letters", "at '/fullnameOverride'"),
        ("config.passingTaint={a}", "at '/config': additional properties 'passingTaint' not allowed"),
        ("replicas=0", "at '/replicas': minimum: got 0, want 1"),
        ("replicas=two", "at '/replicas': got string, want integer"),
        ("webhook.certificate=own", "at '/webhook/certificate': value must be one of 'self-managed', 'cert-manager', 'secret'"),
        ("webhook.certificate=secret", "at '/webhook/secretName'"),
        ("image.digest=abc", "at '/image/digest'"),
        ("extraArgs={leader-elect}", "at '/extraArgs/0'"),
        ("rules.network.taint.key=x", "at '/rules/network': missing properties"),
        ("nodeReadinessRules[0].taint.key=x", "at '/nodeReadinessRules/0': missing property 'name'"),
        ("reporter.accounts[0].name=x", "at '/reporter/accounts/0': missing properties"),
    ];
    for (values, expected) in cases {
        let chart = chart();
        let chart = chart.to_string_lossy();
        let refused = helm(&["template", "nodegate", &chart, "--set", values]).await;
        let Err(error) = refused else {
            bail!("{values} was taken");
        };
        let text = error.to_string();
        let told: Vec<_> = text
            .lines()
            .filter(|line| line.contains(expected))
            .collect();
        assert_eq!(told.len(), 1, "{values}: {text}");
    }
    Ok(())
}

#[tokio::test]
async fn every_object_has_helms_labels_and_the_common_ones() -> Result<()> {
    let rules = format!("nodeReadinessRules=[{FOREIGN}]");
    let kind = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
    let arguments = ["--api-versions", kind, "--set-json", &rules, "--set"];
    let without = template_of(&[&arguments[..], &[EVERYTHING]].concat()).await?;
    let labelled = format!("{EVERYTHING},commonLabels.team=nodes");
    let with = template_of(&[&arguments[..], &[&labelled]].concat()).await?;
    assert!(without.len() > 30, "{}", without.len());
    for (key, object) in &without {
        let labels = &object["metadata"]["labels"];
        for (name, expected) in [
            ("app.kubernetes.io/name", "nodegate"),
            ("app.kubernetes.io/instance", "nodegate"),
            ("app.kubernetes.io/managed-by", "Helm"),
            ("app.kubernetes.io/version", env!("CARGO_PKG_VERSION")),
        ] {
            assert_eq!(labels[name], expected, "{key}");
        }
        let is_deployment = key == DEPLOYMENT;
        assert_eq!(labels["control-plane"].is_string(), is_deployment, "{key}");

        let mut labelled = with
            .get(key)
            .with_context(|| format!("{key} is gone"))?
            .clone();
        let labels = labelled["metadata"]["labels"].as_object_mut();
        let label = labels.and_then(|labels| labels.remove("team"));
        assert_eq!(label, Some(json!("nodes")), "{key}");
        assert_eq!(labelled, *object, "{key}");
    }
    let monitor = &without["ServiceMonitor nrr-system/nrr-controller-manager-metrics-monitor"];
    let selector = monitor["spec"]["selector"]["matchLabels"].as_object();
    let service = &without["Service nrr-system/nrr-controller-manager-metrics-service"];
    for (name, value) in selector.context("the monitor selects nothing")? {
        assert_eq!(service["metadata"]["labels"][name], *value, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn the_deployment_selects_its_pods_whatever_their_labels() -> Result<()> {
    let values = "podLabels.control-plane=mine,podLabels.team=nodes,nameOverride=gates";
    let objects = template(&[values]).await?;
    let spec = &objects[DEPLOYMENT]["spec"];
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!(labels["team"], "nodes");
    assert_eq!(labels["app.kubernetes.io/instance"], "nodegate");
    let selector = spec["selector"]["matchLabels"].as_object();
    let selector = selector.context("no selector")?;
    assert_eq!(selector.len(), 2);
    for (name, value) in selector {
        assert_eq!(labels[name], *value, "{name}");
    }
    let label = &objects[DEPLOYMENT]["metadata"]["labels"]["app.kubernetes.io/name"];
    assert_eq!(label, "gates");
    Ok(())
}

/// Whatever one object says of another has to be renamed with it.
#[tokio::test]
async fn another_full_name_is_everywhere_but_in_names_that_nodegate_looks_up() -> Result<()> {
    let chart = chart();
    let named = format!("{EVERYTHING},fullnameOverride=gates");
    let chart = chart.to_string_lossy();
    let rendered = helm(&["template", "nodegate", &chart, "--set", &named]).await?;
    let rest = [
        "nrr-controller-manager-config",
        "nrr-gate-at-birth",
        "nrr-validating-webhook-configuration",
        "nrr-webhook-server-cert",
    ]
    .iter()
    .fold(rendered, |text, name| text.replace(name, ""));
    let left = rest.lines().find(|line| line.contains("nrr-"));
    assert_eq!(left, None);
    assert!(rest.contains("name: gates-controller-manager"), "{rest}");
    Ok(())
}

#[tokio::test]
async fn definition_roles_and_bindings_can_come_from_elsewhere() -> Result<()> {
    let everything = template(&[EVERYTHING]).await?;
    let definition = everything
        .keys()
        .find(|key| key.starts_with("CustomResourceDefinition "));
    let definition = definition.context("no definition")?;
    let keep = "/metadata/annotations/helm.sh~1resource-policy";
    let policy = everything[definition].pointer(keep);
    assert_eq!(policy, Some(&json!("keep")));
    let not_kept = template(&["crds.keep=false"]).await?;
    assert_eq!(not_kept[definition].pointer(keep), None);

    let without = template(&[EVERYTHING, "crds.install=false,rbac.create=false"]).await?;
    let is_role = |key: &str| {
        let kind = key.split(' ').next().unwrap_or_default();
        kind.ends_with("Role") || kind.ends_with("RoleBinding")
    };
    let expected: Vec<_> = everything
        .keys()
        .filter(|key| !is_role(key) && *key != definition)
        .collect();
    assert_eq!(without.keys().collect::<Vec<_>>(), expected);
    Ok(())
}

#[tokio::test]
async fn the_built_in_view_is_widened_only_when_asked() -> Result<()> {
    let label = "/metadata/labels/rbac.authorization.k8s.io~1aggregate-to-view";
    for (values, expected) in [
        ("aggregateToView=false", None),
        ("aggregateToView=true", Some(&json!("true"))),
    ] {
        let annotated = "serviceAccount.annotations.example\\.com/role=nodes";
        let objects = template(&[values, annotated]).await?;
        let view = &objects["ClusterRole /nodegate-view"];
        assert_eq!(view.pointer(label), expected);
        let account = &objects["ServiceAccount nrr-system/nrr-controller-manager"];
        let role = json!({"example.com/role": "nodes"});
        assert_eq!(account["metadata"]["annotations"], role);
    }
    Ok(())
}

/// Controllers of other projects carry similar labels.
#[tokio::test]
async fn nothing_selects_a_neighbours_pods() -> Result<()> {
    let objects = template(&["webhook.enabled=true"]).await?;
    let own =
        json!({"control-plane": "controller-manager", "app.kubernetes.io/name": "nrrcontroller"});
    #[rustfmt::skip]
    let selectors = [
        ("Service nrr-system/nrr-webhook-service", "/spec/selector"),
        ("Service nrr-system/nrr-controller-manager-metrics-service", "/spec/selector"),
        ("PodDisruptionBudget nrr-system/nrr-controller-manager", "/spec/selector/matchLabels"),
        ("NetworkPolicy nrr-system/nrr-controller-manager", "/spec/podSelector/matchLabels"),
        ("NetworkPolicy nrr-system/nrr-webhook", "/spec/podSelector/matchLabels"),
    ];
    for (object, pointer) in selectors {
        assert_eq!(objects[object].pointer(pointer), Some(&own), "{object}");
    }
    Ok(())
}

#[tokio::test]
async fn accounts_whose_names_read_alike_have_objects_of_their_own() -> Result<()> {
    let accounts = "reporter.accounts[0].namespace=a-b,reporter.accounts[0].name=c,reporter.accounts[0].conditionTypes={x/y},\
                    reporter.accounts[1].namespace=a,reporter.accounts[1].name=b-c,reporter.accounts[1].conditionTypes={x/z}";
    let objects = template(&[accounts]).await?;
    let named = objects
        .keys()
        .filter(|it| it.starts_with("ConfigMap nrr-system/reporter-"));
    assert_eq!(named.count(), 2);
    Ok(())
}

#[tokio::test]
async fn a_reporters_account_may_report_and_is_held_to_its_conditions() -> Result<()> {
    let account = "reporter.accounts[0].namespace=kube-system,reporter.accounts[0].name=cni,\
                   reporter.accounts[0].conditionTypes={a.example.com/A,b.example.com/B}";
    let objects = template(&[account]).await?;
    let binding = &objects["ClusterRoleBinding /nrr-reporter-kube-system.cni"];
    assert_eq!(binding["roleRef"]["name"], "nrr-reporter-role");
    let subject = json!({"kind": "ServiceAccount", "name": "cni", "namespace": "kube-system"});
    assert_eq!(binding["subjects"], json!([subject]));
    let named = &objects["ConfigMap nrr-system/reporter-kube-system.cni"];
    assert_eq!(named["metadata"]["labels"]["nodegate.dev/reporter"], "true");
    let expected = json!({
        "serviceAccount": "kube-system/cni",
        "conditionTypes": "a.example.com/A,b.example.com/B",
    });
    assert_eq!(named["data"], expected);
    assert!(objects.contains_key("ClusterRole /nrr-reporter-role"));

    let as_node = [account, "reporter.accounts[0].impersonateNode=true"];
    let objects = template(&as_node).await?;
    let binding = &objects["ClusterRoleBinding /nrr-reporter-kube-system.cni"];
    let role = "nrr-reporter-impersonation-role";
    assert_eq!(binding["roleRef"]["name"], role);
    Ok(())
}

/// A rule that removes another project's taint, for `helm template --set-json`.
const FOREIGN: &str = r#"{"name": "cilium", "enforcementMode": "bootstrap-only", "nodegate": {"taintPolicy": "remove-only"},
    "conditions": [{"type": "NetworkUnavailable", "requiredStatus": "False"}],
    "taint": {"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"},
    "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}}}"#;

#[tokio::test]
async fn rules_may_be_a_list_and_the_policy_allows_what_values_ask_for() -> Result<()> {
    let class = r#"config={"criticalComponentClasses": [{"name": "gpu", "selector": {"matchLabels": {"a": "b"}},
        "conditionPrefix": "gpu.example.com/", "csiAnnotationPrefix": "gpu.example.com/wait-"}]}"#;
    let rules = format!("nodeReadinessRules=[{FOREIGN}]");
    let arguments = [
        "--set=policies.enabled=true",
        "--set-json",
        &rules,
        "--set-json",
        class,
    ];
    let objects = template_of(&arguments).await?;
    let rule = &objects["NodeReadinessRule /cilium"];
    assert_eq!(rule["spec"]["nodegate"]["taintPolicy"], "remove-only");
    assert_eq!(rule["spec"]["name"], Value::Null);
    let policy = &objects["ValidatingAdmissionPolicy /nrr-controller-policy"];
    let variables = policy["spec"]["variables"].to_string();
    for expected in [
        "['node.gardener.cloud/critical-components-not-ready', 'node.cilium.io/agent-not-ready']",
        "'resourceslice.nodegate.dev/', 'nodegate.dev/NotReadyInTime', 'gpu.example.com/']",
    ] {
        assert!(variables.contains(expected), "{variables}");
    }

    // No quote can escape the string in the expression here either.
    let injected = rules.replace("node.cilium.io/agent-not-ready", "a'] + ['b");
    let arguments = ["--set=policies.enabled=true", "--set-json", &injected];
    assert!(template_of(&arguments).await.is_err());
    Ok(())
}

#[tokio::test]
async fn runbooks_are_where_the_user_has_them() -> Result<()> {
    for (values, prefix) in [
        ("logLevel=info", "docs/troubleshooting.md#"),
        (
            "docsURL=https://docs.example.com/0.1",
            "https://docs.example.com/0.1/troubleshooting.md#",
        ),
        (
            "metrics.prometheusRule.runbookUrlPrefix=https://docs.example.com/runbooks.html#",
            "https://docs.example.com/runbooks.html#",
        ),
    ] {
        let objects = template(&["metrics.prometheusRule.enabled=true", values]).await?;
        let rule = &objects["PrometheusRule nrr-system/nrr-controller-manager-alerts"];
        let alerts = rule["spec"]["groups"][0]["rules"].as_array();
        for alert in alerts.context("no alerts")? {
            let url = alert["annotations"]["runbook_url"].as_str();
            let anchor = url.and_then(|url| url.strip_prefix(prefix));
            let anchor = anchor.with_context(|| format!("{values}: {url:?}"))?;
            assert!(anchor.starts_with("nodegate"), "{values}: {anchor}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_values_of_the_examples_can_be_used() -> Result<()> {
    let file = |name: &str| {
        let path = repository().join("examples/your-stack").join(name);
        path.to_string_lossy().into_owned()
    };
    let (nodegate, class) = (file("nodegate-values.yaml"), file("class-values.yaml"));
    let objects = template_of(&["--values", &nodegate, "--values", &class]).await?;
    let arguments = container(&objects)["args"].to_string();
    assert!(arguments.contains("--enable-karpenter"), "{arguments}");
    let policy = &objects["ValidatingAdmissionPolicy /nrr-controller-policy"];
    let variables = policy["spec"]["variables"].to_string();
    assert!(variables.contains("'platform.example.com/'"), "{variables}");
    Ok(())
}

/// Applies everything that the chart can render, and refuses unknown fields.
#[tokio::test]
async fn an_api_server_takes_what_values_make() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_crd().await?;
    cluster.kubectl(&["create", "namespace", NAMESPACE]).await?;
    let values = [
        "commonLabels.team=nodes,podLabels.team=nodes,podAnnotations.a=b,serviceAccount.annotations.a=b,hostNetwork=true",
        "nameOverride=mine,fullnameOverride=gates,replicaCount=1,extraEnv[0].name=A,extraEnv[0].value=b",
        "offKarpenterNodes=false,gatingTaints={a.example.com/b},imagePullSecrets[0].name=registry,karpenter.enabled=true,flowControl.enabled=true",
        "policies.enabled=true,policies.removedTaints={a.example.com/b},webhook.enabled=true,config.passingTaints={a/b}",
        "reporter.accounts[0].namespace=kube-system,reporter.accounts[0].name=a,metrics.dashboard.enabled=true",
        "reporter.accounts[0].conditionTypes={a.example.com/A},nodeSelector.a=b",
    ];
    let rules = format!("nodeReadinessRules=[{FOREIGN}]");
    let chart = chart();
    let chart = chart.to_string_lossy();
    let kind = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
    let mut arguments = vec!["template", "nodegate", &chart, "--namespace", NAMESPACE];
    arguments.extend(["--set-json", &rules]);
    if is_since(&cluster.client().await?, 36, kind).await? {
        arguments.extend(["--api-versions", kind]);
    }
    for values in values {
        arguments.extend(["--set", values]);
    }
    let file = cluster.folder().join("rendered.yaml");
    std::fs::write(&file, helm(&arguments).await?)?;
    let file = file.to_string_lossy();
    let strictly = [
        "apply",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        &file,
    ];
    let taken = cluster.kubectl(&strictly).await?;
    assert!(taken.lines().count() > 35, "{taken}");
    Ok(())
}

#[test]
fn the_charts_readme_has_every_value() -> Result<()> {
    let check = Command::new(repository().join("hack/chart-readme"))
        .arg("--check")
        .output()?;
    let said = [check.stdout, check.stderr].concat();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&said));
    Ok(())
}
