//! Nodes join while the controller starts.

use std::time::Duration;

use anyhow::Result;
use nodegate_suite::PROMPTLY;
use nodegate_suite::network::{CONDITION, count_gated, create_nodes, name, network_rule};
use nodegate_testbed::changes::remove_node_condition;
use nodegate_testbed::{Cluster, Controller, Options, eventually_eq, never};

/// Fault 253 of the Node Readiness Controller.
#[tokio::test]
async fn nodes_that_join_during_warm_up_are_gated() -> Result<()> {
    const COUNT: usize = 200;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    network_rule("network").create(&client).await?;
    let joining = tokio::spawn({
        let client = client.clone();
        async move { create_nodes(&client, COUNT, "False").await }
    });
    let controller = Controller::start(&cluster, &[]).await?;
    joining.await??;
    eventually_eq("all nodes are gated", PROMPTLY, COUNT, async || {
        count_gated(&client).await
    })
    .await?;
    for index in 0..COUNT {
        remove_node_condition(&client, &name(index), CONDITION).await?;
    }
    never(
        "a node opens for want of a condition",
        Duration::from_secs(1),
        async || Ok(count_gated(&client).await? != COUNT),
    )
    .await?;
    drop(controller);
    Ok(())
}
