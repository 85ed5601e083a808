//! The chart's values: the effect of each, and invalid ones.

use std::process::Command;

use anyhow::{Context, Result};
use nodegate_tests::{has_words, refused};
use serde_json::{Value, json};
use testkit::kubernetes::versions::is_since;
use testkit::nodegate::helm::helm;
use testkit::nodegate::install::{NAMESPACE, chart, repository};
use testkit::nodegate::{Cluster, Options};

use crate::rendered::{Objects, template, template_of};

const DEPLOYMENT: &str = "Deployment nrr-system/nrr-controller-manager";

fn container(objects: &Objects) -> &Value {
    &objects[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]
}

/// Values that make each object that the chart has.
const EVERYTHING: &str = "webhook.enabled=true,webhook.certificate=cert-manager,karpenter.enabled=true,policies.enabled=true,\
    flowControl.enabled=true,injectTolerations.enabled=true,reporter.accounts[0].namespace=a,reporter.accounts[0].name=b,\
    reporter.accounts[0].conditionTypes={c.example.com/D},config.passingTaints={a/b},\
    metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true";

const MONITOR: &str = "ServiceMonitor monitoring/nrr-controller-manager-metrics-monitor";
const VIEW: &str = "ClusterRole /nodegate-view";
const REPORTER: &str = "ClusterRoleBinding /nrr-reporter-kube-system.cni";
const ACCOUNT: &str = "reporter.accounts[0].namespace=kube-system,reporter.accounts[0].name=cni,\
    reporter.accounts[0].conditionTypes={a.example.com/A,b.example.com/B}";

/// A place in an object, or without a slash in the Deployment's pods, and what is there.
type Place<'a> = (&'a str, &'a str, Value);

