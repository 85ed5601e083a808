//! The next test finds a reused cluster as the previous test found it.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::kubernetes::definitions::KARPENTER;
use testkit::kubernetes::fixtures::{daemon_set, node};
use testkit::kubernetes::state::{is_ready, pods_on};
use testkit::kubernetes::{Cluster, Options, eventually, eventually_eq};

use crate::TURN;

const SOON: Duration = Duration::from_secs(60);
/// Without the kinds that the components create by themselves once they run.
const KINDS: &str = "nodes,pods,daemonsets,customresourcedefinitions,namespaces,clusterroles,\
                     validatingwebhookconfigurations,secrets";

/// The API server can delete neither the namespace, for the finalizer, nor the secret, for the webhook.
const STUBBORN: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: stubborn}
---
apiVersion: v1
kind: Secret
metadata: {name: kept, namespace: stubborn, finalizers: [example.com/never]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuses}
webhooks:
- name: refuses.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [secrets, nodes]}
  admissionReviewVersions: [v1]
  sideEffects: None
"#;

async fn objects(cluster: &Cluster) -> Result<BTreeSet<String>> {
    let names = cluster.kubectl(&["get", KINDS, "-A", "-o", "name"]).await?;
    Ok(names.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_reused_cluster_is_as_it_was() -> Result<()> {
    let _turn = TURN.lock().await;
    let cluster = Cluster::start(Options::full()).await?;
    let (before, pids) = (objects(&cluster).await?, cluster.pids());
    let client = cluster.client().await?;
    cluster.install_definitions(&KARPENTER).await?;
    daemon_set("kube-system/network")
        .tolerate_everything()
        .create(&client)
        .await?;
    node("worker").managed_by_kwok().create(&client).await?;
    eventually("the network runs", SOON, async || {
        Ok(pods_on(&client, "worker").await?.iter().any(is_ready))
    })
    .await?;
    cluster.kubectl(&["delete", "clusterrole", "view"]).await?;
    let label = ["label", "namespace", "default", "left=behind"];
    cluster.kubectl(&label).await?;
    cluster.apply(STUBBORN).await?;
    let file = cluster.folder().join("left.txt");
    fs::write(&file, "behind")?;
    drop(cluster);

    let cluster = Cluster::start(Options::full()).await?;
    ensure!(cluster.pids() == pids, "another cluster was started");
    eventually_eq("all is as it was", SOON, before, async || {
        objects(&cluster).await
    })
    .await?;
    ensure!(!file.exists(), "a file was left behind");
    let labels = ["get", "namespace", "default", "--show-labels"];
    let labels = cluster.kubectl(&labels).await?;
    ensure!(!labels.contains("left"), "{labels}");
    let client = cluster.client().await?;
    node("worker").managed_by_kwok().create(&client).await?;
    cluster.install_definitions(&KARPENTER).await?;
    Ok(())
}
