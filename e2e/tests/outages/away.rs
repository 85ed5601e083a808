//! The API server is away for a while.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::ResourceExt;
use nodegate_tests::PROMPTLY;
use nodegate_tests::network::{
    CONDITION, count_gated, create_nodes, eventually_gated_nodes, name, network_rule, owners,
};
use serde_json::json;
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::state::{nodes, rule_status};
use testkit::nodegate::{Cluster, Controller, Options, eventually, eventually_eq};

#[tokio::test]
async fn an_api_server_that_goes_away_is_waited_for() -> Result<()> {
    const COUNT: usize = 150;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let flags = ["--node-concurrent-reconciles=1", "--max-first-gated=100%"];
    let mut controller = Controller::start(&cluster, &flags).await?;
    network_rule("network").create(&client).await?;
    eventually("the gating is under way", PROMPTLY, async || {
        Ok(count_gated(&client).await? > COUNT / 10)
    })
    .await?;
    cluster.idles();
    cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(12)).await;
    ensure!(
        controller.log().contains("waiting for it with all writes"),
        "it was too fast to be interrupted: {}",
        controller.log()
    );
    cluster.start_api_server().await?;
    eventually_gated_nodes(&client, COUNT, PROMPTLY).await?;

    for index in 0..COUNT {
        set_node_condition(&client, &name(index), CONDITION, "True").await?;
        if index == COUNT / 2 {
            cluster.restart_api_server().await?;
        }
    }
    eventually_gated_nodes(&client, 0, PROMPTLY).await?;

    let expected = json!([0, 0, COUNT, null]);
    eventually_eq("no failure is left", PROMPTLY, expected, async || {
        let status = rule_status(&client, "network").await?;
        let ours = &status["nodegate"];
        let counts = ["failedNodeCount", "heldNodes", "matchedNodes"].map(|it| &ours[it]);
        Ok(json!([
            counts[0],
            counts[1],
            counts[2],
            status["failedNodes"]
        ]))
    })
    .await?;
    for node in nodes(&client).await? {
        ensure!(owners(&node).is_empty(), "{:?}", node.annotations());
    }
    ensure!(controller.exited()?.is_none(), "it had to be restarted");
    ensure!(controller.is_ready().await);
    Ok(())
}
