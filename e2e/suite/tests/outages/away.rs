//! The API server, or the controller, is away for a while.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use nodegate_suite::network::{
    CONDITION, TAINT, count_gated, create_nodes, create_nodes_from, name, network_rule, owners,
};
use nodegate_suite::{PROMPTLY, turn};
use nodegate_testbed::changes::{delete_node, patch_node, set_node_condition};
use nodegate_testbed::sights::{count_taints, nodes, rule_status};
use nodegate_testbed::{Cluster, Controller, Options, eventually, eventually_eq, never};
use serde_json::{Value, json};

#[tokio::test]
async fn an_api_server_that_goes_away_is_waited_for() -> Result<()> {
    const COUNT: usize = 150;
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let mut controller = Controller::start(&cluster, &["--node-concurrent-reconciles=1"]).await?;
    network_rule("network").create(&client).await?;
    eventually("the gating is under way", PROMPTLY, async || {
        Ok(count_gated(&client).await? > COUNT / 10)
    })
    .await?;
    cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(12)).await;
    ensure!(
        controller.log().contains("waiting for it with all writes"),
        "it was too fast to be interrupted: {}",
        controller.log()
    );
    cluster.start_api_server().await?;
    let back = Instant::now();
    eventually_eq("all nodes are gated", PROMPTLY, COUNT, async || {
        count_gated(&client).await
    })
    .await?;
    println!(
        "last effect {:?} after the API server is back",
        back.elapsed()
    );

    for index in 0..COUNT {
        set_node_condition(&client, &name(index), CONDITION, "True").await?;
        if index == COUNT / 2 {
            cluster.restart_api_server().await?;
        }
    }
    let back = Instant::now();
    eventually_eq("all nodes are open", PROMPTLY, 0, async || {
        count_gated(&client).await
    })
    .await?;
    println!("all open {:?} after the last change", back.elapsed());

    eventually_eq(
        "nothing is left of the failures",
        PROMPTLY,
        json!([0, 0, COUNT]),
        async || {
            let status = rule_status(&client, "network").await?;
            Ok(json!([
                status["failedNodeCount"],
                status["heldNodes"],
                status["matchedNodes"]
            ]))
        },
    )
    .await?;
    assert_eq!(
        rule_status(&client, "network").await?["failedNodes"],
        Value::Null
    );
    for node in nodes(&client).await? {
        ensure!(owners(&node).is_empty(), "{:?}", node.annotations());
    }
    ensure!(controller.exited()?.is_none(), "it had to be restarted");
    ensure!(controller.is_ready().await);
    Ok(())
}

#[tokio::test]
async fn a_controller_that_was_paused_clobbers_nothing() -> Result<()> {
    const COUNT: usize = 20;
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    create_nodes(&client, COUNT, "False").await?;
    let controller = Controller::start(&cluster, &[]).await?;
    network_rule("network").create(&client).await?;
    eventually_eq("all nodes are gated", PROMPTLY, COUNT, async || {
        count_gated(&client).await
    })
    .await?;

    // Some changes reach it just before the pause, so that writes are under way.
    for index in 0..COUNT / 2 {
        set_node_condition(&client, &name(index), CONDITION, "True").await?;
    }
    controller.pause()?;
    for index in 0..COUNT {
        let taints = nodegate_testbed::sights::taints(&client, &name(index)).await?;
        let mut taints = json!(taints);
        let foreign = json!({"key": "example.com/foreign", "effect": "NoSchedule"});
        taints
            .as_array_mut()
            .context("taints are a list")?
            .push(foreign);
        let patch = json!({
            "metadata": {"annotations": {"example.com/foreign": "kept"}},
            "spec": {"taints": taints},
        });
        patch_node(&client, &name(index), &patch).await?;
    }
    // Flips back and forth: only the final state counts.
    for index in 0..COUNT {
        let status = if index % 2 == 0 { "True" } else { "False" };
        set_node_condition(&client, &name(index), CONDITION, status).await?;
    }
    delete_node(&client, &name(0)).await?;
    create_nodes_from(&client, 0..1, "False").await?;
    delete_node(&client, &name(1)).await?;
    create_nodes_from(&client, 1..2, "True").await?;
    delete_node(&client, &name(2)).await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    controller.resume()?;

    let expected = |index: usize| index == 0 || (index > 2 && index % 2 == 1);
    let gated: Vec<String> = (0..COUNT)
        .filter(|&index| expected(index))
        .map(name)
        .collect();
    let seen = async || {
        let mut nodes = nodes(&client).await?;
        nodes.retain(|node| count_taints(node, TAINT) > 0);
        Ok(nodes.iter().map(ResourceExt::name_any).collect())
    };
    eventually_eq(
        "every node is as it should be",
        PROMPTLY,
        gated.clone(),
        seen,
    )
    .await?;
    never("it changes its mind", Duration::from_secs(1), async || {
        Ok(seen().await? != gated)
    })
    .await?;
    for node in nodes(&client).await? {
        let foreign = usize::from(![name(0), name(1)].contains(&node.name_any()));
        assert_eq!(
            count_taints(&node, "example.com/foreign"),
            foreign,
            "{}",
            node.name_any()
        );
        assert_eq!(
            node.annotations().contains_key("example.com/foreign"),
            foreign == 1
        );
        assert_eq!(
            owners(&node).len(),
            count_taints(&node, TAINT),
            "{}",
            node.name_any()
        );
    }
    Ok(())
}
