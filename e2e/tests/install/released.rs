//! Real `helm install`, `upgrade` and `uninstall`.

use anyhow::{Context, Result};
use nodegate_tests::rules::create_rule;
use nodegate_tests::{fixture, has_words, refused};
use testkit::nodegate::fixtures::rules;
use testkit::nodegate::install::{NAMESPACE, chart, config};
use testkit::nodegate::{Cluster, Options, deployment, eventually};

use crate::{
    CRD, MANAGER, SOON, WEBHOOK, call_webhook_at, gates_and_releases, held_node, until_bound,
    until_conflicts_are_refused,
};

const RULE: &str = r#"rules: {network: {
  enforcementMode: continuous, conditions: [{type: example.com/A, requiredStatus: "True"}],
  taint: {key: readiness.k8s.io/a, effect: NoSchedule}, nodeSelector: {matchLabels: {pool: helm}}}}
"#;

/// Has Helm take over what was applied by other means.
const TAKE_OVER: [&str; 2] = ["--take-ownership", "--force-conflicts"];

/// Runs `helm install` or `upgrade` with further arguments.
async fn release(cluster: &Cluster, verb: &str, namespace: &str, more: &[&str]) -> Result<String> {
    let chart = chart();
    let chart = chart.to_string_lossy();
    let mut arguments = vec![verb, "nodegate", &chart, "--namespace", namespace];
    arguments.extend(more);
    cluster.helm(&arguments).await
}

#[tokio::test]
async fn a_release_is_installed_upgraded_and_uninstalled() -> Result<()> {
    let cluster = Cluster::start(Options::full()).await?;
    let client = cluster.client().await?;
    held_node(&client).await?;
    cluster.kubectl(&["create", "namespace", NAMESPACE]).await?;
    let level = "pod-security.kubernetes.io/enforce=restricted";
    let label = format!("label namespace {NAMESPACE} {level}");
    cluster.types(&label).await?;
    let notes = release(&cluster, "install", NAMESPACE, &[]).await?;
    for said in ["kubectl nodegate check", "EKS Auto Mode", "dryRun: true"] {
        has_words(&notes, said)?;
    }
    assert!(!notes.contains("WARNING"), "{notes}");
    until_bound(&cluster, NAMESPACE, 2).await?;
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    gates_and_releases(&client, "installed")
        .await
        .with_context(|| controller.log())?;
    controller.stop().await?;

    let more = [
        "--set=replicas=1,config.passingTaints={example.com/starting},webhook.enabled=true",
        "--set=extraArgs={--rule-concurrent-reconciles=4,--node-concurrent-reconciles=8}",
    ];
    release(&cluster, "upgrade", NAMESPACE, &more).await?;
    let (controller, addresses) = deployment::run(&cluster, NAMESPACE).await?;
    call_webhook_at(&cluster, &addresses.webhook).await?;
    until_conflicts_are_refused(&client, &controller).await?;
    let log = controller.log();
    has_words(&log, "--rule-concurrent-reconciles is ignored")?;

    // The webhook goes first: the API server cannot call its Service here.
    let webhook = ["delete", "validatingwebhookconfiguration", WEBHOOK];
    cluster.kubectl(&webhook).await?;
    release(&cluster, "upgrade", NAMESPACE, &["--reset-values"]).await?;
    let values = cluster.folder().join("values.yaml");
    std::fs::write(&values, RULE)?;
    let values = values.to_string_lossy().into_owned();
    release(&cluster, "upgrade", NAMESPACE, &["--values", &values]).await?;
    rules(&client).get("network").await?;
    gates_and_releases(&client, "upgraded").await?;
    let notes = release(&cluster, "upgrade", NAMESPACE, &["--reuse-values"]).await?;
    has_words(&notes, "Rules are there already (")?;
    assert!(!notes.contains("No node is touched"), "{notes}");

    // In the documented order: rules, then the rest.
    cluster.kubectl(&["delete", "nrr", "--all"]).await?;
    controller.stop().await?;
    let uninstall = ["uninstall", "nodegate", "--namespace", NAMESPACE];
    cluster.helm(&uninstall).await?;
    eventually("nothing of it is left", SOON, async || {
        let kinds = "all,role,rolebinding,clusterrole,clusterrolebinding,validatingwebhookconfiguration,networkpolicy,pdb";
        let left = ["get", kinds, "-A", "-o", "name"];
        Ok(!cluster.kubectl(&left).await?.contains("/nrr-"))
    })
    .await?;
    // It is kept, and so would rules be.
    cluster.kubectl(&["get", "crd", CRD]).await?;
    Ok(())
}

#[tokio::test]
async fn rules_and_their_webhook_do_not_come_in_one_install() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let values = cluster.folder().join("values.yaml");
    std::fs::write(&values, RULE)?;
    let values = values.to_string_lossy().into_owned();
    let with_rule = ["--create-namespace", "--values", &values];
    let with_webhook = [&with_rule[..], &["--set=webhook.enabled=true"]].concat();
    let why = refused(release(&cluster, "install", "gates", &with_webhook).await)?;
    has_words(&why, "install without `rules` first")?;

    // Helm looks for the definition of all that it is to create before it starts. Where that is there, rules can be installed at
    // once, in any namespace.
    let why = refused(release(&cluster, "install", "gates", &with_rule).await)?;
    has_words(&why, "install without `rules` first")?;
    cluster.install_crd().await?;
    let over = [&with_rule[..], &TAKE_OVER].concat();
    release(&cluster, "install", "gates", &over).await?;
    let (controller, _) = deployment::run(&cluster, "gates").await?;
    let controller = controller.once_ready().await?;
    let client = cluster.client().await?;
    gates_and_releases(&client, "elsewhere")
        .await
        .with_context(|| controller.log())?;
    rules(&client).get("network").await?;
    cluster.kubectl(&["-n", "gates", "get", MANAGER]).await?;
    Ok(())
}

