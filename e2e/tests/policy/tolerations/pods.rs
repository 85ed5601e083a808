//! The `DaemonSet` controller puts pods onto held nodes, and Nodegate releases these.

use anyhow::Result;
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use nodegate_tests::gates::{eventually_released, stays_held};
use nodegate_tests::rules::key;
use serde_json::json;
use testkit::nodegate::fixtures::{daemon_set, node};
use testkit::nodegate::install::example;
use testkit::nodegate::state::{pods_on, running_pod};
use testkit::nodegate::{Cluster, Controller, Options};

use super::{added, all_are_known, install, tolerations, waiting};

#[tokio::test]
async fn a_daemon_set_gets_its_pod_on_a_node_that_two_rules_hold_and_the_node_is_released()
-> Result<()> {
    // Without the node lifecycle controller, nodes would keep the taint not-ready, which keeps a DaemonSet off, too.
    let cluster = Cluster::start(Options::complete()).await?;
    let client = cluster.client().await?;
    if !install(&cluster).await? {
        return Ok(());
    }
    let _controller = Controller::start(&cluster, &[]).await?;
    let (named, evicts) = (key("named"), key("evicts"));
    for (name, condition, effect) in [
        (
            "named",
            "daemonset.nodegate.dev/kube-system.cni",
            "NoSchedule",
        ),
        (
            "evicts",
            "node.gardener.cloud/CriticalPodsReady",
            "NoExecute",
        ),
    ] {
        let taint = json!({"key": key(name), "effect": effect});
        let rule = waiting(name, condition).bootstrap_only();
        rule.spec("taint", taint).create(&client).await?;
    }
    all_are_known(&client, "pods-last").await?;
    // A tenant's, which no rule waits for, holds nothing and stays off.
    daemon_set("default/tenant")
        .critical()
        .create(&client)
        .await?;
    daemon_set("kube-system/cni")
        .critical()
        .create(&client)
        .await?;
    let worker = node("worker")
        .taint(&named, "NoSchedule")
        .taint(&evicts, "NoExecute");
    worker.managed_by_kwok().create(&client).await?;
    running_pod(&client, "worker", "cni").await?;
    eventually_released(&client, "worker", &named).await?;
    eventually_released(&client, "worker", &evicts).await?;
    let there: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    let expected = [format!("{evicts}:NoExecute"), added("named")];
    assert_eq!(tolerations(&there.get("cni").await?), expected);
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_that_was_there_first_comes_once_it_is_annotated() -> Result<()> {
    let cluster = Cluster::start(Options::complete()).await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    cluster.apply_path(&example("tolerations")).await?;
    let taint = key("log-agent");
    let worker = node("worker").taint(&taint, "NoSchedule");
    worker.managed_by_kwok().create(&client).await?;
    if !install(&cluster).await? {
        return Ok(());
    }
    all_are_known(&client, "annotated-last").await?;
    stays_held(&client, "worker", &taint).await?;
    assert!(pods_on(&client, "worker").await?.is_empty());
    let annotate = "annotate -n logging --overwrite ds/log-agent nodegate.dev/tolerate=log-agent";
    cluster.types(annotate).await?;
    running_pod(&client, "worker", "log-agent").await?;
    eventually_released(&client, "worker", &taint).await?;
    let file = example("tolerations").join("daemon-set.yaml");
    let again = cluster.apply_path(&file).await?;
    let there: Api<DaemonSet> = Api::namespaced(client.clone(), "logging");
    let there = there.get("log-agent").await?;
    assert_eq!(there.metadata.generation, Some(2), "{again}");
    Ok(())
}
