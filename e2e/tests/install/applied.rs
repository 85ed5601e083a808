//! `kubectl apply -k` in a real cluster, and the controller that the manifests describe.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use nodegate_tests::{fixture, has_words, refused};
use serde_json::json;
use testkit::nodegate::fetch::Fetch;
use testkit::nodegate::fixtures::{node, rule};
use testkit::nodegate::install::{NAMESPACE, config, manifests, write_kustomization};
use testkit::nodegate::state::{pods_on, reasons_about};
use testkit::nodegate::{Cluster, Options, deployment, eventually};

use crate::{
    CRD, MANAGER, SOON, call_webhook_at, folder, gates_and_releases, held_node, until_bound,
    until_conflicts_are_refused,
};

#[tokio::test]
async fn installed_by_kustomize_it_runs_on_held_nodes_and_releases_nodes() -> Result<()> {
    let cluster = Cluster::start(Options::full()).await?;
    let client = cluster.client().await?;
    held_node(&client).await?;
    cluster.install_crd().await?;
    let applied = cluster.apply_path(&config("default")).await?;
    assert!(!applied.contains("Warning"), "{applied}");
    // The namespace enforces pod security `restricted`: other pods would not be created.
    until_bound(&cluster, NAMESPACE, 2).await?;
    let run = format!("run lax --image=lax -n {NAMESPACE}");
    has_words(&refused(cluster.types(&run).await)?, "violates PodSecurity")?;

    let (controller, addresses) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    gates_and_releases(&client, "worker")
        .await
        .with_context(|| controller.log())?;
    let lease = ["get", "lease", "-n", NAMESPACE, "-o", "name"];
    let leases = cluster.kubectl(&lease).await?;
    has_words(&leases, "ba65f13e.readiness.node.x-k8s.io")?;

    // Prometheus scrapes with the token of the Secret that its monitor names.
    let url = format!("https://{}/metrics", addresses.metrics);
    assert_eq!(Fetch::anonymous().get(&url).await?.status, 401);
    let scraper = manifests("prometheus").join("scraper.yaml");
    cluster.apply_path(&scraper).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let token = eventually("the Secret has a token", SOON, async || {
        let secret = secrets.get("nrr-metrics-scraper-token").await?;
        let data = secret.data.unwrap_or_default();
        let token = data.get("token").map(|token| token.0.clone());
        token.map(String::from_utf8).transpose().map_err(Into::into)
    })
    .await?;
    eventually("metrics are served", SOON, async || {
        let answer = Fetch::with_token(&token).get(&url).await?;
        Ok(answer.status == 200 && answer.text.contains("nodegate_leader 1"))
    })
    .await?;

    let again = cluster.apply_path(&config("default")).await?;
    assert!(again.lines().count() > 15, "{again}");
    controller.stop().await?;
    Ok(())
}

#[tokio::test]
async fn on_karpenters_nodes_it_tolerates_starting_and_pressure_but_no_disruption() -> Result<()> {
    let cluster = Cluster::start(Options::full()).await?;
    let client = cluster.client().await?;
    // Each taint keeps intolerant pods away: nothing removes them here.
    for (name, keys) in [
        (
            "starts",
            &[
                "node.kubernetes.io/not-ready",
                "node.kubernetes.io/network-unavailable",
                "node.cloudprovider.kubernetes.io/uninitialized",
                "node.kubernetes.io/memory-pressure",
                "node.kubernetes.io/disk-pressure",
                "node.kubernetes.io/pid-pressure",
                "node-role.kubernetes.io/control-plane",
            ][..],
        ),
        ("cordoned", &["node.kubernetes.io/unschedulable"]),
        ("drained", &["karpenter.sh/disrupted"]),
    ] {
        let node = node(name).managed_by_kwok();
        let node = keys
            .iter()
            .fold(node, |node, key| node.taint(key, "NoSchedule"));
        node.create(&client).await?;
    }
    let folder = folder("applied-karpenter-nodes")?;
    write_kustomization(&folder, &["default"], &["components/karpenter-nodes"])?;
    cluster.apply_path(&folder).await?;
    until_bound(&cluster, NAMESPACE, 2).await?;
    assert_eq!(pods_in(&client, "starts").await?, 2);
    Ok(())
}

/// How many of the controller's pods are bound to a node.
async fn pods_in(client: &Client, node: &str) -> Result<usize> {
    let pods = pods_on(client, node).await?;
    let ours = pods
        .iter()
        .filter(|pod| pod.metadata.namespace.as_deref() == Some(NAMESPACE));
    Ok(ours.count())
}

#[tokio::test]
async fn the_webhook_component_needs_nothing_but_itself() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_crd().await?;
    let folder = folder("applied-webhook")?;
    write_kustomization(&folder, &["default"], &["components/webhook"])?;
    cluster.kubectl_on(&["apply"], &folder).await?;
    let (controller, addresses) = deployment::run(&cluster, NAMESPACE).await?;
    call_webhook_at(&cluster, &addresses.webhook).await?;
    until_conflicts_are_refused(&cluster.client().await?, &controller).await
}