/// Each of these values, and some places that they are about.
#[rustfmt::skip]
fn places() -> Vec<(String, Vec<Place<'static>>)> {
    const TERMS: &str = "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    const THIRD: &str =
        "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/2";
    let digest = "sha256:".to_owned() + &"a".repeat(64);
    let by_digest =
        format!("image.tag=1.2.3,image.digest={digest},replicas=3,replicaCount=4,affinity=null");
    let off_karpenter = json!({"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"});
    let several = "image.repository=registry.example.com/nodegate,image.tag=1.2.3,replicas=3,extraEnv[0].name=A,extraEnv[0].value=b,\
        priorityClassName=mine,imagePullSecrets[0].name=registry,podLabels.team=nodes,hostNetwork=true,webhook.enabled=true,\
        webhook.clientCAConfigMap=callers,tolerations[0].key=mine,tolerations[0].operator=Exists";
    let on_karpenter = "offKarpenterNodes=false,affinity=null,gatingTaints={readiness.k8s.io/a}";
    // Controllers of other projects carry similar labels.
    let own = json!({"control-plane": "controller-manager", "app.kubernetes.io/name": "nrrcontroller"});
    let aggregated = "/metadata/labels/rbac.authorization.k8s.io~1aggregate-to-view";
    let as_node = format!("{ACCOUNT},reporter.accounts[0].impersonateNode=true");
    let named = "ConfigMap nrr-system/reporter-kube-system.cni";
    vec![
        (several.into(), vec![
            (DEPLOYMENT, "containers/0/image", json!("registry.example.com/nodegate:1.2.3")),
            (DEPLOYMENT, "/spec/replicas", json!(3)),
            (DEPLOYMENT, "containers/0/env/8", json!({"name": "A", "value": "b"})),
            (DEPLOYMENT, "priorityClassName", json!("mine")),
            (DEPLOYMENT, "imagePullSecrets", json!([{"name": "registry"}])),
            (DEPLOYMENT, "/spec/template/metadata/labels/team", json!("nodes")),
            (DEPLOYMENT, "hostNetwork", json!(true)),
            (DEPLOYMENT, "/spec/strategy/rollingUpdate", json!({"maxSurge": 0, "maxUnavailable": 1})),
            (DEPLOYMENT, "volumes/0/configMap/name", json!("callers")),
            (DEPLOYMENT, "tolerations", json!([{"key": "mine", "operator": "Exists"}])),
            ("Service nrr-system/nrr-webhook-service", "/spec/selector", own.clone()),
            ("Service nrr-system/nrr-controller-manager-metrics-service", "/spec/selector", own.clone()),
            ("PodDisruptionBudget nrr-system/nrr-controller-manager", "/spec/selector/matchLabels", own.clone()),
            ("NetworkPolicy nrr-system/nrr-controller-manager", "/spec/podSelector/matchLabels", own.clone()),
            ("NetworkPolicy nrr-system/nrr-webhook", "/spec/podSelector/matchLabels", own.clone()),
        ]),
        (by_digest, vec![
            (DEPLOYMENT, "containers/0/image", json!(format!("nodegate@{digest}"))),
            (DEPLOYMENT, "/spec/replicas", json!(4)),
            (DEPLOYMENT, TERMS, json!([{"matchExpressions": [off_karpenter]}])),
        ]),
        (on_karpenter.into(), vec![
            (DEPLOYMENT, "affinity", Value::Null),
            (DEPLOYMENT, "tolerations/10", json!({"key": "readiness.k8s.io/a", "operator": "Exists"})),
        ]),
        ("hostNetwork=false".into(), vec![
            (DEPLOYMENT, "/spec/strategy", Value::Null),
            (DEPLOYMENT, THIRD, off_karpenter),
        ]),
        // The Deployment selects its pods whatever their labels.
        ("podLabels.control-plane=mine,podLabels.team=nodes,nameOverride=gates".into(), vec![
            (DEPLOYMENT, "/spec/selector/matchLabels", own),
            (DEPLOYMENT, "/spec/template/metadata/labels/control-plane", json!("controller-manager")),
            (DEPLOYMENT, "/spec/template/metadata/labels/app.kubernetes.io~1name", json!("nrrcontroller")),
            (DEPLOYMENT, "/spec/template/metadata/labels/app.kubernetes.io~1instance", json!("nodegate")),
            (DEPLOYMENT, "/spec/template/metadata/labels/team", json!("nodes")),
            (DEPLOYMENT, "/metadata/labels/app.kubernetes.io~1name", json!("gates")),
        ]),
        // The built-in view is widened only when asked.
        ("aggregateToView=false,serviceAccount.annotations.example\\.com/role=nodes".into(), vec![
            (VIEW, aggregated, Value::Null),
            ("ServiceAccount nrr-system/nrr-controller-manager", "/metadata/annotations", json!({"example.com/role": "nodes"})),
        ]),
        ("aggregateToView=true".into(), vec![(VIEW, aggregated, json!("true"))]),
        // A reporter's account may report, and is held to its conditions.
        (ACCOUNT.into(), vec![
            (REPORTER, "/roleRef/name", json!("nrr-reporter-role")),
            (REPORTER, "/subjects", json!([{"kind": "ServiceAccount", "name": "cni", "namespace": "kube-system"}])),
            ("ClusterRole /nrr-reporter-role", "/kind", json!("ClusterRole")),
            (named, "/metadata/labels/nodegate.dev~1reporter", json!("true")),
            (named, "/data", json!({"serviceAccount": "kube-system/cni", "conditionTypes": "a.example.com/A,b.example.com/B"})),
        ]),
        ("serviceAccount.create=false,serviceAccount.name=mine,policies.enabled=true,flowControl.enabled=true".into(), vec![
            (DEPLOYMENT, "serviceAccountName", json!("mine")),
            ("ClusterRoleBinding /nrr-manager-rolebinding", "/subjects/0/name", json!("mine")),
            ("RoleBinding default/nrr-events-rolebinding", "/subjects/0/name", json!("mine")),
            ("FlowSchema /nrr-leader-election", "/spec/rules/0/subjects/0/serviceAccount/name", json!("mine")),
            ("ValidatingAdmissionPolicy /nrr-controller-policy", "/spec/matchConditions/0/expression",
                json!("request.userInfo.username == 'system:serviceaccount:nrr-system:mine'")),
        ]),
        ("securityContext.runAsUser=7,podSecurityContext.fsGroup=7,extraVolumes[0].name=a,extraVolumeMounts[0].name=a,\
            extraVolumeMounts[0].mountPath=/a,config.passingTaints={a/b}".into(), vec![
            (DEPLOYMENT, "containers/0/securityContext/runAsUser", json!(7)),
            (DEPLOYMENT, "containers/0/securityContext/allowPrivilegeEscalation", json!(false)),
            (DEPLOYMENT, "securityContext/fsGroup", json!(7)),
            (DEPLOYMENT, "securityContext/runAsNonRoot", json!(true)),
            (DEPLOYMENT, "volumes/1/name", json!("a")),
            (DEPLOYMENT, "containers/0/volumeMounts/1", json!({"name": "a", "mountPath": "/a"})),
        ]),
        ("metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.namespace=monitoring,metrics.serviceMonitor.interval=1m,\
            metrics.serviceMonitor.scrapeTimeout=9s,metrics.serviceMonitor.relabelings[0].action=keep,\
            metrics.dashboard.enabled=true,metrics.dashboard.annotations.grafana_folder=Nodes".into(), vec![
            (MONITOR, "/spec/namespaceSelector/matchNames", json!(["nrr-system"])),
            (MONITOR, "/spec/endpoints/0/interval", json!("1m")),
            (MONITOR, "/spec/endpoints/0/scrapeTimeout", json!("9s")),
            (MONITOR, "/spec/endpoints/0/relabelings", json!([{"action": "keep"}])),
            // The Secret that it names is beside it.
            ("Secret monitoring/nrr-metrics-scraper-token", "/type", json!("kubernetes.io/service-account-token")),
            ("ClusterRoleBinding /nrr-metrics-scraper", "/subjects/0/namespace", json!("monitoring")),
            ("ConfigMap nrr-system/nrr-grafana-dashboard", "/metadata/annotations/grafana_folder", json!("Nodes")),
        ]),
        ("extraObjects[0].apiVersion=v1,extraObjects[0].kind=ConfigMap,extraObjects[0].metadata.name=more-{{ .Release.Name }}".into(), vec![
            ("ConfigMap /more-nodegate", "/kind", json!("ConfigMap")),
        ]),
        (as_node, vec![(REPORTER, "/roleRef/name", json!("nrr-reporter-impersonation-role"))]),
    ]
}

