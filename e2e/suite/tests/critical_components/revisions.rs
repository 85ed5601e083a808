//! A rule that goes by the revision of the `DaemonSet` that it names, with the `DaemonSet` controller that makes revisions.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use nodegate_suite::SOON;
use nodegate_suite::gates::{eventually_gated, eventually_released, stays_gated, stays_released};
use nodegate_testbed::changes::{delete_pod, set_pod_ready};
use nodegate_testbed::fixtures::{daemon_set, node, rule};
use nodegate_testbed::sights::{self, pods_on, running_pod};
use nodegate_testbed::{Controller, eventually};
use serde_json::{Value, json};

use super::cluster;

const NAMESPACE: &str = "default";
/// The node, the rule, and its `DaemonSet`.
const NAME: &str = "revisions";
const TAINT: &str = "readiness.k8s.io/revisions";

#[tokio::test]
async fn an_update_of_a_daemon_set_gates_a_node_again_where_the_rule_says_so() -> Result<()> {
    let cluster = cluster().await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    let client = cluster.client().await?;
    rule(NAME, TAINT)
        .waits_for(&format!("daemonset.nodegate.dev/{NAMESPACE}.{NAME}"))
        .selects("pool", NAME)
        .bootstrap_only()
        .nodegate("regateOn", json!(["Revision"]))
        .create(&client)
        .await?;
    daemon_set(&format!("{NAMESPACE}/{NAME}"))
        .node_selector("pool", NAME)
        .tolerate_everything()
        .never_ready()
        .create(&client)
        .await?;
    node(NAME)
        .label("pool", NAME)
        .allocatable("pods", "100")
        .allocatable("cpu", "8")
        .taint(TAINT, "NoSchedule")
        .managed_by_kwok()
        .create(&client)
        .await?;
    let set_ready = async |ready: bool| {
        let pod = running_pod(&client, NAME, NAME).await?;
        set_pod_ready(&client, NAMESPACE, &pod, ready).await
    };
    set_ready(true).await?;
    eventually_released(&client, NAME, TAINT).await?;
    let record = async || {
        let node = sights::node(&client, NAME).await?;
        let mut annotations = node.annotations().iter();
        let record = annotations.find(|(key, _)| key.contains("bootstrap-completed-"));
        let value: Value = serde_json::from_str(record.context("a record")?.1)?;
        let key = format!("{NAMESPACE}/{NAME}");
        anyhow::Ok(value["revisions"][key].as_str().map(str::to_owned))
    };
    let first = record().await?;
    assert!(first.is_some(), "the revision is on record");

    // Neither a pod that is not Ready nor its successor of the same revision gates the node.
    set_ready(false).await?;
    let [pod] = &*pods_on(&client, NAME).await? else {
        bail!("one pod");
    };
    delete_pod(&client, NAMESPACE, &pod.name_any()).await?;
    stays_released(&client, NAME, TAINT).await?;
    set_ready(true).await?;

    let update = json!({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}});
    let (how, update) = (PatchParams::default(), Patch::Merge(update));
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    daemon_sets.patch(NAME, &how, &update).await?;
    eventually_gated(&client, NAME, TAINT).await?;
    eventually("the pod is replaced", SOON, async || {
        let pods = pods_on(&client, NAME).await?;
        let is_new = |pod: &Pod| pod.annotations().get("version").is_some_and(|it| it == "2");
        Ok(matches!(&*pods, [pod] if is_new(pod)))
    })
    .await?;
    stays_gated(&client, NAME, TAINT).await?;
    set_ready(true).await?;
    eventually_released(&client, NAME, TAINT).await?;
    assert_ne!(record().await?, first);
    Ok(())
}