/// The debug patch of the Node Readiness Controller's documentation replaces all arguments.
#[tokio::test]
async fn who_replaces_the_arguments_loses_nothing_that_protects() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install_crd().await?;
    cluster.apply_path(&config("default")).await?;
    let class = "criticalComponentClasses: [{name: gpu, selector: {matchLabels: {gpu: critical}}, \
                 conditionPrefix: gpu.example.com/, csiAnnotationPrefix: gpu.example.com/csi-}]";
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nrr-controller-manager-config", "namespace": NAMESPACE},
        "data": {"config.yaml": class},
    });
    cluster.apply(&map.to_string()).await?;
    let file = json!({"name": "NODEGATE_CONFIG", "value": "/etc/nodegate/config.yaml"});
    let patch = json!([
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": file},
        {"op": "add", "path": "/spec/template/spec/containers/0/args", "value": ["--zap-log-level=debug"]},
    ]);
    let patch = [
        "patch",
        MANAGER,
        "-n",
        NAMESPACE,
        "--type=json",
        "-p",
        &patch.to_string(),
    ];
    cluster.kubectl(&patch).await?;
    for number in 0..12 {
        node(&format!("n-{number}")).create(&client).await?;
    }
    let misspelt = rule("misspelt", "readiness.k8s.io/misspelt");
    let misspelt = misspelt.waits_for("daemonset.nodegate.dev/kube-system.celium");
    misspelt.create(&client).await?;
    let (controller, addresses) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    controller.says("evaluated rule", SOON).await?;
    let held_back = r#"jsonpath={.status.conditions[?(@.type=="HeldBack")].reason}"#;
    eventually("the rule is held back", SOON, async || {
        let reason = cluster
            .kubectl(&["get", "nrr", "misspelt", "-o", held_back])
            .await?;
        Ok(reason == "WouldGateTooMany")
    })
    .await
    .with_context(|| controller.log())?;
    let lease = format!("get lease ba65f13e.readiness.node.x-k8s.io -n {NAMESPACE} -o json");
    let lease = cluster.types(&lease).await?;
    has_words(&lease, r#"\"maxFirstGated\":\"10%\""#)?;
    has_words(&lease, r#"\"conditionPrefix\":\"gpu.example.com/\""#)?;
    let url = format!("https://{}/metrics", addresses.metrics);
    assert_eq!(Fetch::anonymous().get(&url).await?.status, 401);
    Ok(())
}

/// A pod's container has nothing of ours but the image: neither roles nor arguments nor environment, nor the definition.
#[tokio::test]
async fn in_the_node_readiness_controllers_deployment_the_image_is_all_that_changes() -> Result<()>
{
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.apply_path(&fixture("upstream-crd.yaml")).await?;
    cluster.until_established(CRD).await?;
    let theirs = fixture("upstream-install.yaml");
    cluster.kubectl_on(&["apply"], &theirs).await?;
    let client = cluster.client().await?;
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    gates_and_releases(&client, "worker")
        .await
        .with_context(|| controller.log())?;
    eventually("both changes are told as Events", SOON, async || {
        let told = reasons_about(&client, "Node", "worker").await?;
        let reasons = ["TaintAdded", "TaintRemoved"].map(str::to_owned);
        Ok(reasons.iter().all(|reason| told.contains(reason)))
    })
    .await
    .with_context(|| controller.log())
}

#[tokio::test]
async fn it_takes_the_place_of_the_node_readiness_controller() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_crd().await?;
    let labels = json!({
        "control-plane": "controller-manager",
        "app.kubernetes.io/name": "nrrcontroller",
    });
    let container = json!({
        "name": "manager",
        "image": "node-readiness-controller:v0.5.0",
        "command": ["/manager"],
        "args": ["--leader-elect", "--kube-api-qps=50"],
    });
    let earlier = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "nrr-controller-manager", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": "nrr-controller-manager", "containers": [container]},
            },
        },
    });
    for apply in [
        &["apply"][..],
        &["apply", "--server-side", "--force-conflicts"],
    ] {
        cluster
            .kubectl(&["create", "namespace", NAMESPACE])
            .await
            .ok();
        cluster.apply(&earlier.to_string()).await?;
        cluster.kubectl_on(apply, &config("default")).await?;
        let path = "jsonpath={.spec.template.spec.containers[*].command} {.spec.template.spec.containers[*].args[*]}";
        let arguments = ["get", MANAGER, "-n", NAMESPACE, "-o", path];
        let runs = cluster.kubectl(&arguments).await?;
        assert!(
            runs.starts_with("[\"/nodegate-controller\"]"),
            "{apply:?}: {runs}"
        );
        assert!(!runs.contains("--"), "{apply:?}: {runs}");
        let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
        controller.once_ready().await?.stop().await?;
        let delete = format!("delete {MANAGER} -n {NAMESPACE}");
        cluster.types(&delete).await?;
    }
    Ok(())
}