#[tokio::test]
async fn a_crd_that_is_older_than_the_chart_is_told_of_or_taken_over() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let theirs = fixture("upstream-crd.yaml");
    cluster.kubectl_on(&["create"], &theirs).await?;
    // Helm takes over no CRD that somebody else applied.
    let why = refused(release(&cluster, "install", NAMESPACE, &["--create-namespace"]).await)?;
    has_words(&why, "cannot be imported")?;
    let more = ["--create-namespace", "--set=crds.install=false"];
    let notes = release(&cluster, "install", NAMESPACE, &more).await?;
    has_words(&notes, "is older than this chart")?;
    has_words(&notes, "spec.nodegate.taintPolicy")?;

    // The warning's advice helps.
    let advised = [&["--set=crds.install=true"][..], &TAKE_OVER].concat();
    release(&cluster, "upgrade", NAMESPACE, &advised).await?;
    let without = ["--set=crds.install=false"];
    let notes = release(&cluster, "upgrade", NAMESPACE, &without).await?;
    assert!(!notes.contains("WARNING"), "{notes}");
    // That took it out of the release, and left it.
    cluster.kubectl(&["get", "crd", CRD]).await?;
    Ok(())
}

/// As README says: a controller on the reader's own machine first, and then the chart.
#[tokio::test]
async fn a_release_takes_over_what_kubectl_applied() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    for folder in ["crd", "rbac"] {
        cluster.kubectl_on(&["apply"], &config(folder)).await?;
    }
    cluster.until_established(CRD).await?;
    let client = cluster.client().await?;
    create_rule(
        &client,
        "tried",
        "readiness.k8s.io/tried",
        "example.com/Tried",
    )
    .await?;

    release(&cluster, "install", NAMESPACE, &TAKE_OVER).await?;
    rules(&client).get("tried").await?;
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    controller.once_ready().await?.stop().await?;
    Ok(())
}

/// A chart that contains rules, like the Node Readiness Controller's.
const OTHER_CHART: [(&str, &str); 3] = [
    (
        "Chart.yaml",
        "{apiVersion: v2, name: other, version: 0.5.0}\n",
    ),
    ("values.yaml", "nodeReadinessRules: []\n"),
    (
        "templates/nodereadinessrules.yaml",
        r#"{{- range $rule := .Values.nodeReadinessRules }}
---
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: {{ $rule.name | quote }}
spec:
{{- toYaml (omit $rule "name") | nindent 2 }}
{{- end }}
"#,
    ),
];

/// Follows `docs/moving-in/node-readiness-controller.md` for a release that contains rules.
#[tokio::test]
async fn rules_of_another_release_outlive_it_and_get_into_ours() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_crd().await?;
    let chart = cluster.folder().join("other");
    std::fs::create_dir_all(chart.join("templates"))?;
    for (file, text) in OTHER_CHART {
        std::fs::write(chart.join(file), text)?;
    }
    let chart = chart.to_string_lossy().into_owned();
    let rules_file = cluster.folder().join("rules.yaml");
    let rule = r#"{name: network, enforcementMode: continuous, conditions: [{type: example.com/A, requiredStatus: "True"}],
        taint: {key: readiness.k8s.io/a, effect: NoSchedule}, nodeSelector: {matchLabels: {pool: helm}}}"#;
    std::fs::write(&rules_file, format!("nodeReadinessRules: [{rule}]\n"))?;
    let values = rules_file.to_string_lossy().into_owned();
    let there = ["--namespace", "old"];
    let install = [
        "install",
        "old",
        &chart,
        "--create-namespace",
        "--values",
        &values,
    ];
    cluster.helm(&[&install[..], &there].concat()).await?;
    let client = cluster.client().await?;
    let uid = async || anyhow::Ok(rules(&client).get("network").await?.metadata.uid);
    let before = uid().await?;

    let keep =
        "annotate nrr --selector app.kubernetes.io/managed-by=Helm helm.sh/resource-policy=keep";
    cluster.types(keep).await?;
    let upgrade = [
        "upgrade",
        "old",
        &chart,
        "--reuse-values",
        "--set-json",
        "nodeReadinessRules=[]",
    ];
    cluster.helm(&[&upgrade[..], &there].concat()).await?;
    assert_eq!(uid().await?, before, "after the upgrade");
    cluster
        .helm(&[&["uninstall", "old"][..], &there].concat())
        .await?;
    assert_eq!(uid().await?, before, "after the old release");

    let ours = ["--create-namespace", "--values", &values];
    let ours = [&ours[..], &TAKE_OVER].concat();
    release(&cluster, "install", NAMESPACE, &ours).await?;
    assert_eq!(uid().await?, before, "in the new release");
    let manifest = ["get", "manifest", "nodegate", "--namespace", NAMESPACE];
    let manifest = cluster.helm(&manifest).await?;
    has_words(&manifest, "kind: NodeReadinessRule")?;
    Ok(())
}