#[tokio::test]
async fn values_end_up_where_they_belong() -> Result<()> {
    for (values, places) in places() {
        let objects = template(&[&values]).await?;
        for (object, place, expected) in places {
            let pointer = match place.strip_prefix('/') {
                Some(_) => place.to_owned(),
                None => format!("/spec/template/spec/{place}"),
            };
            let seen = objects[object].pointer(&pointer).unwrap_or(&Value::Null);
            assert_eq!(*seen, expected, "{values}: {object} {pointer}");
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
async fn values_become_environment_variables_of_the_controller() -> Result<()> {
    #[rustfmt::skip]
    let cases = [
        ("logLevel=debug,logFormat=json,config.passingTaints={example.com/starting},karpenter.enabled=true", &[
            ("LOG", "debug"), ("LOG_FORMAT", "json"), ("CONFIG", "/etc/nodegate/config/config.yaml"), ("ENABLE_KARPENTER", "true"),
            ("LEADER_ELECT", "true"), ("MAX_FIRST_GATED", "10%"), ("METRICS_SECURE", "true"),
        ][..]),
        ("webhook.enabled=true", &[("ENABLE_WEBHOOK", "true")]),
        ("webhook.enabled=true,webhook.certificate=secret,webhook.secretName=mine,webhook.caBundle=Y2E=",
            &[("ENABLE_WEBHOOK", "true"), ("WEBHOOK_CERT_DIR", "/etc/nodegate/webhook")]),
    ];
    for (values, expected) in cases {
        let objects = template(&[values]).await?;
        let variables = container(&objects)["env"].as_array().cloned();
        let variables = variables.unwrap_or_default();
        for (name, value) in expected {
            let variable = json!({"name": format!("NODEGATE_{name}"), "value": value});
            assert!(variables.contains(&variable), "{values}: {variables:?}");
        }
    }
    let objects = template(&["extraArgs={--node-concurrent-reconciles=8}"]).await?;
    let arguments = &container(&objects)["args"];
    assert_eq!(*arguments, json!(["--node-concurrent-reconciles=8"]));
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
    let variables = container(&objects)["env"].to_string();
    assert!(!variables.contains("METRICS"), "{variables}");
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
        ("serviceAccount.create=false", "serviceAccount.create is false: name yours in serviceAccount.name"),
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
        let taken = helm(&["template", "nodegate", &chart, "--set", values]).await;
        let text = refused(taken).context(values)?;
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
        "nrr-add-tolerations",
        "nrr-validating-webhook-configuration",
        "nrr-webhook-server-cert",
    ]
    .iter()
    .fold(rendered, |text, name| text.replace(name, ""));
    let left = rest.lines().find(|line| line.contains("nrr-"));
    assert_eq!(left, None);
    has_words(&rest, "name: gates-controller-manager")?;
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

/// A rule that removes another project's taint, for `helm template --set-json`.
const FOREIGN: &str = r#"{"name": "cilium", "enforcementMode": "bootstrap-only", "nodegate": {"taintPolicy": "remove-only"},
    "conditions": [{"type": "NetworkUnavailable", "requiredStatus": "False"}],
    "taint": {"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"},
    "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}}}"#;

/// The prefixes of the conditions that Nodegate publishes.
const PREFIXES: &str = "['node.gardener.cloud/', 'daemonset.nodegate.dev/', 'daemonsets.nodegate.dev/', 'check.nodegate.dev/', \
    'label.nodegate.dev/', 'csidriver.nodegate.dev/', 'resource.nodegate.dev/', 'resourceslice.nodegate.dev/', 'nodegate.dev/NotReadyInTime']";

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
        &PREFIXES.replace(']', ", 'gpu.example.com/']"),
    ] {
        has_words(&variables, expected)?;
    }

    // No quote can escape the string in the expression here either.
    let injected = rules.replace("node.cilium.io/agent-not-ready", "a'] + ['b");
    let arguments = ["--set=policies.enabled=true", "--set-json", &injected];
    assert!(template_of(&arguments).await.is_err());
    Ok(())
}

#[tokio::test]
async fn the_policy_that_adds_tolerations_knows_the_classes_of_the_configuration() -> Result<()> {
    const POLICY: &str = "MutatingAdmissionPolicy /nrr-add-tolerations";
    let expression = async |config: &str| {
        let config = format!("config={config}");
        let arguments = [
            "--set=injectTolerations.enabled=true",
            "--set-json",
            &config,
        ];
        let kind = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
        let arguments = [&["--api-versions", kind][..], &arguments].concat();
        let objects = template_of(&arguments).await?;
        let expression = &objects[POLICY]["spec"]["matchConditions"][0]["expression"];
        anyhow::Ok(expression.as_str().unwrap_or_default().to_owned())
    };
    let gardener = "object.metadata.namespace in ['kube-system'] && params.spec.conditions.exists(it, it.type in \
        ['node.gardener.cloud/CriticalDaemonSetsScheduled', ";
    has_words(
        &expression(r#"{"passingTaints": ["a/b"]}"#).await?,
        gardener,
    )?;
    let requirements = r#""matchLabels": {"team": "gpu"}, "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c"]},
        {"key": "example.com/d", "operator": "Exists"}, {"key": "e", "operator": "DoesNotExist"}]"#;
    let class = |name: &str, namespaces: &str, selector: &str| {
        format!(
            r#"{{"name": "{name}", "selector": {{{selector}}}, "namespaces": {namespaces}, "conditionPrefix": "{name}.example.com/",
            "csiAnnotationPrefix": "{name}.example.com/wait-"}}"#
        )
    };
    let (gpu, any) = (
        class("gpu", r#"["gpu", "b"]"#, requirements),
        class("any", r#"["*"]"#, r#""matchLabels": {"a": "b"}"#),
    );
    let classes = format!(r#"{{"criticalComponentClasses": [{gpu}, {any}]}}"#);
    let found = expression(&classes).await?;
    for expected in [
        "(object.metadata.namespace in ['gpu', 'b'] && params.spec.conditions.exists(it, it.type in ['gpu.example.com/Critical",
        "[object.metadata, object.spec.template.metadata].all(it, !(it.?labels[?'a'].orValue('') in ['b', 'c']) && \
         (it.?labels[?'example.com/d'].hasValue()) && !(it.?labels[?'e'].hasValue()) && \
         (it.?labels[?'team'].orValue('') in ['gpu'])) || params.spec.conditions.exists(it, it.type in ['any.example.com/Critical",
    ] {
        has_words(&found, expected)?;
    }
    assert!(!found.contains("gardener"), "{found}");

    // No quote can escape the string in the expression here either.
    assert!(
        expression(&classes.replace("team", "a'] + ['b"))
            .await
            .is_err()
    );
    Ok(())
}

#[tokio::test]
async fn runbooks_are_where_the_user_has_them() -> Result<()> {
    #[rustfmt::skip]
    let cases = [
        ("logLevel=info", "docs/troubleshooting.md#"),
        ("docsURL=https://docs.example.com/0.1", "https://docs.example.com/0.1/troubleshooting.md#"),
        ("metrics.prometheusRule.runbookUrlPrefix=https://docs.example.com/runbooks.html#", "https://docs.example.com/runbooks.html#"),
    ];
    for (values, prefix) in cases {
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
    let variables = container(&objects)["env"].to_string();
    has_words(&variables, "NODEGATE_ENABLE_KARPENTER")?;
    let policy = &objects["ValidatingAdmissionPolicy /nrr-controller-policy"];
    let variables = policy["spec"]["variables"].to_string();
    has_words(&variables, "'platform.example.com/'")?;
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
        "offKarpenterNodes=false,gatingTaints={a.example.com/b},imagePullSecrets[0].name=registry,karpenter.enabled=true,flowControl.enabled=true,injectTolerations.enabled=true",
        "policies.enabled=true,policies.removedTaints={a.example.com/b},webhook.enabled=true,config.passingTaints={a/b}",
        "reporter.accounts[0].namespace=kube-system,reporter.accounts[0].name=a,metrics.dashboard.enabled=true",
        "reporter.accounts[0].conditionTypes={a.example.com/A},nodeSelector.a=b,extraVolumes[0].name=a,extraVolumes[0].emptyDir.medium=Memory",
        "extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/a,serviceAccount.name=mine",
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
    let try_out = ["apply", "--dry-run=server", "--validate=strict"];
    let taken = cluster.kubectl_on(&try_out, &file).await?;
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
