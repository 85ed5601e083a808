//! A controller that publishes no conditions still decides.

use anyhow::Result;
use nodegate_testbed::changes::{set_node_condition, set_pod_ready};
use nodegate_testbed::fixtures::{node, pod};
use nodegate_testbed::sights::{has_taint, node_condition};
use nodegate_testbed::{Cluster, Controller, Options, eventually, eventually_eq, never};

use crate::{A_WHILE, COMPONENTS_READY, GATE, NO_SCHEDULE, SAMPLE, SOON};

#[tokio::test]
async fn without_published_conditions_nodes_are_held_and_opened_all_the_same() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let publishing = Controller::start(&cluster, &[]).await?;
    cluster.apply(SAMPLE).await?;
    pod("kube-system/agent")
        .critical()
        .on("worker")
        .create(&client)
        .await?;
    // The controller watches pods and nodes separately: it must know the pod before the node joins.
    tokio::time::sleep(A_WHILE).await;
    node("worker")
        .taint(GATE, NO_SCHEDULE)
        .create(&client)
        .await?;
    let published = async || node_condition(&client, "worker", COMPONENTS_READY).await;
    eventually("the condition is published", SOON, published).await?;
    publishing.stop().await?;

    let silent = Controller::start(&cluster, &["--publish-conditions=false"]).await?;
    eventually_eq("the condition is withdrawn", SOON, None, published).await?;
    // It neither trusts nor changes what others write under this type.
    set_node_condition(&client, "worker", COMPONENTS_READY, "True").await?;
    let gated = async || has_taint(&client, "worker", GATE).await;
    never("the node opens", A_WHILE, async || Ok(!gated().await?)).await?;
    let reason = published().await?.and_then(|condition| condition.reason);
    assert_eq!(reason.as_deref(), Some("SetByTest"));

    set_pod_ready(&client, "kube-system", "agent", true).await?;
    eventually("the node opens", SOON, async || Ok(!gated().await?)).await?;
    node("second")
        .taint(GATE, NO_SCHEDULE)
        .create(&client)
        .await?;
    eventually("the second node opens", SOON, async || {
        Ok(!has_taint(&client, "second", GATE).await?)
    })
    .await?;
    never("a condition is published", A_WHILE, async || {
        node_condition(&client, "second", COMPONENTS_READY).await
    })
    .await?;
    silent.stop().await?;
    Ok(())
}
